"""All results of a folder as pages, one for each paper: claim, verdict, figures, table, circumstances.

Raw records stay where they are; pages, figures and a table of every value are small enough to be kept beside the source.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.metrics import METRICS
from benchmarks.plan import SIZES
from benchmarks.report.front_page import front_page
from benchmarks.report.markdown import plain, table, written
from benchmarks.report.plot import plot_results
from benchmarks.results import Results, find_results
from benchmarks.work_beside import work_beside
from nearcast.errors import PlanError

FRONT_PAGE, VALUES_FILE, FIGURES = "README.md", "measured.csv", "figures"
# Beside the metrics of the plan, in the table only.
_ALSO = ("us_per_message", "build_seconds", "copies", "spread_percent")


def make_report(folder: str | Path, to: str | Path) -> Path:
    """Write pages over everything that was run into the folder, and give the path of the first one.

    Of each plan the largest size that was run is shown. `to` is made anew: nothing else may be kept in it.
    """
    found = largest_of_each(find_results(Path(folder)))
    if not found:
        raise PlanError(f"{folder} holds no results; run a plan first: python -m benchmarks run PLAN --out {folder}")
    to = Path(to)
    if to.exists() and any(to.iterdir()) and not (to / VALUES_FILE).is_file():
        raise PlanError(f"{to} holds other files than a report; give an empty folder with --to")
    shutil.rmtree(to, ignore_errors=True)
    (to / FIGURES).mkdir(parents=True)
    pages: dict[str, list[Results]] = {}
    for results in found:
        pages.setdefault(page_of(results), []).append(results)
    for page, shown in pages.items():
        (to / page).write_text(_page(shown, to / FIGURES), encoding="utf-8")
    _write_values(to / VALUES_FILE, found)
    (to / FRONT_PAGE).write_text(front_page(pages), encoding="utf-8")
    return to / FRONT_PAGE


def largest_of_each(found: Iterable[Results]) -> list[Results]:
    """The largest size of every plan."""
    by_plan: dict[str, Results] = {}
    for results in sorted(found, key=lambda results: SIZES.index(results.size)):
        by_plan[results.plan.name] = results
    return [by_plan[name] for name in sorted(by_plan)]


def page_of(results: Results) -> str:
    """The page that shows a plan: plans of one's own have one together."""
    paper, slash, _ = results.plan.name.partition("/")
    return f"{paper}.md" if slash else "own.md"


def _page(shown: Sequence[Results], figures: Path) -> str:
    papers = ", ".join(dict.fromkeys(plain(results.plan.paper) for results in shown))
    return f"# {papers}\n\nMeasured here beside what is claimed. [All experiments]({FRONT_PAGE})\n\n" + "\n".join(
        _section(results, figures) for results in shown
    )


def _section(results: Results, figures: Path) -> str:
    plan = results.plan
    parts = [
        f"## {plain(plan.title)}\n",
        f"{plain(plan.paper)}, {plain(plan.figure)} · `python -m benchmarks run {plan.name} --size {results.size}` · "
        f"**{results.verdict}**\n",
        f"> {plain(plan.claim)}\n",
    ]
    judged = [
        [plain(expected.text), judgement.verdict, plain(judgement.reason), plain(work_beside(results, expected))]
        for expected, judgement in results.judged()
    ]
    if judged:
        parts.append(table(["expected", "verdict", "measured", "work"], judged))
    parts += [f"{plain(text)}\n" for text in (results.why, *(f"{reason}." for reason in results.left_out)) if text]
    # What comes first in the plan and what is judged is drawn; the table has the rest.
    drawn = dict.fromkeys((*plan.metrics[:2], *(expected.metric for expected in plan.expect)))
    for metric, path in plot_results(results, figures, list(drawn)).items():
        parts.append(f"![{METRICS[metric].label}]({FIGURES}/{path.name})\n")
    parts += [
        "<details><summary>All values</summary>\n",
        _measured(results),
        f"<sub>{_circumstances(results)}</sub>\n",
        "</details>\n",
    ]
    return "\n".join(parts)


def _measured(results: Results) -> str:
    columns = _columns(results)
    rows = []
    for record in results.records:
        values = [METRICS[name].of(record) for name in columns]
        start = [plain(str(record.facts["point"]["label"])), plain(record.series)]
        rows.append(start + ["" if value is None else written(value) for value in values])
    header = [plain(results.plan.vary_label), "series", *(plain(METRICS[name].label) for name in columns)]
    return table(header, rows, n_left=2)


def _columns(results: Results) -> list[str]:
    wanted = dict.fromkeys((*results.plan.metrics, *_ALSO))
    return [name for name in wanted if results.curves(name)]


def _circumstances(results: Results) -> str:
    facts = results.records[0].facts
    machine, check = facts["machine"], facts["check"]
    memory = f", {machine['memory_bytes'] / 2**30:.0f} GiB" if machine["memory_bytes"] else ""
    parts = [
        f"workload {_listed(facts['workload'])}",
        f"seed {facts['seed']}, {facts['n_messages']:,} messages, chunks of {facts['chunk']:,}, {facts['repetitions']} passes",
        f"answers equal to those of {check['against']} on {check['messages']:,} messages at every point",
        f"{machine['cpu']}, {machine['cores']} cores{memory}, load {machine['load_average']}",
        _listed(facts["versions"]),
        f"commit {(facts['commit'] or 'unknown')[:12]}, {facts['date']}",
    ]
    return "; ".join(plain(part) for part in parts)


def _listed(items: Mapping[str, Any]) -> str:
    # Folders are those of a machine, and tell nobody else anything.
    return ", ".join(f"{name} {value}" for name, value in items.items() if not str(value).startswith("/"))


def _write_values(path: Path, found: Sequence[Results]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("plan", "size", "point", "series", "metric", "value"))
        for results in found:
            for record in results.records:
                for name in _columns(results):
                    value = METRICS[name].of(record)
                    if value is not None:
                        label = record.facts["point"]["label"]
                        writer.writerow((results.plan.name, results.size, label, record.series, name, f"{value:.6g}"))
