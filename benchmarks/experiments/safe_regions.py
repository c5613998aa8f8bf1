"""Safe regions: subscribers need not report while they stay in theirs; work and traffic, step by step.

In each step every subscriber who moved checks whether it left its safe region, and reports if so. Then messages arrive, and the
subscribers that one of them may concern are asked where they are. Method "plain" reports every move. After every step all
methods must have the results of the first series.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.experiments import Experiment
from benchmarks.experiments.moving import Journey, Step
from benchmarks.plan import Series
from benchmarks.record import Record
from nearcast.errors import NearcastError
from nearcast.model.inputs import Id
from nearcast.model.regions import Box, Region
from nearcast.model.spaces import Space
from nearcast.moving.engine import MovingMatcher

_FEW = 200
METHODS: dict[str, bool | str] = {"plain": False, "safe_regions": True, "safe_cells": "cells"}
# The results of every subscriber after each step.
Results = list[set[tuple[Id, Id]]]


class SafeRegions(Experiment[dict[str, Any]]):
    """The parameters of a series are those of the matcher."""

    subject = "method"
    methods = METHODS
    metrics = ("ms_per_step", "traffic_per_step", "reports_per_step", "contacts_per_step")

    def read_parameters(self, series: Series) -> dict[str, Any]:
        return dict(series.parameters)

    def prepare(self) -> None:
        self.journey = Journey(self.plan, self.point)
        few = replace(self.point.size, n_subscriptions=_FEW, n_messages=_FEW, repetitions=2, chunk=_FEW)
        self.few = replace(self.point, size=few)
        self.results: list[Results] = []

    def measure(self, series: Series) -> Record:
        parameters = self.parameters[series.label]
        # Compile or load everything with a matcher that is thrown away.
        _Run(Journey(self.plan, self.few), series.subject, parameters).measure()
        record, results = _Run(self.journey, series.subject, parameters).measure()
        self.results.append(results)
        return record

    def check(self, records: Sequence[Record]) -> None:
        first = self.point.series[0].label
        for record, results, series in zip(records, self.results, self.point.series, strict=True):
            if results != self.results[0]:
                raise NearcastError(f"{series.label!r} gives other results than {first!r}: correct it first")
            n_pairs, n_messages = sum(map(len, results)), self.point.size.n_messages * self.point.size.repetitions
            record.facts["check"] = {"against": first, "messages": n_messages, "pairs": n_pairs, "equal": True}


EXPERIMENT = SafeRegions


class _Run:
    """One method on its journey: the engine, and what each subscriber knows of itself."""

    def __init__(self, journey: Journey, method: str, parameters: dict[str, Any]) -> None:
        self._journey = journey
        kind = METHODS[method]
        options: dict[str, Any] = {"safe_region": kind, "positions": self._positions_of} if kind else {}
        self._matcher = MovingMatcher(space=journey.workload.space, **options, **parameters)
        self._has_safe_regions = bool(kind)
        self._boxes = np.stack([journey.subscriptions[name].to_numpy() for name in ("x0", "y0", "x1", "y1")]).copy()
        self._safe: dict[Id, Region] = {}
        self._asked: list[Id] = []
        self._n_reported = 0
        self._seconds = 0.0

    def measure(self) -> tuple[Record, Results]:
        """The record of the whole journey, and the results."""
        journey, matcher = self._journey, self._matcher
        matcher.subscribe_table(journey.subscriptions)
        for messages in journey.past():
            matcher.publish_table(messages)
        if self._has_safe_regions:
            self._safe = matcher.safe_regions(journey.subscriptions["id"].to_pylist())
        before = self._traffic()
        seconds, results = [], []
        for step in journey.steps():
            self._seconds = 0.0
            self._travel(step)
            self._timed(matcher.advance_table, step.now)
            for chunk in step.messages:
                self._timed(matcher.publish_table, chunk)
                self._renew(self._asked)
                self._asked = []
            seconds.append(self._seconds)
            table = matcher.current_table()
            results.append(set(zip(table["subscription_id"].to_pylist(), table["message_id"].to_pylist(), strict=True)))
        after, n_steps = self._traffic(), len(seconds)
        stats = matcher.stats()
        facts = {
            "workload": journey.workload.describe(),
            "n_subscriptions": stats["subscriptions"],
            "bytes": stats["bytes"],
            "stats": stats,
            "step_seconds": seconds,
            "traffic": {name: (after[name] - before[name]) / n_steps for name in after},
        }
        n = np.array([journey.size.n_messages], np.int64)
        return Record(facts, np.array(seconds)[:, None], n), results

    def _travel(self, step: Step) -> None:
        """All subscribers of the step move; those that left their safe region report."""
        for moves in step.moves:
            numbers = moves["id"].to_numpy()
            self._boxes[:, numbers] = np.stack([moves[name].to_numpy() for name in ("x0", "y0", "x1", "y1")])
            reporting = np.array([at for at, id in enumerate(numbers.tolist()) if not self._is_safe(id)], np.int64)
            self._n_reported += len(reporting)
            if len(reporting):
                self._timed(self._matcher.move_table, moves.take(pa.array(reporting)))
                self._renew(numbers[reporting].tolist())

    def _is_safe(self, id: int) -> bool:
        region = self._safe.get(id)
        if region is None:
            return False
        x, y = _middle(self._boxes[:, id])
        return region.meets(Box(x, y, x, y), Space.PLANE)

    def _positions_of(self, ids: list[Id]) -> dict[Id, object]:
        """What subscribers answer when the engine asks where they are; they get new safe regions afterwards."""
        self._asked += ids
        return {id: Box(*self._boxes[:, int(id)].tolist()) for id in ids}

    def _renew(self, ids: Sequence[Id]) -> None:
        if self._has_safe_regions and ids:
            self._safe |= self._timed(self._matcher.safe_regions, ids)

    def _timed(self, call: Callable[[Any], Any], argument: Any) -> Any:
        begin = time.perf_counter()
        result = call(argument)
        self._seconds += time.perf_counter() - begin
        return result

    def _traffic(self) -> dict[str, int]:
        if self._has_safe_regions:
            traffic = self._matcher.traffic
            return {"reports": traffic.reports, "contacts": traffic.contacts, "safe_regions": traffic.safe_regions}
        return {"reports": self._n_reported, "contacts": 0, "safe_regions": 0}


def _middle(box: NDArray[np.float64]) -> tuple[float, float]:
    x0, y0, x1, y1 = box.tolist()
    return (x0 + x1) / 2, (y0 + y1) / 2
