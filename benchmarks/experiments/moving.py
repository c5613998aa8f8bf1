"""Moving: subscribers travel step by step while messages arrive and expire; every change of a result is reported.

In each step a share of the subscribers moves, then messages that are due expire, then new ones arrive. `repetitions` such steps
are timed, after as many steps as a message lives. Series that report different changes on the same journey have no times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.experiments import Experiment, OnProgress, check_reference
from benchmarks.experiments.shared.answers import moving_checksum
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.engine.registry import create, indexes
from nearcast.errors import NearcastError, PlanError
from nearcast.moving.engine import MovingMatcher
from nearcast.moving.indexes import MOVING_INDEXES
from nearcast.timing import in_chunks, time_once, timed
from nearcast.workloads import open_workload
from nearcast.workloads.moving import Moving as MovingWorkload

_WARM_SUBSCRIPTIONS = 500
_STEP_FACTS = (
    "step_move_seconds",
    "step_moves",
    "step_move_updates",
    "step_move_candidates",
    "step_expiry_seconds",
    "step_expiry_updates",
    "step_bytes",
)


class Moving(Experiment[Mapping[str, Any]]):
    """The parameters of a series are those of its index."""

    subject = "index"
    metrics = (
        "us_per_message",
        "us_per_move",
        "us_per_expiry",
        "matches_per_message",
        "updates_per_move",
        "candidates_per_message",
        "candidates_per_move",
        "bytes_per_subscription",
    )

    def read_parameters(self, series: Series) -> Mapping[str, Any]:
        create(MOVING_INDEXES, series.subject, series.parameters)
        return series.parameters

    def check_plan(self) -> None:
        check_reference(self.plan, indexes("moving"), "moving_scan")

    def prepare(self) -> None:
        self.journey = Journey(self.plan, self.point)
        self.outcomes: list[Outcome] = []

    def measure(self, series: Series) -> Record:
        return self.measure_group([series])[0]

    def measure_group(self, group: Sequence[Series]) -> list[Record]:
        runs = [Run(self.journey, series, self.on_progress) for series in group]
        for step in self.journey.steps():
            for run in runs:
                run.take(step)
        outcomes = [run.outcome(self.plan.check.messages) for run in runs]
        self.outcomes += outcomes
        return [outcome.record for outcome in outcomes]

    def check(self, records: Sequence[Record]) -> None:
        outcomes, against, size = list(self.outcomes), self.plan.check.against, self.point.size
        if against != "other":
            reference = Run(self.journey, Series(against, against))
            for step in self.journey.steps():
                reference.take(step)
            outcomes.append(reference.outcome(self.plan.check.messages))
        # All changes of every message of every step are compared.
        n_compared = size.n_messages * size.repetitions
        for position, record in enumerate(records):
            outcome, other = outcomes[position], outcomes[(position + 1) % len(outcomes)]
            _compare(outcome, other)
            pairs = len(outcome.results)
            record.facts["check"] = {"against": other.label, "messages": n_compared, "pairs": pairs, "equal": True}


EXPERIMENT = Moving


class Step(NamedTuple):
    """What happens at one time: `moves` and `messages` in chunks."""

    now: float
    moves: list[pa.Table]
    messages: list[pa.Table]


class Journey:
    """What all series of a point share: who subscribes, and what happens step by step. Subscribers travel on roads."""

    def __init__(self, plan: Plan, point: Point) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        if not isinstance(workload, MovingWorkload):
            raise PlanError(f"plan {plan.name!r} of kind {plan.kind!r} has the workload {point.workload!r}; expected 'moving'")
        self.workload, self.size, self.seed = workload, point.size, plan.seed
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self._messages = workload.messages(point.size.n_messages * (point.size.life + point.size.repetitions), plan.seed)

    def past(self) -> Iterator[pa.Table]:
        """Messages of the steps before the journey."""
        return (self._arriving(step) for step in range(self.size.life))

    def steps(self) -> Iterator[Step]:
        """The steps to time, from the start; equal for every series."""
        subscribers = self.workload.subscribers(self.size.n_subscriptions, self.seed)
        for step in range(self.size.life, self.size.life + self.size.repetitions):
            moves = self.workload.moves(subscribers.advance(), self.seed)
            yield Step(float(step), in_chunks(moves, self.size.chunk), in_chunks(self._arriving(step), self.size.chunk))

    def _arriving(self, step: int) -> pa.Table:
        n = self.size.n_messages
        messages = self._messages.slice(step * n, n)
        time = pa.array(np.full(n, float(step)))
        messages = messages.set_column(messages.schema.get_field_index("time"), "time", time)
        return messages.append_column("expires", pa.array(np.full(n, float(step + self.size.life))))


class Outcome(NamedTuple):
    """What a journey ended with: its record, and what must be equal for every index.

    `changes` has a count and a checksum for the moves, the expiry and the arrivals of every step.
    """

    label: str
    record: Record
    changes: list[int]
    results: pa.Table


class Run:
    """One series on its journey."""

    def __init__(self, journey: Journey, series: Series, on_progress: OnProgress = lambda what: None) -> None:
        on_progress(series.label)
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

    def take(self, step: Step) -> None:
        """Move, expire, arrive; only the calls themselves are timed."""
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
        # Counters of the last step are kept: they hardly differ from step to step.
        self._counters = {"candidates": np.array(arriving.candidates), "nodes_visited": np.array(arriving.nodes)}
        first = step.messages[0]["id"][0].as_py()
        self._matches = np.bincount(arriving.message_ids() - first, minlength=self._journey.size.n_messages)

    def seconds_of(self, chunks: Sequence[Any], calls: Calls) -> NDArray[np.float64]:
        """Seconds of the call for each chunk."""
        seconds = time_once(chunks, calls, calls.count_answer)
        calls.count_answer()
        return seconds

    def outcome(self, n_checked: int) -> Outcome:
        """The record of the journey, and the results of `n_checked` subscriptions to compare."""
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
        return Outcome(self._label, record, self._changes, in_order)


class Calls:
    """Calls a method of the matcher; between calls, outside of the clock, it counts what the call changed and its work.

    An answer is dropped before the next call, as by a caller who reads one after the other: memory of columns is used again.
    """

    def __init__(self, call: Callable[[Any], pa.Table], matcher: MovingMatcher) -> None:
        self._call, self._matcher = call, matcher
        self._answer: pa.Table | None = None
        self._checksums: list[np.uint64] = []
        self._message_ids: list[NDArray[np.int64]] = []
        self.n_changes = 0
        self.candidates: list[int] = []
        self.nodes: list[int] = []

    def __call__(self, argument: Any) -> None:
        self._answer = self._call(argument)

    def count_answer(self, following: Any = None) -> Any:
        """Count the last answer and drop it; gives `following`, the argument of the next call."""
        if self._answer is not None:
            report = self._matcher.report
            if report.rejected:
                row, reason = report.rejected[0]
                raise NearcastError(f"{len(report.rejected)} generated rows were rejected; the first, row {row}: {reason}")
            self.candidates.append(report.candidates)
            self.nodes.append(report.nodes_visited)
            columns = [np.asarray(column) for column in self._answer.columns]
            self.n_changes += self._answer.num_rows
            self._checksums.append(moving_checksum(*columns))
            self._message_ids.append(columns[1].astype(np.int64))
            self._answer = None
        return following

    @property
    def checksum(self) -> int:
        """Equal for equal sets of changes."""
        return int(np.array(self._checksums, np.uint64).sum())

    def message_ids(self) -> NDArray[np.int64]:
        return np.concatenate(self._message_ids)


def _warm_up(journey: Journey, series: Series) -> None:
    """Compile or load everything with a matcher that is thrown away."""
    matcher = MovingMatcher(series.subject, journey.workload.space, **series.parameters)
    matcher.subscribe_table(journey.subscriptions.slice(0, _WARM_SUBSCRIPTIONS))
    for messages in journey.past():
        matcher.publish_table(messages.slice(0, _WARM_SUBSCRIPTIONS))
    step = next(journey.steps())
    matcher.move_table(step.moves[0].filter(pa.compute.less(step.moves[0]["id"], _WARM_SUBSCRIPTIONS)))
    matcher.advance_table(step.now)
    matcher.publish_table(step.messages[0])
    matcher.subscribe_table(journey.subscriptions.slice(_WARM_SUBSCRIPTIONS, 1))


def _compare(one: Outcome, other: Outcome) -> None:
    if one.changes == other.changes and one.results.equals(other.results):
        return
    step = next((at for at, pair in enumerate(zip(one.changes, other.changes, strict=True)) if pair[0] != pair[1]), None)
    where = "in the results at the end" if step is None else f"in the changes of step {step // 6}"
    raise NearcastError(
        f"{one.label!r} differs from {other.label!r} {where}; their times are worth nothing: correct the index first"
    )
