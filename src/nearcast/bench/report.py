"""All results of a folder on one page: claim, verdict, table, plots, circumstances. The page needs no other file."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from nearcast.bench.metrics import METRICS
from nearcast.bench.plot import plot_results
from nearcast.bench.results import Results, find_results
from nearcast.errors import PlanError

REPORT_FILE = "report.html"
# Beside the metrics of the plan, in the table only.
_ALWAYS = ("us_per_message", "median_us_per_message", "spread_percent", "p99_us_per_message", "messages_per_second")
_ALSO = ("build_seconds", "copies", "call_us")
_CSS = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #e5e5e5; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2), .words td { text-align: left; }
.words td { white-space: normal; }
blockquote { margin: .5rem 0; padding-left: 1rem; border-left: 3px solid #ccc; color: #444; }
.verdict { padding: .1rem .5rem; border-radius: .3rem; white-space: nowrap; background: #eee; }
.reproduced { background: #d7f0dd; } .same-trend { background: #fdf0c8; } .not-reproduced { background: #f8d7d5; }
figure { display: inline-block; margin: 1rem 1rem 0 0; width: 29rem; max-width: 100%; } figure img { width: 100%; }
small, figcaption { color: #666; font-size: 13px; }
"""


def make_report(folder: str | Path) -> Path:
    """Write <folder>/report.html over everything that was run into the folder, and give its path."""
    folder = Path(folder)
    found = list(find_results(folder))
    if not found:
        raise PlanError(f"{folder} holds no results; run a plan first: nearcast bench run PLAN --out {folder}")
    sections = [_section(results) for results in found]
    path = folder / REPORT_FILE
    title = "nearcast: measured beside the papers"
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_CSS}</style></head>\n'
        f"<body><h1>{title}</h1>\n{_preface(found)}\n{''.join(sections)}</body></html>\n",
        encoding="utf-8",
    )
    return path


def _preface(found: Sequence[Results]) -> str:
    rows = [[_link(results), escape(results.plan.figure), results.size, _badge(results.verdict)] for results in found]
    metrics = [[escape(metric.label), escape(metric.description)] for metric in METRICS.values()]
    return (
        "<p>Times are those of one thread, from keyword ids to subscription ids unless a column says otherwise. "
        "The whole stream is passed over several times and the "
        "best time of each chunk is kept; compiling is never in a number. Machines differ: counters (candidates, nodes) are "
        "the fair comparison with a paper. The verdict on a plan is that of its worst expectation, and <i>not judged</i> while "
        "the index a claim is about is no series yet. It holds for the size shown; at <i>tiny</i> it only says that the plan "
        "runs.</p>\n"
        + _table(["plan", "figure", "size", "verdict"], rows, "words")
        + "<details><summary>What the columns mean</summary>"
        + _table(["column", "meaning"], metrics, "words")
        + "</details>"
    )


def _section(results: Results) -> str:
    plan = results.plan
    judged = [
        [escape(expected.text), _badge(judgement.verdict), escape(judgement.reason)] for expected, judgement in results.judged()
    ]
    figures = "".join(_figure(metric, path) for metric, path in plot_results(results).items())
    return (
        f'<h2 id="{_anchor(results)}">{escape(plan.title)}</h2>\n'
        f"<p>{escape(plan.paper)}, {escape(plan.figure)} · plan <code>{escape(plan.name)}</code>, size {results.size} · "
        f"{_badge(results.verdict)}</p>\n<blockquote>{escape(plan.claim)}</blockquote>\n"
        + (_table(["expected", "verdict", "measured"], judged, "words") if judged else "")
        + (f"<p>{escape(plan.why)}</p>\n" if plan.why else "")
        + "".join(f"<p>{escape(reason)}.</p>\n" for reason in results.left_out)
        + f"<p>{_measured_table(results)}</p>\n{figures}\n<p><small>{_circumstances(results)}</small></p>\n"
    )


def _measured_table(results: Results) -> str:
    wanted = list(dict.fromkeys((*_ALWAYS, *results.plan.metrics, *_ALSO)))
    columns = [name for name in wanted if results.curves(name)]
    rows = []
    for record in results.records:
        values = [METRICS[name].of(record) for name in columns]
        start = [escape(str(record.facts["point"]["label"])), escape(record.series)]
        rows.append(start + ["" if value is None else written(value) for value in values])
    return _table([escape(results.plan.vary_label), "series", *(escape(METRICS[name].label) for name in columns)], rows)


def written(value: float) -> str:
    """A number with three significant digits, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _circumstances(results: Results) -> str:
    facts = results.records[0].facts
    machine, check = facts["machine"], facts["check"]
    memory = f", {machine['memory_bytes'] / 2**30:.0f} GiB" if machine["memory_bytes"] else ""
    parts = [
        f"workload {_listed(facts['workload'])}",
        f"seed {facts['seed']}, {facts['n_messages']:,} messages, chunks of {facts['chunk']:,}, {facts['repetitions']} passes",
        f"answers equal to those of {check['against']} on {check['messages']:,} messages at every point",
        f"{machine['cpu']}, {machine['cores']} cores{memory}, {machine['system']}, load {machine['load_average']}",
        _listed(facts["versions"]),
        f"commit {facts['commit'] or 'unknown'}, {facts['date']}",
    ]
    return "<br>".join(escape(part) for part in parts)


def _listed(items: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in items.items())


def _figure(metric: str, path: Path) -> str:
    # As an image of its own: identifiers inside several SVGs on one page would clash.
    data = base64.b64encode(path.read_bytes()).decode()
    label = escape(METRICS[metric].label)
    return (
        f'<figure><img alt="{label}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{label}: {escape(METRICS[metric].description)}</figcaption></figure>"
    )


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def _anchor(results: Results) -> str:
    return f"{results.plan.name}-{results.size}".replace("/", "-")


def _link(results: Results) -> str:
    return f'<a href="#{_anchor(results)}">{escape(results.plan.name)}</a>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], css_class: str = "") -> str:
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table class="{css_class}"><tr>{head}</tr>\n{body}</table>\n'
