"""Kind "ranked": subscriptions hold the best messages of a window while messages arrive and end, step by step.

The window is one of time, so that ends are timed apart from arrivals: in each step what is due ends, then `n_messages` arrive,
and each lives for `life` steps. Methods with equal buffers start from the same state, which is made once: the window is full,
all lists are filled, and `warm_steps` have passed. Methods that do not tell the same changes have no times.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.experiments.shared.change_checksum import sum_of_changes
from benchmarks.experiments.shared.ranked_input import check_usable, frequencies_of, ranked_subscriptions
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast import settings
from nearcast.engine.registry import create, indexes
from nearcast.errors import NearcastError, PlanError
from nearcast.model.window import TimeWindow
from nearcast.ranked.engine import Ranker
from nearcast.ranked.factory import BUFFER_KINDS, buffer_kind, buffers_for
from nearcast.ranked.indexes import RANKED_INDEXES
from nearcast.workloads import open_workload

_SUBSCRIBED_AT_ONCE = 100_000
# A state that is opened has no room to spare: what there is moves once, in steps that are not timed.
_SETTLING = 2
_WARM_MESSAGES = 20
# A state depends on its buffers, not on the index; of those that go with a buffer, the first of these is fast.
_FILLED_BY = ("impact_grid", "group_pruned")


class Method(NamedTuple):
    """An index, a buffer, how many messages subscribers want, over how many threads they are shared out, what is told."""

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
    """From the parameters of a series: k, threads, changes, buffer, window_index, options of buffers; the index has the rest.

    Options of other buffers are left out: a plan may vary an option of one of them.
    """
    given = dict(series.parameters)
    k, window_index = int(given.pop("k", 20)), str(given.pop("window_index", "auto"))
    threads, buffer = int(given.pop("threads", 1)), str(given.pop("buffer", "auto"))
    changes = str(given.pop("changes", "tick"))
    buffer = buffers_for(series.subject)[0] if buffer == "auto" else buffer
    known = type(buffer_kind(buffer, {})).__dataclass_fields__
    all_options = [name for kind in BUFFER_KINDS for name in type(buffer_kind(kind, {})).__dataclass_fields__]
    of_buffers = {name: given.pop(name) for name in all_options if name in given}
    options = {name: value for name, value in of_buffers.items() if name in known}
    buffer_kind(buffer, options)
    create(RANKED_INDEXES, series.subject, given)
    return Method(series.subject, given, buffer, options, window_index, k, threads, changes)


class _Story:
    """What all series of a point share: who subscribes, what arrives."""

    def __init__(self, plan: Plan, point: Point) -> None:
        self.size, self.seed = point.size, plan.seed
        self.workload = open_workload(point.workload, **point.workload_parameters)
        n_steps = point.size.life + point.size.warm_steps + _SETTLING + point.size.repetitions
        self._messages = self.workload.messages(point.size.n_messages * n_steps, plan.seed)
        self.subscriptions = ranked_subscriptions(self.workload, point.size.n_subscriptions, plan.seed)
        first_window = self._messages.slice(0, point.size.n_messages * point.size.life)
        self.idf = frequencies_of(first_window)
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
        n, chunk = self.size.n_messages, self.size.chunk
        messages = self._messages.slice(step * n, n).select(["id", "keywords", "x", "y"])
        messages = messages.append_column("time", pa.array(np.full(n, float(step))))
        return [messages.slice(first, chunk) for first in range(0, n, chunk)]

    def subscribe(self, ranker: Ranker, k: int) -> None:
        for first in range(0, self.subscriptions.num_rows, _SUBSCRIBED_AT_ONCE):
            part = self.subscriptions.slice(first, _SUBSCRIBED_AT_ONCE)
            ranker.subscribe_table(part.append_column("k", pa.array(np.full(part.num_rows, k, np.int32))))
            check_usable(ranker)

    def steps(self, first: int, n: int) -> range:
        return range(first, first + n)


def measure_ranked(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    methods = [method_of(series) for series in point.series]
    _check_reference(plan)
    say("generating")
    story = _Story(plan, point)
    with _states() as folder:
        n_checked = plan.check.messages
        lived = [
            _live(story, series.label, method, folder, n_checked, say)
            for series, method in zip(point.series, methods, strict=True)
        ]
        say("checking")
        if plan.check.against != "other":
            reference = methods[0]._replace(subject=plan.check.against, index_parameters={})
            if reference.buffer not in buffers_for(reference.subject):
                reference = reference._replace(buffer=buffers_for(reference.subject)[0], buffer_parameters={})
            lived.append(_live(story, plan.check.against, reference, folder, n_checked, lambda what: None))
    for this, other in zip(lived, [*lived[1:], lived[0]], strict=True):
        # Where k differs, so do the answers.
        is_same = this.method.k == other.method.k
        if is_same:
            _compare(this, other)
        n_told = int(this.record.matches.sum())
        n_compared = story.size.n_messages * story.size.repetitions
        this.record.facts["check"] = {
            "against": other.label,
            "messages": n_compared,
            "pairs": n_told,
            "equal": is_same,
        }
    return [this.record for this in lived[: len(point.series)]]


class _Lived(NamedTuple):
    """A series that is over: its record, and what must be the same for every method."""

    label: str
    method: Method
    record: Record
    changes: list[int]
    lists: pa.Table


def _live(story: _Story, label: str, method: Method, folder: Path, n_checked: int, say: Callable[[str], None]) -> _Lived:
    say(label)
    _warm_up(story, method)
    state, facts = _state(story, method, folder)
    begin = time.perf_counter()
    ranker = Ranker.open(state, method.subject, is_mapped=False, changes=method.changes, **method.index_parameters)
    facts["build_seconds"] = time.perf_counter() - begin
    first = story.size.life + story.size.warm_steps
    for step in story.steps(first, _SETTLING):
        ranker.advance_table(float(step))
        for chunk in story.arriving(step):
            ranker.publish_table(chunk)
    before = ranker.stats()
    arrivals, ends, n_bytes, told, changes = [], [], [], [], []
    counters: dict[str, list[int]] = {"candidates": [], "nodes_visited": []}
    for step in story.steps(first + _SETTLING, story.size.repetitions):
        seconds, ended = _timed(ranker.advance_table, float(step))
        ends.append(seconds)
        changes += [ended.num_rows, sum_of_changes(ended)]
        for chunk in story.arriving(step):
            seconds, arrived = _timed(ranker.publish_table, chunk)
            check_usable(ranker)
            arrivals.append(seconds)
            told.append(arrived.num_rows)
            for name, counted in counters.items():
                counted.append(getattr(ranker.report, name))
            changes += [arrived.num_rows, sum_of_changes(arrived)]
        n_bytes.append(float(ranker.stats()["bytes"]))
    stats = ranker.stats()
    n_chunks = len(arrivals)
    facts |= {
        "workload": story.workload.describe(),
        "n_subscriptions": stats["subscriptions"],
        "n_living_messages": stats["messages"],
        "bytes": stats["bytes"],
        "table_bytes": story.subscriptions.nbytes,
        "stats": stats,
        "step_expiry_seconds": ends,
        "step_arrival_seconds": np.array(arrivals).reshape(len(ends), -1).sum(axis=1).tolist(),
        "step_bytes": n_bytes,
        "n_refills": int(stats["refills"]) - int(before["refills"]),
        "n_scored_by_refills": int(stats["window_scored"]) - int(before["window_scored"]),
    }
    # One pass only: a stream that changes something cannot be repeated. All its chunks are kept.
    chunk_messages = np.full(n_chunks, story.size.chunk, np.int64)
    chunk_messages[n_chunks // len(ends) - 1 :: n_chunks // len(ends)] = (story.size.n_messages - 1) % story.size.chunk + 1
    work = {name: np.array(counted, np.int64) for name, counted in counters.items()}
    record = Record(facts, np.array(arrivals)[None, :], chunk_messages, work, np.array(told, np.int64))
    return _Lived(label, method, record, changes, ranker.top_table(range(n_checked)))


# --- states ----------------------------------------------------------------------------------------------------------


@contextmanager
def _states() -> Iterator[Path]:
    """Where states are kept: in the folder that is set, or only as long as it takes."""
    given = settings.text("bench_states")
    if given:
        yield Path(given)
        return
    with TemporaryDirectory(prefix="nearcast-states-") as folder:
        yield Path(folder)


def _state(story: _Story, method: Method, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of a ranker with a full window and filled lists, made if it is not there, and what making it took."""
    size = story.size
    sizes = (size.n_subscriptions, size.n_messages, size.life, size.warm_steps, story.seed)
    key = json.dumps([sizes, story.workload.describe(), method.state], sort_keys=True, default=str)
    state = folder / hashlib.sha256(key.encode()).hexdigest()[:16]
    facts_file = state.with_suffix(".json")
    if not facts_file.is_file():
        filled_by = next(index for index in _FILLED_BY if method.buffer in buffers_for(index))
        ranker = story.ranker(method._replace(subject=filled_by, index_parameters={}, changes="tick"))
        for step in story.steps(0, size.life):
            for chunk in story.arriving(step):
                ranker.publish_table(chunk)
        seconds, _ = _timed(lambda k: story.subscribe(ranker, k), method.k)
        for step in story.steps(size.life, size.warm_steps):
            ranker.advance_table(float(step))
            for chunk in story.arriving(step):
                ranker.publish_table(chunk)
        folder.mkdir(parents=True, exist_ok=True)
        ranker.save(state)
        facts_file.write_text(json.dumps({"fill_seconds": seconds}), encoding="utf-8")
    facts: dict[str, Any] = json.loads(facts_file.read_text(encoding="utf-8"))
    return state, facts


