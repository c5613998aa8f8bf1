"""An engine as a service runs it: words in, ids out, on one thread and on two, message by message, with late subscriptions,
during a merge, saved, opened, and first used in a process of its own.

Everything is measured on one matcher per series, one after the other. Answers that should be equal are compared: on two
threads, with late subscriptions in place or built in, and from disk.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from benchmarks.experiments import Experiment
from benchmarks.experiments.shared.answers import compare_answers, count_work, sorted_answer, spread_rows
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.boolean.engine import Matcher
from nearcast.boolean.indexes import BOOLEAN_INDEXES
from nearcast.engine.registry import create
from nearcast.errors import NearcastError, PlanError
from nearcast.machine import peak_bytes, reset_peak
from nearcast.model.message import Message
from nearcast.timing import in_chunks, time_once, time_passes, timed
from nearcast.workloads import open_workload

# Late subscriptions, as a share of those built; and those after them, enough to start a merge.
_LATE, _MERGED = 0.01, 0.12
_LATE_AT_ONCE = 50_000
_BATCH = 1000
_PUBLISHED = 2000
_BATCHES_AFTER_MERGE = 20
_FIRST_MATCH = """
import sys
import nearcast as nc
import pyarrow as pa
matcher = nc.Matcher.open(sys.argv[1])
with pa.memory_map(sys.argv[2]) as file:
    print(matcher.match_table(pa.ipc.open_file(file).read_all()).num_rows)
