"""Results as figures: an SVG per metric, series over what varies.

Numbers on the x axis give lines (logarithmic where sizes grow by factors), names give groups of bars.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.metrics import METRICS
from benchmarks.results import Results
from nearcast.errors import EnvironmentProblem

_SIZE_INCHES = (6.4, 4.0)
_TITLE_WIDTH = 78
# So many letters of a legend fit side by side, those of a key counted; a row of it is so high. Two rows are in the size.
_LEGEND_WIDTH, _KEY_WIDTH, _MOST_COLUMNS, _ROW_INCHES = 80, 7, 4, 0.22
# Colours that stay apart in print and for colour-blind readers (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Where there are more series than colours, those that have one again are dashed, or hatched.
_LINES, _HATCHES = ("-", "--", ":", "-."), ("", "//", "..", "xx")
# From the smallest to the largest by more than this: the axis is logarithmic.
_LOG_X, _LOG_Y = 8.0, 10.0
_STYLE: Mapping[str, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "nearcast",
    # Letters as letters: a tenth of the size, and they can be searched.
    "svg.fonttype": "none",
}


def plot_results(results: Results, folder: Path, metrics: Sequence[str]) -> dict[str, Path]:
    """Draw metrics into a folder; gives the SVG of each one that has values."""
    figures = {}
    for metric in metrics:
        curves = results.curves(metric)
        if any(value for values in curves.values() for value in values.values()):
            figures[metric] = folder / f"{results.plan.name.replace('/', '-')}-{metric}.svg"
            _draw(results, metric, curves, figures[metric])
    return figures


def _draw(results: Results, metric: str, curves: Mapping[str, Mapping[int | float | str, float]], path: Path) -> None:
    pyplot = _matplotlib()
    labels = results.labels()
    with pyplot.rc_context(dict(_STYLE)):
        columns = _legend_columns(list(curves))
        n_more_rows = max(0, math.ceil(len(curves) / columns) - 2)
        size = (_SIZE_INCHES[0], _SIZE_INCHES[1] + _ROW_INCHES * n_more_rows)
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        drawn = _draw_lines if all(isinstance(x, int | float) for x in labels) and len(labels) > 1 else _draw_bars
        drawn(axes, curves, labels)
        values = [value for series in curves.values() for value in series.values()]
        values += _draw_floor(axes, results, METRICS[metric].floor)
        if min(values) > 0 and max(values) / min(values) > _LOG_Y:
            axes.set_yscale("log")
            axes.set_ylim(bottom=min(values) / 2)
            _write_plainly(axes.yaxis)
        else:
            axes.set_ylim(0, 1.12 * max(values))
        axes.set_xlabel(results.plan.vary_label)
        axes.set_ylabel(METRICS[metric].label)
        title = f"{results.plan.paper}, {results.plan.figure} — size {results.size}"
        axes.set_title(textwrap.fill(title, _TITLE_WIDTH), fontsize=10, loc="left")
        figure.legend(loc="outside lower center", ncols=columns)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _legend_columns(names: Sequence[str]) -> int:
    """In how many columns the names of all series fit."""
    longest = max(len(name) for name in names) + _KEY_WIDTH
    return max(1, min(_MOST_COLUMNS, len(names), _LEGEND_WIDTH // longest))


def _draw_lines(axes: Any, curves: Mapping[str, Mapping[Any, float]], labels: Mapping[Any, str]) -> None:
    for number, (name, series) in enumerate(curves.items()):
        style = {"color": _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        style["linestyle"] = _LINES[number // len(_COLOURS) % len(_LINES)]
        axes.plot(list(series), list(series.values()), label=name, linewidth=1.8, markersize=6, **style)
    xs = [float(x) for x in labels]
    if min(xs) > 0 and max(xs) / min(xs) >= _LOG_X:
        axes.set_xscale("log")
    axes.set_xticks(xs, list(labels.values()))
    axes.minorticks_off()


def _draw_bars(axes: Any, curves: Mapping[str, Mapping[Any, float]], labels: Mapping[Any, str]) -> None:
    places = {x: place for place, x in enumerate(labels)}
    width = 0.8 / len(curves)
    for number, (name, series) in enumerate(curves.items()):
        at = [places[x] + (number - (len(curves) - 1) / 2) * width for x in series]
        style = {"color": _COLOURS[number % len(_COLOURS)], "hatch": _HATCHES[number // len(_COLOURS) % len(_HATCHES)]}
        axes.bar(at, list(series.values()), width * 0.94, label=name, edgecolor="white", linewidth=0, **style)
    axes.set_xticks(list(places.values()), list(labels.values()))
    axes.grid(visible=False, axis="x")


def _draw_floor(axes: Any, results: Results, metric: str) -> list[float]:
    """A dashed line at what nobody can be below, where it was taken down; gives its values."""
    series = results.curves(metric) if metric else {}
    if not series:
        return []
    floor = next(iter(series.values()))
    places = list(floor) if all(isinstance(x, int | float) for x in floor) and len(floor) > 1 else list(range(len(floor)))
    axes.plot(places, list(floor.values()), label=METRICS[metric].label, color="#888888", linestyle="--", linewidth=1.4)
    return list(floor.values())


def _write_plainly(axis: Any) -> None:
    """Numbers at 1, 2 and 5 of every decade, without powers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise EnvironmentProblem("plots need the package matplotlib; install it: pip install 'nearcast[bench]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
