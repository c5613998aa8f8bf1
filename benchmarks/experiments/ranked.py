"""Ranked subscriptions: they hold the best messages of a window while messages arrive and end, step by step.

The window is one of time, so that ends are timed apart from arrivals: in each step messages that are due end, then `n_messages`
arrive, and each lives for `life` steps. Methods with equal buffers start from the same state, which is made once: the window is
full, all lists are filled, and `warm_steps` have passed. Methods that report different changes have no times.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.experiments import Experiment, check_reference
from benchmarks.experiments.shared.answers import ranked_checksum
from benchmarks.experiments.shared.ranked_input import check_usable, document_frequencies, ranked_subscriptions
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast import settings
from nearcast.engine.registry import create, indexes
from nearcast.errors import NearcastError
from nearcast.model.window import TimeWindow
from nearcast.ranked.engine import Ranker
from nearcast.ranked.factory import BUFFER_KINDS, buffer_kind, buffers_for
from nearcast.ranked.indexes import RANKED_INDEXES
from nearcast.timing import in_chunks
from nearcast.workloads import open_workload

_SUBSCRIBED_AT_ONCE = 100_000
# Arrays of an opened state have no spare capacity: they are moved once, in steps that are not timed.
_UNTIMED_STEPS = 2
_WARM_MESSAGES = 20
# A state depends on its buffers, not on the index. The first of these that goes with the buffer fills it fast.
_FILLED_BY = ("impact_grid", "group_pruned")


class Method(NamedTuple):
    """An index, a buffer, the length of the lists, the number of threads, and which changes are reported."""

    subject: str
    index_parameters: dict[str, Any]
    buffer: str
    buffer_parameters: dict[str, Any]
    window_index: str
    k: int
    threads: int
    changes: str

    @property
    def state(self) -> dict[str, Any]:
        """What the state after filling depends on."""
        names = ("k", "buffer", "buffer_parameters", "window_index", "threads")
        return {name: getattr(self, name) for name in names}


def method_of(series: Series) -> Method:
    """The method that the parameters of a series describe: k, threads, changes, buffer, window_index, options of buffers.

    All other parameters are those of the index. Options of other buffers are ignored: a plan may vary an option of one buffer.
    """
    rest = dict(series.parameters)
    k, window_index = int(rest.pop("k", 20)), str(rest.pop("window_index", "auto"))
    threads, buffer = int(rest.pop("threads", 1)), str(rest.pop("buffer", "auto"))
    changes = str(rest.pop("changes", "tick"))
    buffer = buffers_for(series.subject)[0] if buffer == "auto" else buffer
    known = type(buffer_kind(buffer, {})).__dataclass_fields__
    all_options = [name for kind in BUFFER_KINDS for name in type(buffer_kind(kind, {})).__dataclass_fields__]
    given_options = {name: rest.pop(name) for name in all_options if name in rest}
    options = {name: value for name, value in given_options.items() if name in known}
    buffer_kind(buffer, options)
    create(RANKED_INDEXES, series.subject, rest)
    return Method(series.subject, rest, buffer, options, window_index, k, threads, changes)


class Ranked(Experiment[Method]):
    """The parameters of a series are those of a `Method`."""

    subject = "index"
    metrics = (
        "arrival_us",
        "expiry_us",
        "tick_us",
        "longest_call_ms",
        "candidates_per_message",
        "nodes_per_message",
        "refills_per_message",
        "held_per_subscription",
        "index_bytes_per_subscription",
        "bytes_per_subscription",
        "fill_seconds",
    )

    def read_parameters(self, series: Series) -> Method:
        return method_of(series)

    def check_plan(self) -> None:
        check_reference(self.plan, indexes("ranked"), "ranked_scan")

    def prepare(self) -> None:
        self.setup = _Setup(self.plan, self.point)
        self.folder = self.resources.enter_context(_folder_of_states())
        self.outcomes: list[_Outcome] = []

    def measure(self, series: Series) -> Record:
        self.outcomes.append(self._run(series.label, self.parameters[series.label]))
        return self.outcomes[-1].record

    def _run(self, label: str, method: Method) -> _Outcome:
        return _run(self.setup, label, method, self.folder, self.plan.check.messages)

    def check(self, records: Sequence[Record]) -> None:
        outcomes, against, size = list(self.outcomes), self.plan.check.against, self.point.size
        if against != "other":
            reference = outcomes[0].method._replace(subject=against, index_parameters={})
            if reference.buffer not in buffers_for(against):
                reference = reference._replace(buffer=buffers_for(against)[0], buffer_parameters={})
            outcomes.append(self._run(against, reference))
        for position, outcome in enumerate(outcomes):
            other = outcomes[(position + 1) % len(outcomes)]
            # Lists of different lengths have different changes.
            is_same = outcome.method.k == other.method.k
            if is_same:
                _compare(outcome, other)
            outcome.record.facts["check"] = {
                "against": other.label,
                "messages": size.n_messages * size.repetitions,
                "pairs": int(outcome.record.matches.sum()),
                "equal": is_same,
            }


EXPERIMENT = Ranked


class _Setup:
    """What all series of a point share: who subscribes, what arrives."""

    def __init__(self, plan: Plan, point: Point) -> None:
        self.size, self.seed = point.size, plan.seed
        self.workload = open_workload(point.workload, **point.workload_parameters)
        n_steps = point.size.life + point.size.warm_steps + _UNTIMED_STEPS + point.size.repetitions
        self._messages = self.workload.messages(point.size.n_messages * n_steps, plan.seed)
        self.subscriptions = ranked_subscriptions(self.workload, point.size.n_subscriptions, plan.seed)
        first_window = self._messages.slice(0, point.size.n_messages * point.size.life)
        self.idf = document_frequencies(first_window)
        self.bounds = [f(self._messages[axis].to_numpy()) for f in (np.min, np.max) for axis in ("x", "y")]

    def ranker(self, method: Method) -> Ranker:
        n_documents = self.size.n_messages * self.size.life
        return Ranker(
            TimeWindow(float(self.size.life)),
            method.subject,
            method.buffer,
            self.workload.space,
            self.bounds,
            idf=self.idf,
            n_documents=n_documents,
            window_index=method.window_index,
            threads=method.threads,
            changes=method.changes,
            buffer_parameters=method.buffer_parameters,
            **method.index_parameters,
        )

    def arriving(self, step: int) -> list[pa.Table]:
        """The messages of a step, in chunks."""
        n = self.size.n_messages
        messages = self._messages.slice(step * n, n).select(["id", "keywords", "x", "y"])
        messages = messages.append_column("time", pa.array(np.full(n, float(step))))
        return in_chunks(messages, self.size.chunk)

    def subscribe(self, ranker: Ranker, k: int) -> None:
        for part in in_chunks(self.subscriptions, _SUBSCRIBED_AT_ONCE):
            ranker.subscribe_table(part.append_column("k", pa.array(np.full(part.num_rows, k, np.int32))))
            check_usable(ranker)


class _Outcome(NamedTuple):
    """What a series ended with: its record, and what must be equal for every method."""

    label: str
    method: Method
    record: Record
    changes: list[int]
    lists: pa.Table


def _run(setup: _Setup, label: str, method: Method, folder: Path, n_checked: int) -> _Outcome:
    _warm_up(setup, method)
    state, facts = _state(setup, method, folder)
    begin = time.perf_counter()
    ranker = Ranker.open(state, method.subject, is_mapped=False, changes=method.changes, **method.index_parameters)
    facts["build_seconds"] = time.perf_counter() - begin
    first = setup.size.life + setup.size.warm_steps
    for step in range(first, first + _UNTIMED_STEPS):
        ranker.advance_table(float(step))
        for chunk in setup.arriving(step):
            ranker.publish_table(chunk)
    before = ranker.stats()
    arrivals, ends, n_bytes, n_changes, changes = [], [], [], [], []
    counters: dict[str, list[int]] = {"candidates": [], "nodes_visited": []}
    first += _UNTIMED_STEPS
    for step in range(first, first + setup.size.repetitions):
        seconds, ended = _timed(ranker.advance_table, float(step))
        ends.append(seconds)
        changes += [ended.num_rows, ranked_checksum(ended)]
        for chunk in setup.arriving(step):
            seconds, arrived = _timed(ranker.publish_table, chunk)
            check_usable(ranker)
            arrivals.append(seconds)
            n_changes.append(arrived.num_rows)
            for name, counts in counters.items():
                counts.append(getattr(ranker.report, name))
            changes += [arrived.num_rows, ranked_checksum(arrived)]
        n_bytes.append(float(ranker.stats()["bytes"]))
    stats = ranker.stats()
    n_chunks = len(arrivals)
    facts |= {
        "workload": setup.workload.describe(),
        "n_subscriptions": stats["subscriptions"],
        "n_living_messages": stats["messages"],
        "bytes": stats["bytes"],
        "table_bytes": setup.subscriptions.nbytes,
        "stats": stats,
        "step_expiry_seconds": ends,
        "step_arrival_seconds": np.array(arrivals).reshape(len(ends), -1).sum(axis=1).tolist(),
        "step_bytes": n_bytes,
        "n_refills": int(stats["refills"]) - int(before["refills"]),
        "n_scored_by_refills": int(stats["window_scored"]) - int(before["window_scored"]),
    }
    # One pass only: a stream that changes something cannot be repeated. All its chunks are kept.
    chunk_messages = np.full(n_chunks, setup.size.chunk, np.int64)
    chunk_messages[n_chunks // len(ends) - 1 :: n_chunks // len(ends)] = (setup.size.n_messages - 1) % setup.size.chunk + 1
    work = {name: np.array(counts, np.int64) for name, counts in counters.items()}
    record = Record(facts, np.array(arrivals)[None, :], chunk_messages, work, np.array(n_changes, np.int64))
    return _Outcome(label, method, record, changes, ranker.top_table(range(n_checked)))


# --- states ----------------------------------------------------------------------------------------------------------


@contextmanager
def _folder_of_states() -> Iterator[Path]:
    """Where states are kept: in the folder of the setting `bench_states`, or in a temporary one."""
    lasting = settings.text("bench_states")
    if lasting:
        yield Path(lasting)
        return
    with TemporaryDirectory(prefix="nearcast-states-") as folder:
        yield Path(folder)


def _state(setup: _Setup, method: Method, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of a ranker with a full window and filled lists, made if it is missing, and how long filling took."""
    size = setup.size
    sizes = (size.n_subscriptions, size.n_messages, size.life, size.warm_steps, setup.seed)
    key = json.dumps([sizes, setup.workload.describe(), method.state], sort_keys=True, default=str)
    state = folder / hashlib.sha256(key.encode()).hexdigest()[:16]
    facts_file = state.with_suffix(".json")
    if not facts_file.is_file():
        filled_by = next(index for index in _FILLED_BY if method.buffer in buffers_for(index))
        ranker = setup.ranker(method._replace(subject=filled_by, index_parameters={}, changes="tick"))
        for step in range(size.life):
            for chunk in setup.arriving(step):
                ranker.publish_table(chunk)
        seconds, _ = _timed(lambda k: setup.subscribe(ranker, k), method.k)
        for step in range(size.life, size.life + size.warm_steps):
            ranker.advance_table(float(step))
            for chunk in setup.arriving(step):
                ranker.publish_table(chunk)
        folder.mkdir(parents=True, exist_ok=True)
        ranker.save(state)
        facts_file.write_text(json.dumps({"fill_seconds": seconds}), encoding="utf-8")
    facts: dict[str, Any] = json.loads(facts_file.read_text(encoding="utf-8"))
    return state, facts


