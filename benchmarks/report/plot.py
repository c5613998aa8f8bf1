"""Figures, drawn from measured.csv: an SVG for each metric, with one curve for each series over what varies.

Numbers on the x axis give lines, on a logarithmic axis where sizes grow by factors; names give groups of bars.
"""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.metrics import METRICS
from benchmarks.plan import Plan, list_plans, read_plan
from benchmarks.report.values import VALUES_FILE, MeasuredValues, read_values
from nearcast.errors import EnvironmentProblem

FIGURES = "figures"
Value = int | float | str
Curves = Mapping[str, Mapping[Value, float]]

_SIZE_INCHES = (6.4, 4.0)
_TITLE_WIDTH = 78
# A row of the legend fits this many letters, counting a key as some; and it is this high. Two rows fit into the size.
_LEGEND_WIDTH, _KEY_WIDTH, _MOST_COLUMNS, _ROW_INCHES = 80, 7, 4, 0.22
# Colours that stay apart in print and for colour-blind readers (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# With more series than colours, the series that share a colour are dashed or hatched.
_LINES, _HATCHES = ("-", "--", ":", "-."), ("", "//", "..", "xx")
# An axis is logarithmic if its largest value is more than this many times its smallest.
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


def draw_figures(folder: Path, plans: Mapping[str, Plan] | None = None) -> list[Path]:
    """Draw what `folder`/measured.csv holds into `folder`/figures, which is replaced; returns the SVG files.

    Plans of the repository are known by their names; `plans` has others. Values of plans that are gone are not drawn.
    """
    measured = read_values(folder / VALUES_FILE)
    shutil.rmtree(folder / FIGURES, ignore_errors=True)
    (folder / FIGURES).mkdir(parents=True)
    known = set(list_plans())
    figures = []
    for values in measured:
        plan = (plans or {}).get(values.plan) or (read_plan(values.plan) if values.plan in known else None)
        if plan is not None:
            figures += plot_values(plan, values, folder / FIGURES)
    return figures


def plot_values(plan: Plan, values: MeasuredValues, folder: Path) -> list[Path]:
    """Draw the metrics of a plan that have values; returns the SVG files."""
    # The plan knows the order of the x axis and which labels are numbers.
    x_values = {label: x for label, x in plan.x_values(values.size).items() if label in values.labels}
    figures = []
    for metric in plan.drawn_metrics:
        curves = values.curves(metric, x_values)
        if any(value for series in curves.values() for value in series.values()):
            path = folder / figure_name(plan, metric)
            _draw(_Figure(plan, values, metric, curves, x_values), path)
            figures.append(path)
    return figures


def figure_name(plan: Plan, metric: str) -> str:
    return f"{plan.name.replace('/', '-')}-{metric}.svg"


@dataclass(frozen=True, slots=True)
class _Figure:
    """What one figure shows; `x_values` has the x axis: label → value."""

    plan: Plan
    values: MeasuredValues
    metric: str
    curves: Curves
    x_values: Mapping[str, Value]


def _draw(shown: _Figure, path: Path) -> None:
    pyplot = _matplotlib()
    curves, labels = shown.curves, {x: label for label, x in shown.x_values.items()}
    with pyplot.rc_context(dict(_STYLE)):
        columns = _legend_columns(list(curves))
        n_more_rows = max(0, math.ceil(len(curves) / columns) - 2)
        size = (_SIZE_INCHES[0], _SIZE_INCHES[1] + _ROW_INCHES * n_more_rows)
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        draw = _draw_lines if all(isinstance(x, int | float) for x in labels) and len(labels) > 1 else _draw_bars
        draw(axes, curves, labels)
        values = [value for series in curves.values() for value in series.values()]
        values += _draw_floor(axes, shown)
        if min(values) > 0 and max(values) / min(values) > _LOG_Y:
            axes.set_yscale("log")
            axes.set_ylim(bottom=min(values) / 2)
            _write_plainly(axes.yaxis)
        else:
            axes.set_ylim(0, 1.12 * max(values))
        axes.set_xlabel(shown.plan.vary_label)
        axes.set_ylabel(METRICS[shown.metric].label)
        title = f"{shown.plan.paper}, {shown.plan.figure} — size {shown.values.size}"
        axes.set_title(textwrap.fill(title, _TITLE_WIDTH), fontsize=10, loc="left")
        figure.legend(loc="outside lower center", ncols=columns)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _legend_columns(names: Sequence[str]) -> int:
    """The number of columns of the legend, so that the names of all series fit."""
    longest = max(len(name) for name in names) + _KEY_WIDTH
    return max(1, min(_MOST_COLUMNS, len(names), _LEGEND_WIDTH // longest))


def _draw_lines(axes: Any, curves: Curves, labels: Mapping[Value, str]) -> None:
    for number, (name, series) in enumerate(curves.items()):
        style = {"color": _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        style["linestyle"] = _LINES[number // len(_COLOURS) % len(_LINES)]
        axes.plot(list(series), list(series.values()), label=name, linewidth=1.8, markersize=6, **style)
    xs = [float(x) for x in labels]
    if min(xs) > 0 and max(xs) / min(xs) >= _LOG_X:
        axes.set_xscale("log")
    axes.set_xticks(xs, list(labels.values()))
    axes.minorticks_off()


def _draw_bars(axes: Any, curves: Curves, labels: Mapping[Value, str]) -> None:
    positions = {x: position for position, x in enumerate(labels)}
    width = 0.8 / len(curves)
    for number, (name, series) in enumerate(curves.items()):
        at = [positions[x] + (number - (len(curves) - 1) / 2) * width for x in series]
        style = {"color": _COLOURS[number % len(_COLOURS)], "hatch": _HATCHES[number // len(_COLOURS) % len(_HATCHES)]}
        axes.bar(at, list(series.values()), width * 0.94, label=name, edgecolor="white", linewidth=0, **style)
    axes.set_xticks(list(positions.values()), list(labels.values()))
    axes.grid(visible=False, axis="x")


def _draw_floor(axes: Any, shown: _Figure) -> list[float]:
    """A dashed line that no value can be below, if it was measured; returns its values."""
    metric = METRICS[shown.metric].floor
    series = shown.values.curves(metric, shown.x_values) if metric else {}
    if not series:
        return []
    floor = next(iter(series.values()))
    is_line = all(isinstance(x, int | float) for x in floor) and len(floor) > 1
    positions = list(floor) if is_line else list(range(len(floor)))
    axes.plot(positions, list(floor.values()), label=METRICS[metric].label, color="#888888", linestyle="--", linewidth=1.4)
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