def _warm_up(story: _Story, method: Method) -> None:
    """Compile or load everything with a ranker that is thrown away."""
    ranker = story.ranker(method)
    few = story.subscriptions.slice(0, _WARM_MESSAGES)
    ranker.subscribe_table(few)
    for step in (0, 1, story.size.life + 1):
        ranker.advance_table(float(step))
        ranker.publish_table(story.arriving(step)[0].slice(0, _WARM_MESSAGES))
    ranker.subscribe_table(few)


# --- answers ---------------------------------------------------------------------------------------------------------


def _timed(work: Callable[[Any], Any], given: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    done = work(given)
    return time.perf_counter() - begin, done


def _check_reference(plan: Plan) -> None:
    known = indexes("ranked")
    against = plan.check.against
    if against == "other":
        if len(plan.series) < 2:
            raise PlanError(f"plan {plan.name!r} checks against 'other' but has one series; check against 'ranked_scan'")
    elif against not in known:
        raise PlanError(f"plan {plan.name!r} checks against {against!r}; expected 'other' or one of {', '.join(known)}")


def _compare(one: _Lived, other: _Lived) -> None:
    if not one.lists.equals(other.lists):
        raise NearcastError(f"{one.label!r} ends with other lists than {other.label!r}: correct the index first")
    # What is told of whole calls cannot be compared with what is told of every tick.
    if one.method.changes != other.method.changes or one.changes == other.changes:
        return
    at = next(at for at, pair in enumerate(zip(one.changes, other.changes, strict=True)) if pair[0] != pair[1])
    raise NearcastError(
        f"{one.label!r} differs from {other.label!r} in the changes of call {at // 2}; "
        "their times are worth nothing: correct the index first"
    )