def _warm_up(setup: _Setup, method: Method) -> None:
    """Compile or load everything with a ranker that is thrown away."""
    ranker = setup.ranker(method)
    few = setup.subscriptions.slice(0, _WARM_MESSAGES)
    ranker.subscribe_table(few)
    for step in (0, 1, setup.size.life + 1):
        ranker.advance_table(float(step))
        ranker.publish_table(setup.arriving(step)[0].slice(0, _WARM_MESSAGES))
    ranker.subscribe_table(few)


# --- answers ---------------------------------------------------------------------------------------------------------


def _timed(call: Callable[[Any], Any], argument: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call(argument)
    return time.perf_counter() - begin, result


def _compare(one: _Outcome, other: _Outcome) -> None:
    if not one.lists.equals(other.lists):
        raise NearcastError(f"{one.label!r} ends with other lists than {other.label!r}: correct the index first")
    # Changes of whole calls cannot be compared with changes of single ticks.
    if one.method.changes != other.method.changes or one.changes == other.changes:
        return
    at = next(at for at, pair in enumerate(zip(one.changes, other.changes, strict=True)) if pair[0] != pair[1])
    raise NearcastError(
        f"{one.label!r} differs from {other.label!r} in the changes of call {at // 2}; "
        "their times are worth nothing: correct the index first"
    )
