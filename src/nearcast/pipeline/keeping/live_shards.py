"""The shards that this process has alive, each after some batch; one that is not, or is elsewhere, is made again.

A shard is after batch `b` of a history whose last mark it knows. If that is what a call expects, the call goes on from there.
If the call was answered before (a task that runs again), the answer is given again. Else the shard is opened from its last
snapshot and goes through the log.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from nearcast.pipeline.keeping.batch_log import LoggedBatch
from nearcast.pipeline.keeping.exchange import read_floors, read_told
from nearcast.pipeline.keeping.layouts import ShardPlace
from nearcast.pipeline.keeping.shard_engine import ShardEngine, Taken
from nearcast.pipeline.keeping.snapshots import last_snapshot, save_snapshot

ShardKey = tuple[str, str, str, int, int]
Work = TypeVar("Work")
_KEPT_BATCHES = 2


@dataclass(slots=True)
class LiveShard:
    """A shard after batch `batch`; what it told for the next batch, and what it changed in the last one."""

    engine: ShardEngine
    batch: int
    mark: str
    told: dict[str, dict[int, pa.Table]] = field(default_factory=dict)
    taken: Taken | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A batch for a shard: its number and mark, and the mark of the batch before ('' if there is none)."""

    number: int
    mark: str
    mark_before: str


class LiveShards:
    """All of them, with a lock for each: two tries of one task must not work on the same shard."""

    def __init__(self) -> None:
        self._shards: dict[ShardKey, LiveShard] = {}
        self._locks: dict[ShardKey, threading.Lock] = {}
        self._batches: OrderedDict[str, LoggedBatch] = OrderedDict()
        self._lock = threading.Lock()

    def tell(self, place: ShardPlace, shard: int, step: Step) -> dict[int, pa.Table]:
        """What a shard has to tell the others before they take a batch."""
        with self._locked(place, shard) as key:
            return self._told(key, place, shard, step)[step.mark]

    def take(self, place: ShardPlace, shard: int, step: Step, told: Sequence[pa.Table]) -> Taken:
        """Let a shard go through a batch."""
        with self._locked(place, shard) as key:
            # In a process that was not asked to tell, the shard has not heard of the batch yet.
            self._told(key, place, shard, step)
            live = self._shards[key]
            if live.batch < step.number or live.taken is None:
                batch = self._batch(place, step)
                live.taken = self._careful(key, lambda: live.engine.take(step.number, batch, told))
                live.batch, live.mark = step.number, step.mark
            return live.taken

    def _told(self, key: ShardKey, place: ShardPlace, shard: int, step: Step) -> dict[str, dict[int, pa.Table]]:
        found = self._shards.get(key)
        if found is None or step.mark not in found.told:
            live = self._after(key, place, shard, step.number - 1, step.mark_before)
            batch, floors = self._batch(place, step), _floors_before(place, step.number)
            live.told = {step.mark: self._careful(key, lambda: live.engine.tell(step.number, batch, floors))}
            found = live
        return found.told

    def snapshot(self, place: ShardPlace, shard: int, number: int, mark: str) -> ShardEngine:
        """Save a shard as it is after batch `number`, unless that was done."""
        with self._locked(place, shard) as key:
            live = self._after(key, place, shard, number, mark)
            save_snapshot(place, shard, live.engine, live.batch, live.mark)
            return live.engine

    # --- where it stands ---------------------------------------------------------------------------------------------

    def _locked(self, place: ShardPlace, shard: int) -> _Locked:
        key: ShardKey = (place.store.identity, place.area.kind, place.stream, place.layout.number, shard)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
            for other in [other for other in self._shards if other[:3] == key[:3] and other[3] < key[3]]:
                # Of layouts that are over nobody asks any more.
                del self._shards[other]
        return _Locked(key, lock)

    def _after(self, key: ShardKey, place: ShardPlace, shard: int, number: int, mark: str) -> LiveShard:
        """The shard after batch `number`: as it is here, or made again."""
        found = self._shards.get(key)
        if found is None or (found.batch, found.mark) != (number, mark):
            self._shards.pop(key, None)
            self._shards[key] = found = self._made_again(place, shard, number)
        return found

    def _made_again(self, place: ShardPlace, shard: int, number: int) -> LiveShard:
        live = LiveShard(*last_snapshot(place, shard, number))
        for missed in range(live.batch + 1, number + 1):
            batch = place.batch(missed)
            live.engine.tell(missed, batch, _floors_before(place, missed))
            live.engine.take(missed, batch, read_told(place.store, place.area.told(missed), shard))
            live.batch, live.mark = missed, batch.mark
        return live

    def _careful(self, key: ShardKey, work: Callable[[], Work]) -> Work:
        """Work on a shard that is forgotten if the work fails: it may be half done."""
        live = self._shards.pop(key)
        done = work()
        self._shards[key] = live
        return done

    def _batch(self, place: ShardPlace, step: Step) -> LoggedBatch:
        """A batch of the log, read once for all shards of this process."""
        with self._lock:
            if step.mark not in self._batches:
                self._batches[step.mark] = place.batch(step.number)
                while len(self._batches) > _KEPT_BATCHES:
                    self._batches.popitem(last=False)
            return self._batches[step.mark]


class _Locked:
    def __init__(self, key: ShardKey, lock: threading.Lock) -> None:
        self._key, self._lock = key, lock

    def __enter__(self) -> ShardKey:
        self._lock.acquire()
        return self._key

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _floors_before(place: ShardPlace, number: int) -> list[pa.Table]:
    """The floors that owners told in the batch before. Those of another layout do not count: its owners had other lists."""
    return read_floors(place.store, place.area.told(number - 1)) if number > place.layout.first_batch else []
