"""The work beside a verdict: counters of the series that an expectation compares. They do not depend on the machine."""

from __future__ import annotations

from benchmarks.expectations import Expectation, span_of
from benchmarks.metrics import METRICS
from benchmarks.results import Results

# What explains a metric; what explains the others.
_COUNTERS = {
    "us_per_move": ("candidates_per_move",),
    "bytes_per_subscription": ("copies",),
    "index_bytes_per_subscription": ("copies",),
    "expiry_us": ("refills_per_message", "held_per_subscription"),
}
_OF_MESSAGES = ("candidates_per_message", "nodes_per_message")


def work_beside(results: Results, expected: Expectation) -> str:
    """How many times the work of the first series each other one has, counter by counter; nothing where there is none."""
    first, *others = dict.fromkeys(name for name in expected.argument if isinstance(name, str)) or ("",)
    counters = {name: results.curves(name) for name in _COUNTERS.get(expected.metric, _OF_MESSAGES)}
    told = []
    for other in others:
        compared = []
        for name, curves in counters.items():
            own = {x: value for x, value in curves.get(first, {}).items() if value and (not expected.at or x in expected.at)}
            ratios = [value / own[x] for x, value in curves.get(other, {}).items() if x in own]
            if ratios:
                compared.append(f"{span_of(ratios)} times the {METRICS[name].label}")
        if compared:
            told.append(f"{other} has {', '.join(compared)}")
    return "; ".join(told)
