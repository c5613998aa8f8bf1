"""What a plan expects of its curves, judged on measured values: reproduced, same trend or not reproduced.

Each rule is a function from curves to a judgement; the levels are the same for all rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks.metrics import METRICS
from benchmarks.toml_table import TomlTable

Verdict = Literal["reproduced", "same trend", "not reproduced", "not judged"]
# From best to worst. A claim that could not be judged is not reproduced yet, so it weighs more than a trend.
VERDICTS: tuple[Verdict, ...] = ("reproduced", "same trend", "not judged", "not reproduced")

# A growth or a share that misses its bound by less than this is still the same trend.
_NEARLY = 1.2
# The factor that "about" allows, and the one up to which it is the same trend.
_ABOUT, _ROUGHLY = 1.5, 3.0

# One metric: x value → measured value, for each series.
Curves = Mapping[str, Mapping[int | float | str, float]]


class Judgement(NamedTuple):
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """One rule of a plan; `text` states it in words, `at` limits it to some values of the x axis."""

    text: str
    rule: str
    argument: tuple[Any, ...]
    metric: str
    at: tuple[Any, ...]

    def judge(self, curves: Curves) -> Judgement:
        """Judge the curves of `metric`."""
        if not self.rule:
            return Judgement("not judged", "stated for the reader; no rule in the plan")
        series = [name for name in self.argument if isinstance(name, str)]
        if any(not curves.get(name) for name in series):
            return Judgement("not judged", f"no values of {METRICS[self.metric].label} for {', '.join(series)}")
        limited = {name: self._limited(curves[name]) for name in series}
        if any(not values for values in limited.values()):
            return Judgement("not judged", f"nothing was measured at {', '.join(map(str, self.at))}")
        return _RULES[self.rule](limited, self.argument)

    def _limited(self, values: Mapping[int | float | str, float]) -> dict[int | float | str, float]:
        return {x: value for x, value in values.items() if not self.at or x in self.at}


def overall(judgements: Sequence[Judgement]) -> Verdict:
    """The verdict on a plan: that of its worst expectation."""
    return max((judgement.verdict for judgement in judgements), key=VERDICTS.index, default="not judged")


def span_of(values: Sequence[float], digits: int = 2) -> str:
    """The lowest and the highest of some values, in words."""
    lowest, highest = (f"{f(values):.{digits}g}" for f in (min, max))
    return lowest if lowest == highest else f"{lowest} to {highest}"


def read_expectation(table: TomlTable, labels: Sequence[str]) -> Expectation:
    """`[[expect]]` of a plan: a text, at most one rule, a metric, and where it holds."""
    rules = [rule for rule in _RULES if table.has(rule)]
    if len(rules) > 1:
        raise table.problem(f"has the rules {', '.join(rules)}; give each its own [[expect]]")
    argument: tuple[Any, ...] = ()
    if rules:
        value = table.take(rules[0])
        argument = tuple(value) if isinstance(value, list) else (value,)
        shape = _SHAPES[rules[0]]
        if len(argument) != len(shape) or not all(isinstance(a, kind) for a, kind in zip(argument, shape, strict=True)):
            raise table.problem(f"has {rules[0]} = {value!r}; expected {_shown(shape)}")
        unknown = [name for name in argument if isinstance(name, str) and name not in labels]
        if unknown:
            raise table.problem(f"names the series {unknown}; the plan has {', '.join(labels)}")
    metric = table.text("metric", "us_per_message")
    if metric not in METRICS:
        raise table.problem(f"has metric = {metric!r}; expected one of {', '.join(METRICS)}")
    at = tuple(table.values("at")) if table.has("at") else ()
    expectation = Expectation(table.text("text"), rules[0] if rules else "", argument, metric, at)
    table.nothing_left()
    return expectation


# --- rules -----------------------------------------------------------------------------------------------------------


def _series_faster(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """The first series lies below the second."""
    faster, slower = (curves[name] for name in argument)
    ratios = [slower[x] / faster[x] if faster[x] else float("inf") for x in faster if x in slower]
    if not ratios:
        return Judgement("not judged", "the two were never measured at the same point")
    n_holding = sum(ratio > 1 for ratio in ratios)
    reason = f"{argument[1]} is {span_of(ratios)} times {argument[0]}; more at {n_holding} of {len(ratios)} points"
    if n_holding == len(ratios):
        return Judgement("reproduced", reason)
    return Judgement("same trend" if 2 * n_holding > len(ratios) else "not reproduced", reason)


def _grows_slower(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """From the first to the last x, the first series grows by a smaller factor than the second."""
    first, second = (_growth(curves[name]) for name in argument)
    reason = f"{argument[0]} grows {first:.2g}x, {argument[1]} {second:.2g}x"
    return _levelled(first / second, 1.0, _NEARLY, reason)


def _grows_at_most_linearly(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """The slope in a log-log plot is at most one (5 % for noise)."""
    values = curves[argument[0]]
    if len(values) < 2:
        return Judgement("not judged", "a slope needs two points")
    x = np.log([float(value) for value in values])
    slope = float(np.polyfit(x, np.log(list(values.values())), 1)[0])
    return _levelled(slope, 1.05, _NEARLY, f"{argument[0]} grows with power {slope:.2f}")


def _stays_within(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """Nowhere above a multiple of the better of the other series."""
    name, factor, *others = argument
    ratios = [value / min(curves[other][x] for other in others) for x, value in curves[name].items()]
    reason = f"{name} is {min(ratios):.2f} to {max(ratios):.2f} times the better one; expected at most {factor:.3g}"
    return _levelled(max(ratios) / factor, 1.0, _NEARLY, reason)


def _stays_flat(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """The highest point is at most a multiple of the lowest."""
    name, factor = argument
    values = list(curves[name].values())
    spread = max(values) / min(values)
    return _levelled(spread / factor, 1.0, _NEARLY, f"{name} varies by a factor of {spread:.2f}; expected at most {factor:.3g}")


def _near_best(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """At one x, at most a multiple of the lowest point."""
    name, x, factor = argument
    values = curves[name]
    if x not in values:
        return Judgement("not judged", f"nothing was measured at {x}")
    best = min(values, key=lambda at: values[at])
    ratio = values[x] / values[best]
    reason = f"{name} at {x} is {ratio:.2f} times its best, at {best}; expected at most {factor:.3g}"
    return _levelled(ratio / factor, 1.0, _NEARLY, reason)


def _at_most(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """Nowhere above a bound."""
    worst = max(curves[argument[0]].values())
    return _levelled(worst / argument[1], 1.0, 2.0, f"{argument[0]} reaches {worst:.3g}, expected at most {argument[1]:.3g}")


def _about(curves: Curves, argument: tuple[Any, ...]) -> Judgement:
    """Everywhere near a value."""
    values = list(curves[argument[0]].values())
    factor = max(max(value / argument[1], argument[1] / value) for value in values)
    return _levelled(factor, _ABOUT, _ROUGHLY, f"{argument[0]} is {span_of(values, 3)}, expected about {argument[1]:.3g}")


_RULES: dict[str, Callable[[Curves, tuple[Any, ...]], Judgement]] = {
    "series_faster": _series_faster,
    "grows_slower": _grows_slower,
    "grows_at_most_linearly": _grows_at_most_linearly,
    "stays_within": _stays_within,
    "stays_flat": _stays_flat,
    "near_best": _near_best,
    "at_most": _at_most,
    "about": _about,
}
_SHAPES: dict[str, tuple[Any, ...]] = {
    "series_faster": (str, str),
    "grows_slower": (str, str),
    "grows_at_most_linearly": (str,),
    "stays_within": (str, (int, float), str, str),
    "stays_flat": (str, (int, float)),
    "near_best": (str, (int, float), (int, float)),
    "at_most": (str, (int, float)),
    "about": (str, (int, float)),
}


def _shown(shape: tuple[Any, ...]) -> str:
    return "[" + ", ".join("a series" if kind is str else "a number" for kind in shape) + "]"


def _growth(values: Mapping[int | float | str, float]) -> float:
    ordered = list(values.values())
    return ordered[-1] / ordered[0] if ordered[0] else float("inf")


def _levelled(value: float, reproduced: float, same_trend: float, reason: str) -> Judgement:
    if value <= reproduced:
        return Judgement("reproduced", reason)
    return Judgement("same trend" if value <= same_trend else "not reproduced", reason)