"""


class Service(Experiment[Mapping[str, Any]]):
    """The parameters of a series are those of its index."""

    subject = "index"
    metrics = (
        "us_per_message",
        "table_us_per_message",
        "two_thread_share",
        "matches_per_message",
        "publish_p50_us",
        "publish_p99_us",
        "insert_us",
        "late_ratio",
        "late_bytes",
        "merge_p99_ms",
        "open_ms",
        "first_match_seconds",
        "bytes_per_subscription",
        "build_seconds",
        "peak_gib",
    )

    def read_parameters(self, series: Series) -> Mapping[str, Any]:
        create(BOOLEAN_INDEXES, series.subject, series.parameters)
        return series.parameters

    def check_plan(self) -> None:
        if self.plan.check.against == "other":
            raise PlanError(f"plan {self.plan.name!r} checks against 'other'; a service is checked against an index: 'scan'")

    def prepare(self) -> None:
        self.setup = _Setup(self.plan, self.point)
        reference = Matcher(self.plan.check.against, self.setup.space)
        reference.subscribe_table(self.setup.built)
        self.expected = sorted_answer(reference.match_table(self.setup.sample))

    def measure(self, series: Series) -> Record:
        return _measure(self.setup, series, self.expected, self.plan.check.against)


EXPERIMENT = Service


class _Setup:
    """What all series of a point share."""

    def __init__(self, plan: Plan, point: Point) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        n = point.size.n_subscriptions
        self.space, self.workload_facts, self.size = workload.space, workload.describe(), point.size
        subscriptions = workload.with_words(workload.subscriptions(n + int(n * (_LATE + _MERGED)), plan.seed))
        self.built = subscriptions.slice(0, n)
        self.late = subscriptions.slice(n, int(n * _LATE))
        self.merged = subscriptions.slice(n + int(n * _LATE))
        self.messages = workload.with_words(workload.messages(point.size.n_messages, plan.seed))
        self.history = workload.with_words(workload.history(point.size.n_history)) if point.size.n_history else None
        self.chunks = in_chunks(self.messages, point.size.chunk)
        self.sample = self.messages.take(pa.array(spread_rows(self.messages.num_rows, plan.check.messages)))


def _measure(setup: _Setup, series: Series, expected: pa.Table, against: str) -> Record:
    _warm_up(setup, series)
    reset_peak()

    def build() -> Matcher:
        matcher = Matcher(series.subject, setup.space, history=setup.history, **series.parameters)
        matcher.subscribe_table(setup.built)
        return matcher

    build_seconds, matcher = timed(build)
    facts: dict[str, Any] = {"workload": setup.workload_facts, "build_seconds": build_seconds, "peak_bytes": peak_bytes()}
    stats = matcher.stats()
    facts |= {"stats": stats, "bytes": stats["bytes"], "n_subscriptions": stats["subscriptions"]}
    compare_answers(series.label, sorted_answer(matcher.match_table(setup.sample)), against, expected)
    facts["check"] = {"against": against, "messages": setup.sample.num_rows, "pairs": expected.num_rows, "equal": True}
    counters, matches = count_work(matcher, setup.chunks)
    chunk_seconds, facts["table_seconds"], facts["two_thread_seconds"] = _time_threads(matcher, setup)
    facts["publish_us"] = _time_publishing(matcher, setup.messages)
    facts |= _time_disk(matcher, setup)
    facts |= _time_late(matcher, setup, chunk_seconds)
    facts["merge_batch_ms"] = _time_merge(matcher, setup)
    chunk_messages = np.array([chunk.num_rows for chunk in setup.chunks], np.int64)
    return Record(facts, chunk_seconds, chunk_messages, counters, matches)


def _warm_up(setup: _Setup, series: Series) -> None:
    """Compile or load everything with a matcher that is thrown away."""
    few = setup.built.slice(0, 3000)
    matcher = Matcher(series.subject, setup.space, history=setup.history, **series.parameters)
    matcher.subscribe_table(few.slice(0, 2000))
    matcher.subscribe_table(few.slice(2000))
    matcher.match_table(setup.chunks[0])
    matcher.publish([_as_object(setup.messages, 0)])


def _time_threads(matcher: Matcher, setup: _Setup) -> tuple[NDArray[np.float64], float, float]:
    """Seconds of each chunk from keyword ids; best seconds of the whole from words, on one thread and on two."""
    encoded = [matcher.encode_table(chunk) for chunk in setup.chunks]
    sample, on_two = matcher.match_table(setup.sample), matcher.match_table(setup.messages, threads=2)
    if matcher.match_table(setup.messages).num_rows != on_two.num_rows or not sample.num_rows:
        raise NearcastError("two threads give other deliveries than one, or the stream has none: its times are worth nothing")
    passes: list[list[NDArray[np.float64]]] = [[], [], []]
    for _ in range(setup.size.repetitions):
        passes[0].append(time_passes(encoded, matcher.match_encoded, 1))
        passes[1].append(time_passes([setup.messages], matcher.match_table, 1))
        passes[2].append(time_passes([setup.messages], lambda table: matcher.match_table(table, threads=2), 1))
    by_chunk, one, two = (np.concatenate(seconds) for seconds in passes)
    return by_chunk, float(one.min()), float(two.min())


def _as_object(table: pa.Table, row: int) -> Message:
    values = table.slice(row, 1).to_pylist()[0]
    return Message(values["id"], keywords=values["keywords"], location=(values["x"], values["y"]))


def _time_publishing(matcher: Matcher, messages: pa.Table) -> list[float]:
    """Microseconds of each of many calls with one message."""
    calls = [[_as_object(messages, row)] for row in range(min(_PUBLISHED, messages.num_rows))]
    return [float(1e6 * seconds) for seconds in time_passes(calls, matcher.publish, 1)[0]]


def _time_disk(matcher: Matcher, setup: _Setup) -> dict[str, float]:
    """Seconds to save and to open, and from the start of a fresh process to the deliveries of its first message."""
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as scratch:
        folder, file = Path(scratch) / "matcher", Path(scratch) / "message.arrow"
        save_seconds, _ = timed(lambda: matcher.save(folder))
        openings = [timed(lambda: Matcher.open(folder)) for _ in range(3)]
        if openings[-1][1].match_table(setup.sample).num_rows != matcher.match_table(setup.sample).num_rows:
            raise NearcastError("a matcher from disk gives other deliveries than before: its times are worth nothing")
        one = setup.messages.slice(0, 1).combine_chunks()
        with pa.OSFile(str(file), "wb") as sink, ipc.new_file(sink, one.schema) as writer:
            writer.write_table(one)
        # The first run may compile for memory-mapped files; the second finds everything in the cache.
        firsts = [_first_match_seconds(folder, file, matcher.match_table(one).num_rows) for _ in range(3)]
    return {
        "save_seconds": save_seconds,
        "open_seconds": min(seconds for seconds, _ in openings),
        "first_match_seconds": min(firsts),
    }


def _first_match_seconds(folder: Path, file: Path, n_expected: int) -> float:
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _FIRST_MATCH, folder, file], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begin
    if int(done.stdout) != n_expected:
        raise NearcastError(f"a fresh process finds {done.stdout.strip()} deliveries; expected {n_expected}")
    return seconds


def _time_late(matcher: Matcher, setup: _Setup, before: NDArray[np.float64]) -> dict[str, Any]:
    """Insertion of late subscriptions in bulk, their bytes, and the time of matching with them over that before."""
    late_seconds, n_late = _insert(matcher, setup.late), setup.late.num_rows
    encoded = [matcher.encode_table(chunk) for chunk in setup.chunks]
    seconds = np.concatenate([time_passes(encoded, matcher.match_encoded, 1) for _ in range(setup.size.repetitions)])
    stats = matcher.stats()
    return {
        "insert_seconds": late_seconds,
        "n_inserted": n_late,
        "late_bytes": float(stats.get("late_bytes", 0)) / max(1, n_late),
        "late_ratio": float(seconds.min(axis=0).sum() / before.min(axis=0).sum()),
    }


def _insert(matcher: Matcher, subscriptions: pa.Table) -> float:
    return float(time_once(in_chunks(subscriptions, _LATE_AT_ONCE), matcher.subscribe_table).sum())


def _time_merge(matcher: Matcher, setup: _Setup) -> list[float]:
    """Milliseconds of each batch of messages that was matched while the index merged, and of some after."""
    batches = in_chunks(setup.messages, _BATCH)
    _insert(matcher, setup.merged)
    milliseconds: list[float] = []
    n_left = _BATCHES_AFTER_MERGE
    while n_left:
        begin = time.perf_counter()
        matcher.match_table(batches[len(milliseconds) % len(batches)])
        milliseconds.append(1e3 * (time.perf_counter() - begin))
        n_left -= not matcher.is_merging
    matcher.wait_for_merge()
    return milliseconds
