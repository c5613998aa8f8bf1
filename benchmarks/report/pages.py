"""Results as pages, one for each paper: claim, verdict, table, circumstances; and a front page over all of them.

Raw records stay where they are. The pages and a table of every value are small enough for git; the figures are drawn from that
table and are not in git.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.expectations import VERDICTS
from benchmarks.metrics import METRICS
from benchmarks.plan import SIZES
from benchmarks.report.plot import FIGURES, draw_figures, figure_name
from benchmarks.report.values import VALUES_FILE, columns_of, write_values
from benchmarks.results import Results, find_results
from nearcast.errors import PlanError

FRONT_PAGE = "README.md"
_PREFACE = """\
Every experiment of the papers, measured here, and our own experiments. Made by `python -m benchmarks run all --size small` and
`python -m benchmarks report`. Every value is in [measured.csv](measured.csv); `make figures` draws the figures from it into the
folder `figures`, which is not in git.
"""
_HOW_TO_READ = """\
Times are those of one thread, from keyword ids to subscription ids unless a column says otherwise. The whole stream is passed
over several times, and the best time of each chunk is kept. Compilation is never in a time. Machines differ: counters
(candidates, nodes) are the fair comparison with a paper. The verdict on an experiment is that of its worst expectation. It
holds for the size shown; at *tiny* it only says that the plan runs.
"""


def make_report(folder: str | Path, to: str | Path) -> Path:
    """Write pages about everything that was run into `folder`, with figures; returns the path of the front page.

    The largest size that was run of each plan is shown. `to` is replaced: nothing else may be kept in it.
    """
    shown = largest_of_each(find_results(Path(folder)))
    if not shown:
        raise PlanError(f"{folder} holds no results; run a plan first: python -m benchmarks run PLAN --out {folder}")
    to = Path(to)
    if to.exists() and any(to.iterdir()) and not (to / VALUES_FILE).is_file():
        raise PlanError(f"{to} holds other files than a report; give an empty folder with --to")
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    pages: dict[str, list[Results]] = {}
    for results in shown:
        pages.setdefault(page_of(results), []).append(results)
    write_values(to / VALUES_FILE, shown)
    drawn = {path.name for path in draw_figures(to, {results.plan.name: results.plan for results in shown})}
    for page, on_page in pages.items():
        (to / page).write_text(_page(on_page, drawn), encoding="utf-8")
    (to / FRONT_PAGE).write_text(front_page(pages), encoding="utf-8")
    return to / FRONT_PAGE


def largest_of_each(all_results: Iterable[Results]) -> list[Results]:
    """The largest size of every plan."""
    by_plan: dict[str, Results] = {}
    for results in sorted(all_results, key=lambda results: SIZES.index(results.size)):
        by_plan[results.plan.name] = results
    return [by_plan[name] for name in sorted(by_plan)]


def page_of(results: Results) -> str:
    """The page that shows a plan; plans that are not in the repository share one."""
    paper, slash, _ = results.plan.name.partition("/")
    return f"{paper}.md" if slash else "own.md"


def _page(shown: Sequence[Results], drawn: Iterable[str]) -> str:
    papers = ", ".join(dict.fromkeys(plain(results.plan.paper) for results in shown))
    return f"# {papers}\n\nMeasured here, and compared with what is claimed. [All experiments]({FRONT_PAGE})\n\n" + "\n".join(
        _section(results, drawn) for results in shown
    )


def _section(results: Results, drawn: Iterable[str]) -> str:
    plan = results.plan
    parts = [
        f"## {plain(plan.title)}\n",
        f"{plain(plan.paper)}, {plain(plan.figure)} · `python -m benchmarks run {plan.name} --size {results.size}` · "
        f"**{results.verdict}**\n",
        f"> {plain(plan.claim)}\n",
    ]
    judged = [
        [plain(expected.text), judgement.verdict, plain(judgement.reason), plain(results.compare_work(expected))]
        for expected, judgement in results.judged()
    ]
    if judged:
        parts.append(table(["expected", "verdict", "measured", "work"], judged))
    parts += [f"{plain(text)}\n" for text in (results.why, *(f"{reason}." for reason in results.left_out)) if text]
    # Named, not linked: the files are not in git.
    figures = [f"`{name}`" for name in (figure_name(plan, metric) for metric in plan.drawn_metrics) if name in drawn]
    if figures:
        parts.append(f"Figures, drawn by `make figures` into `{FIGURES}`: {', '.join(figures)}\n")
    parts += [
        "<details><summary>All values</summary>\n",
        _measured(results),
        f"<sub>{_circumstances(results)}</sub>\n",
        "</details>\n",
    ]
    return "\n".join(parts)


def _measured(results: Results) -> str:
    columns = columns_of(results)
    rows = []
    for record in results.records:
        values = [METRICS[name].of(record) for name in columns]
        start = [plain(str(record.facts["point"]["label"])), plain(record.series)]
        rows.append(start + ["" if value is None else written(value) for value in values])
    header = [plain(results.plan.vary_label), "series", *(plain(METRICS[name].label) for name in columns)]
    return table(header, rows, n_left=2)


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
    # Folders of this machine mean nothing on another one.
    return ", ".join(f"{name} {value}" for name, value in items.items() if not str(value).startswith("/"))


# --- the front page ------------------------------------------------------------------------------------------------------


class Headline(NamedTuple):
    """A number of the front page: one of our series and the best of the others, at the last point where both were measured.

    The others are all other series of the plan, unless they are named.
    """

    text: str
    plan: str
    metric: str
    ours: str
    others: tuple[str, ...] = ()


HEADLINES = (
    Headline("Boolean subscriptions, ids to ids, one core", "nearcast/fast_index", "messages_per_second", "frequency_grid"),
    Headline("The same, compared with databases and libraries, batched", "nearcast/peers", "messages_per_second", "nearcast"),
    Headline(
        "Moving subscriptions: a move, an arrival and an end", "nearcast/moving", "us_per_move_and_message", "moving grid"
    ),
    Headline(
        "Ranked subscriptions, every change reported", "nearcast/fast_ranked", "tick_us", "impact grid", ("IGPT + cSkyband",)
    ),
    Headline(
        "The pipeline on Spark, compared with a join in SQL, two cores",
        "nearcast/pipeline",
        "messages_per_second",
        "nearcast",
        ("SQL, keyword and cell", "SQL, keyword"),
    ),
)


def front_page(pages: Mapping[str, Sequence[Results]]) -> str:
    """The page about all pages; `pages` has the results that each file shows."""
    results_of = {results.plan.name: results for shown in pages.values() for results in shown}
    claims = [
        [
            f"[{plain(results.plan.title)}]({page})",
            plain(f"{results.plan.paper}, {results.plan.figure}"),
            results.size,
            results.verdict,
        ]
        for page, shown in pages.items()
        for results in shown
    ]
    counts = Counter(results.verdict for results in results_of.values())
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    meanings = [[plain(metric.label), plain(metric.description)] for metric in METRICS.values()]
    return "\n".join(
        (
            f"# Experiments\n\n{_PREFACE}\n## Five numbers\n",
            table(["", "ours", "best of the others", "factor", "where"], [_headline(one, results_of) for one in HEADLINES]),
            f"## Every claim\n\n{len(results_of)} experiments: {summary}.\n\n{_HOW_TO_READ}",
            table(["experiment", "figure", "size", "verdict"], claims),
            "## What the columns mean\n",
            table(["column", "meaning"], meanings),
        )
    )


def _headline(headline: Headline, results_of: Mapping[str, Results]) -> list[str]:
    results = results_of.get(headline.plan)
    if results is None:
        return [headline.text, "not measured", "", "", f"`python -m benchmarks run {headline.plan}`"]
    metric = METRICS[headline.metric]
    curves = results.curves(headline.metric)
    others = {
        name: curve
        for name, curve in curves.items()
        if name in headline.others or (not headline.others and name != headline.ours)
    }
    at = [x for x in curves.get(headline.ours, {}) if any(x in curve for curve in others.values())]
    if not at:
        return [headline.text, "not measured", "", "", f"`{headline.plan}`, {results.size}"]
    point = at[-1]
    ours = curves[headline.ours][point]
    best = (max if metric.better == "higher" else min)(
        (name for name, curve in others.items() if point in curve), key=lambda name: others[name][point]
    )
    theirs = others[best][point]
    factor = ours / theirs if metric.better == "higher" else theirs / ours
    where = f"`{headline.plan}`, {results.plan.vary_label} {results.label_of(point)}"
    return [
        headline.text,
        f"{written(ours)} {plain(metric.label)}",
        f"{written(theirs)} ({plain(best)})",
        f"{written(factor)}×",
        where,
    ]


# --- Markdown --------------------------------------------------------------------------------------------------------------


def written(value: float) -> str:
    """A number with three significant digits, thousands separated."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def plain(text: str) -> str:
    """Text as it is: characters that Markdown or HTML would read as markup are escaped."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "\\`*_[]|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def table(header: Sequence[str], rows: Iterable[Sequence[str]], n_left: int | None = None) -> str:
    """A table; the first `n_left` columns are text (by default all), the others numbers."""
    left = len(header) if n_left is None else n_left
    rule = [":--" if column < left else "--:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)) + "\n"
