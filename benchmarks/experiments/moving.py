"""Kind "moving": subscribers travel step by step while messages come and expire; every change is reported.

In each step a share of the subscribers moves, then what is due expires, then messages arrive. `repetitions` such steps are
timed, after as many as a message lives. Series that do not report the same changes on the same journey have no times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.engine.registry import indexes
from nearcast.errors import NearcastError, PlanError
from nearcast.moving.engine import MovingMatcher
from nearcast.timing import time_once, timed
from nearcast.workloads import open_workload
from nearcast.workloads.base import Workload
from nearcast.workloads.moving import Moving

_WARM_SUBSCRIPTIONS = 500
# Odd constants that spread a pair of ids over 64 bits; sums of them tell two sets of changes apart whatever their order.
_MIX_SUBSCRIPTION, _MIX_MESSAGE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class Step(NamedTuple):
    """What happens at one time: `moves` and `messages` in chunks."""

    now: float
    moves: list[pa.Table]
    messages: list[pa.Table]


class Journey:
    """What all series of a point share: who subscribes, and what happens step by step."""

    def __init__(self, workload: Workload, plan: Plan, point: Point) -> None:
        self.workload, self.size, self.seed = workload, point.size, plan.seed
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self._messages = workload.messages(point.size.n_messages * (point.size.life + point.size.repetitions), plan.seed)

    def past(self) -> Iterator[pa.Table]:
        """Messages of the steps before the journey."""
        return (self._arriving(step) for step in range(self.size.life))

    def steps(self) -> Iterator[Step]:
        """The steps to time, from the start; equal for every series."""
        for at, moves in zip(range(self.size.repetitions), self.travels(), strict=False):
            step = self.size.life + at
            yield Step(float(step), _chunks(moves, self.size.chunk), _chunks(self._arriving(step), self.size.chunk))

    def travels(self) -> Iterator[pa.Table]:
        """The moves of one step after the other, without end."""
        raise NotImplementedError

    def _arriving(self, step: int) -> pa.Table:
        n = self.size.n_messages
        messages = self._messages.slice(step * n, n)
        time = pa.array(np.full(n, float(step)))
        messages = messages.set_column(messages.schema.get_field_index("time"), "time", time)
        return messages.append_column("expires", pa.array(np.full(n, float(step + self.size.life))))


class RoadJourney(Journey):
    """Subscribers travel on roads."""

    workload: Moving

    def __init__(self, plan: Plan, point: Point) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        if not isinstance(workload, Moving):
            raise PlanError(f"plan {plan.name!r} of kind 'moving' has the workload {point.workload!r}; expected 'moving'")
        super().__init__(workload, plan, point)

    def travels(self) -> Iterator[pa.Table]:
        subscribers = self.workload.subscribers(self.size.n_subscriptions, self.seed)
        while True:
            yield self.workload.moves(subscribers.advance(), self.seed)


def measure_moving(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    _check_reference(plan)
    say("generating")
    journey = RoadJourney(plan, point)
    lived = []
    # Series that take turns share whatever else the machine does meanwhile, but all must fit into memory.
    for group in [point.series] if point.size.takes_turns else [[series] for series in point.series]:
        living = [Living(journey, series, say) for series in group]
        for step in journey.steps():
            for one in living:
                one.live(step)
        lived += [one.end(plan.check.messages) for one in living]
    say("checking")
    if plan.check.against != "other":
        reference = Living(journey, Series(plan.check.against, plan.check.against), lambda what: None)
        for step in journey.steps():
            reference.live(step)
        lived.append(reference.end(plan.check.messages))
    for this, next_one in zip(lived, [*lived[1:], lived[0]], strict=True):
        _compare(this, next_one)
        # Of every message of every step all changes are compared.
        n_compared = point.size.n_messages * point.size.repetitions
        checked = {"against": next_one.label, "messages": n_compared, "pairs": len(this.results), "equal": True}
        this.record.facts["check"] = checked
    return [this.record for this in lived[: len(point.series)]]


class Lived(NamedTuple):
    """A journey that is over: its record, and what must be the same for every index.

    `changes` has a number and a checksum for moves, expiry and arrivals of every step.
    """

    label: str
    record: Record
    changes: list[int]
    results: pa.Table


class Living:
    """One series on its way."""

    def __init__(self, journey: Journey, series: Series, say: Callable[[str], None]) -> None:
        say(series.label)
        self._journey, self._label = journey, series.label
        _warm_up(journey, series)

        def build() -> MovingMatcher:
            matcher = MovingMatcher(series.subject, journey.workload.space, **series.parameters)
            matcher.subscribe_table(journey.subscriptions)
            return matcher

        self._build_seconds, self._matcher = timed(build)
        for messages in journey.past():
            self._matcher.publish_table(messages)
        self._seconds: list[NDArray[np.float64]] = []
        self._changes: list[int] = []
        self._facts: dict[str, list[float]] = {name: [] for name in _STEP_FACTS}
        self._counters: dict[str, NDArray[np.int64]] = {}
        self._matches = np.empty(0, np.int64)

    def live(self, step: Step) -> None:
        """Move, expire, arrive; the clock runs inside the calls only."""
        moving = Calls(self._matcher.move_table, self._matcher)
        move_seconds = self.seconds_of(step.moves, moving).sum()
        expiring = Calls(self._matcher.advance_table, self._matcher)
        expiry_seconds = self.seconds_of([step.now], expiring).sum()
        arriving = Calls(self._matcher.publish_table, self._matcher)
        self._seconds.append(self.seconds_of(step.messages, arriving))
        for calls in (moving, expiring, arriving):
            self._changes += [calls.n_changes, calls.checksum]
        n_moves = sum(chunk.num_rows for chunk in step.moves)
        step_facts = (move_seconds, n_moves, moving.n_changes, sum(moving.candidates), expiry_seconds, expiring.n_changes)
        for name, value in zip(_STEP_FACTS, (*step_facts, self._matcher.stats()["bytes"]), strict=True):
            self._facts[name].append(float(value))
        # Of the last step: times are the best of all, work is much the same in each.
        self._counters = {"candidates": np.array(arriving.candidates), "nodes_visited": np.array(arriving.nodes)}
        first = step.messages[0]["id"][0].as_py()
        self._matches = np.bincount(arriving.message_ids() - first, minlength=self._journey.size.n_messages)

    def seconds_of(self, chunks: Sequence[Any], calls: Calls) -> NDArray[np.float64]:
        """Of the call for each chunk."""
        seconds = time_once(chunks, calls, calls.let_go)
        calls.let_go()
        return seconds

    def end(self, n_checked: int) -> Lived:
        """The record of the journey, and results to compare."""
        stats = self._matcher.stats()
        facts: dict[str, Any] = {
            "workload": self._journey.workload.describe(),
            "n_subscriptions": stats["subscriptions"],
            "n_living_messages": stats["messages"],
            "build_seconds": self._build_seconds,
            "bytes": stats["bytes"],
            "table_bytes": self._journey.subscriptions.nbytes,
            "stats": stats,
            **self._facts,
        }
        n, size = self._journey.size.n_messages, self._journey.size.chunk
        chunk_messages = np.array([min(size, n - first) for first in range(0, n, size)], np.int64)
        record = Record(facts, np.stack(self._seconds), chunk_messages, self._counters, self._matches)
        ids = np.unique(np.linspace(0, self._journey.size.n_subscriptions - 1, n_checked).astype(np.int64))
        results = self._matcher.current_table(ids.tolist())
        in_order = results.sort_by([(name, "ascending") for name in results.column_names]).combine_chunks()
        return Lived(self._label, record, self._changes, in_order)


_STEP_FACTS = (
    "step_move_seconds",
    "step_moves",
    "step_move_updates",
    "step_move_candidates",
    "step_expiry_seconds",
    "step_expiry_updates",
    "step_bytes",
)


class Calls:
    """Calls a method of the matcher; outside of the clock it sums up what a call changed and what work it was.

    A call finds the answer of the last one gone, as when somebody reads one after the other: memory of columns is used again.
    """

    def __init__(self, call: Callable[[Any], pa.Table], matcher: MovingMatcher) -> None:
        self._call, self._matcher = call, matcher
        self._answer: pa.Table | None = None
        self._checksums: list[np.uint64] = []
        self._message_ids: list[NDArray[np.int64]] = []
        self.n_changes = 0
        self.candidates: list[int] = []
        self.nodes: list[int] = []

    def __call__(self, given: Any) -> None:
        self._answer = self._call(given)

    def let_go(self, following: Any = None) -> Any:
        """Sum up the last answer, before what follows."""
        if self._answer is not None:
            report = self._matcher.report
            if report.rejected:
                row, reason = report.rejected[0]
                raise NearcastError(f"{len(report.rejected)} generated rows were rejected; the first, row {row}: {reason}")
            self.candidates.append(report.candidates)
            self.nodes.append(report.nodes_visited)
            columns = [np.asarray(column) for column in self._answer.columns]
            self.n_changes += self._answer.num_rows
            self._checksums.append(checksum_of(*columns))
            self._message_ids.append(columns[1].astype(np.int64))
            self._answer = None
        return following

    @property
    def checksum(self) -> int:
        """Equal for equal sets of changes."""
        return int(np.array(self._checksums, np.uint64).sum())

    def message_ids(self) -> NDArray[np.int64]:
        return np.concatenate(self._message_ids)


def checksum_of(subscription: NDArray[Any], message: NDArray[Any], change: NDArray[Any]) -> np.uint64:
    """Equal for equal sets of changes, whatever their order; the sum of sums is that of all."""
    own, other, sign = (ids.astype(np.int64).astype(np.uint64) for ids in (subscription, message, change))
    mixed = (own + np.uint64(1)) * _MIX_SUBSCRIPTION ^ (other + np.uint64(1)) * _MIX_MESSAGE
    return np.uint64(((mixed ^ (mixed >> np.uint64(29))) * (sign + np.uint64(2))).sum())


def _warm_up(journey: Journey, series: Series) -> None:
    """Compile or load everything with a matcher that is thrown away."""
    matcher = MovingMatcher(series.subject, journey.workload.space, **series.parameters)
    matcher.subscribe_table(journey.subscriptions.slice(0, _WARM_SUBSCRIPTIONS))
    for messages in journey.past():
        matcher.publish_table(messages.slice(0, _WARM_SUBSCRIPTIONS))
    step = next(journey.steps())
    own = step.moves[0].filter(pa.compute.less(step.moves[0]["id"], _WARM_SUBSCRIPTIONS))
    matcher.move_table(own)
    matcher.advance_table(step.now)
    matcher.publish_table(step.messages[0])
    matcher.subscribe_table(journey.subscriptions.slice(_WARM_SUBSCRIPTIONS, 1))


def _check_reference(plan: Plan) -> None:
    known = indexes("moving")
    against = plan.check.against
    if against == "other":
        if len(plan.series) < 2:
            raise PlanError(f"plan {plan.name!r} checks against 'other' but has one series; check against 'moving_scan'")
    elif against not in known:
        raise PlanError(f"plan {plan.name!r} checks against {against!r}; expected 'other' or one of {', '.join(known)}")


def _compare(one: Lived, other: Lived) -> None:
    if one.changes == other.changes and one.results.equals(other.results):
        return
    step = next((at for at, pair in enumerate(zip(one.changes, other.changes, strict=True)) if pair[0] != pair[1]), None)
    where = "in the results at the end" if step is None else f"in the changes of step {step // 6}"
    raise NearcastError(
        f"{one.label!r} differs from {other.label!r} {where}; their times are worth nothing: correct the index first"
    )


def _chunks(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]
