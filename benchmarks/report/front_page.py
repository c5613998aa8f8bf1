"""The first page of a report: the five numbers that matter, and the verdict on every claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.expectations import VERDICTS
from benchmarks.metrics import METRICS
from benchmarks.report.markdown import plain, table, written
from benchmarks.results import Results

_PREFACE = """\
Every experiment of the papers, measured here, and what is our own beside them. Made by
`python -m benchmarks run all --size small` and `python -m benchmarks report`; every value is in [measured.csv](measured.csv).
"""
_HOW_TO_READ = """\
Times are those of one thread, from keyword ids to subscription ids unless a column says otherwise. The whole stream is passed
over several times and the best time of each chunk is kept; compiling is never in a number. Machines differ: counters
(candidates, nodes) are the fair comparison with a paper. The verdict on an experiment is that of its worst expectation. It
holds for the size shown; at *tiny* it only says that the plan runs.
"""


class Headline(NamedTuple):
    """A number that matters: one of our series beside the best of the others, at the last point where both were measured.

    The others are all other series of the plan unless they are named.
    """

    text: str
    plan: str
    metric: str
    ours: str
    others: tuple[str, ...] = ()


HEADLINES = (
    Headline("Boolean subscriptions, ids to ids, one core", "nearcast/fast_index", "messages_per_second", "frequency_grid"),
    Headline("The same beside databases and libraries, batched", "nearcast/peers", "messages_per_second", "nearcast"),
    Headline(
        "Moving subscriptions: a move, an arrival and an end", "nearcast/moving", "us_per_move_and_message", "moving grid"
    ),
    Headline("Ranked subscriptions, every change told", "nearcast/fast_ranked", "tick_us", "impact grid", ("IGPT + cSkyband",)),
    Headline(
        "The pipeline on Spark beside a join in SQL, two cores",
        "nearcast/pipeline",
        "messages_per_second",
        "nearcast",
        ("SQL, keyword and cell", "SQL, keyword"),
    ),
)


def front_page(pages: Mapping[str, Sequence[Results]]) -> str:
    """The page over all others: file name → the results it shows."""
    found = {results.plan.name: results for shown in pages.values() for results in shown}
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
    counts = Counter(results.verdict for results in found.values())
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    meanings = [[plain(metric.label), plain(metric.description)] for metric in METRICS.values()]
    return "\n".join(
        (
            f"# Experiments\n\n{_PREFACE}\n## Five numbers\n",
            table(["", "ours", "best of the others", "factor", "where"], [_headline(one, found) for one in HEADLINES]),
            f"## Every claim\n\n{len(found)} experiments: {summary}.\n\n{_HOW_TO_READ}",
            table(["experiment", "figure", "size", "verdict"], claims),
            "## What the columns mean\n",
            table(["column", "meaning"], meanings),
        )
    )


def _headline(headline: Headline, found: Mapping[str, Results]) -> list[str]:
    results = found.get(headline.plan)
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
    where = f"`{headline.plan}`, {results.plan.vary_label} {results.labels()[point]}"
    return [
        headline.text,
        f"{written(ours)} {plain(metric.label)}",
        f"{written(theirs)} ({plain(best)})",
        f"{written(factor)}×",
        where,
    ]
