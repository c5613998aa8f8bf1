"""Kind "silent": subscribers who need not report while they stay in their safe regions; work and traffic, step by step.

In each step everybody who travels looks whether it left its safe region, and reports if so; then messages arrive, and whoever
one of them may concern is asked. Method "plain" reports every move. All must have the results of "plain" after every step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.bench.moving_kind import RoadJourney, Step
from nearcast.bench.plan import Plan, Point, Series
from nearcast.bench.record import Record
from nearcast.errors import NearcastError, PlanError
from nearcast.model.inputs import Id
from nearcast.model.regions import Box, Region
from nearcast.model.spaces import Space
from nearcast.moving.engine import MovingMatcher

_FEW = 200
METHODS: dict[str, bool | str] = {"plain": False, "safe_regions": True, "safe_cells": "cells"}


def measure_silence(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    for series in point.series:
        if series.subject not in METHODS:
            raise PlanError(f"plan {plan.name!r} has the method {series.subject!r}; expected one of {', '.join(METHODS)}")
    say("generating")
    journey = RoadJourney(plan, point)
    few = replace(point.size, n_subscriptions=_FEW, n_messages=_FEW, repetitions=2, chunk=_FEW)
    lived = []
    for series in point.series:
        say(series.label)
        # Compile or load everything with a matcher that is thrown away.
        _Travelling(RoadJourney(plan, replace(point, size=few)), series).live()
        lived.append(_Travelling(journey, series).live())
    say("checking")
    for (record, results), series in zip(lived, point.series, strict=True):
        if results != lived[0][1]:
            raise NearcastError(f"{series.label!r} gives other results than {point.series[0].label!r}: correct it first")
        n_pairs, n_messages = sum(len(pairs) for pairs in results), point.size.n_messages * point.size.repetitions
        record.facts["check"] = {"against": point.series[0].label, "messages": n_messages, "pairs": n_pairs, "equal": True}
    return [record for record, _ in lived]


class _Travelling:
    """One method on its way: the engine, and what each subscriber knows of itself."""

    def __init__(self, journey: RoadJourney, series: Series) -> None:
        self._journey = journey
        kind = METHODS[series.subject]
        silent: dict[str, Any] = {"safe_region": kind, "positions": self._where} if kind else {}
        self._matcher = MovingMatcher(space=journey.workload.space, **silent, **series.parameters)
        self._is_silent = bool(kind)
        self._boxes = np.stack([journey.subscriptions[name].to_numpy() for name in ("x0", "y0", "x1", "y1")]).copy()
        self._safe: dict[Id, Region] = {}
        self._asked: list[Id] = []
        self._n_reported = 0
        self._seconds = 0.0

    def live(self) -> tuple[Record, list[set[tuple[Id, Id]]]]:
        """The record, and after each step the results of every subscriber."""
        journey, matcher = self._journey, self._matcher
        matcher.subscribe_table(journey.subscriptions)
        for messages in journey.past():
            matcher.publish_table(messages)
        if self._is_silent:
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
        """Everybody moves; who must, reports."""
        for moves in step.moves:
            numbers = moves["id"].to_numpy()
            self._boxes[:, numbers] = np.stack([moves[name].to_numpy() for name in ("x0", "y0", "x1", "y1")])
            reporting = np.array([at for at, id in enumerate(numbers.tolist()) if not self._is_safe(id)], np.int64)
            self._n_reported += len(reporting)
            if len(reporting):
                self._timed(self._matcher.move_table, moves.take(pa.array(reporting)))
                self._renew(numbers[reporting].tolist())

    def _is_safe(self, id: int) -> bool:
        where = self._safe.get(id)
        if where is None:
            return False
        x, y = _middle(self._boxes[:, id])
        return where.meets(Box(x, y, x, y), Space.PLANE)

    def _where(self, ids: list[Id]) -> dict[Id, object]:
        """What subscribers answer when they are asked; they get a new safe region afterwards."""
        self._asked += ids
        return {id: Box(*self._boxes[:, int(id)].tolist()) for id in ids}

    def _renew(self, ids: Sequence[Id]) -> None:
        if self._is_silent and ids:
            self._safe |= self._timed(self._matcher.safe_regions, ids)

    def _timed(self, work: Callable[[Any], Any], given: Any) -> Any:
        begin = time.perf_counter()
        done = work(given)
        self._seconds += time.perf_counter() - begin
        return done

    def _traffic(self) -> dict[str, int]:
        if self._is_silent:
            counted = self._matcher.traffic
            return {"reports": counted.reports, "contacts": counted.contacts, "safe_regions": counted.safe_regions}
        return {"reports": self._n_reported, "contacts": 0, "safe_regions": 0}


def _middle(box: NDArray[np.float64]) -> tuple[float, float]:
    x0, y0, x1, y1 = box.tolist()
    return (x0 + x1) / 2, (y0 + y1) / 2
