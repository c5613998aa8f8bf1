"""An engine in shards, one thread each: every shard has its share of the subscriptions and its own copy of the window.

Shards share nothing, not even a lock: a copy of the window costs less than agreeing on one, tick by tick.

Paper: Wang et al., Skype (VLDB 2016), §7: subscriptions are divided by hashing, each shard has the whole window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.threads import run_in_threads
from nearcast.ranked.rank_changes import RankChanges
from nearcast.ranked.subscriptions import RankedSubscriptionBatch
from nearcast.ranked.tick_engine import RankedEngine
from nearcast.ranked.window import ArrivingMessages, MessageWindow

Answer = TypeVar("Answer")


class ShardedEngine:
    """Has the interface of a `RankedEngine`. With n shards, shard number % n holds a subscription, under number // n."""

    def __init__(self, shards: Sequence[RankedEngine]) -> None:
        self.shards = tuple(shards)

    @property
    def tick(self) -> int:
        return self.shards[0].tick

    @property
    def now(self) -> float:
        return self.shards[0].now

    @property
    def window(self) -> MessageWindow:
        """The window of the first shard; the others are equal."""
        return self.shards[0].window

    def holder_of(self, number: int) -> tuple[RankedEngine, int]:
        """The shard of a subscription, and its number there."""
        return self.shards[number % len(self.shards)], number // len(self.shards)

    # --- changes -----------------------------------------------------------------------------------------------------

    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
        parts = [_batch_of_shard(batch, shard, len(self.shards)) for shard in range(len(self.shards))]
        return self._all_change(lambda shard: self.shards[shard].put(parts[shard], weights))

    def remove(self, numbers: NDArray[np.int32]) -> None:
        for shard, shard_numbers in enumerate(self._numbers_by_shard(numbers[numbers >= 0])):
            self.shards[shard].remove(shard_numbers)

    def arrive(self, messages: ArrivingMessages, weights: NDArray[np.float64]) -> RankChanges:
        return self._all_change(lambda shard: self.shards[shard].arrive(messages, weights))

    def advance(self, now: float) -> RankChanges:
        return self._all_change(lambda shard: self.shards[shard].advance(now))

    def note_time(self, now: float) -> None:
        for shard in self.shards:
            shard.note_time(now)

    def apply_word_weights(self, weights: NDArray[np.float64]) -> RankChanges:
        return self._all_change(lambda shard: self.shards[shard].apply_word_weights(weights))

    def take_counters(self) -> NDArray[np.int64]:
        work: NDArray[np.int64] = np.sum([shard.take_counters() for shard in self.shards], axis=0)
        return work

    # --- insight -----------------------------------------------------------------------------------------------------

    def alive(self) -> NDArray[np.int32]:
        return np.sort(np.concatenate([self._global_numbers(at, shard.alive()) for at, shard in enumerate(self.shards)]))

    def are_alive(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        alive = np.zeros(len(numbers), np.bool_)
        for at, shard in enumerate(self.shards):
            shard_numbers = np.flatnonzero((numbers >= 0) & (numbers % len(self.shards) == at))
            alive[shard_numbers] = shard.are_alive(numbers[shard_numbers] // len(self.shards))
        return alive

    def lists(self, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """As in `RankedEngine`; subscriptions are in the order of their numbers."""
        lists = [
            shard.lists(shard_numbers)
            for shard, shard_numbers in zip(self.shards, self._numbers_by_shard(numbers), strict=True)
        ]
        subscription = np.concatenate([self._global_numbers(at, list_of_shard[0]) for at, list_of_shard in enumerate(lists)])
        order = np.argsort(subscription, kind="stable")
        number, score = (np.concatenate([list_of_shard[column] for list_of_shard in lists]) for column in (1, 2))
        return subscription[order], number[order], score[order]

    # --- parts of it -------------------------------------------------------------------------------------------------

    def _numbers_by_shard(self, numbers: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        n = len(self.shards)
        return [numbers[numbers % n == shard] // n for shard in range(n)]

    def _global_numbers(self, shard: int, shard_numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        return (shard_numbers * len(self.shards) + shard).astype(np.int32)

    def _all_change(self, work: Callable[[int], RankChanges]) -> RankChanges:
        """Run `work` for every shard and join the changes, those of a tick together."""
        n = len(self.shards)
        shard_changes = run_in_threads(lambda shard, _: work(shard), [(shard, 1) for shard in range(n)], n)
        shard_changes = [
            changes._replace(subscription=self._global_numbers(at, changes.subscription))
            for at, changes in enumerate(shard_changes)
        ]
        tick = np.concatenate([changes.tick for changes in shard_changes])
        order = np.argsort(tick, kind="stable")
        message_ids = pa.concat_arrays(
            [changes.message_ids for changes in shard_changes if len(changes.message_ids)] or [shard_changes[0].message_ids]
        )
        columns = (
            np.concatenate([getattr(changes, name) for changes in shard_changes])[order]
            for name in ("subscription", "change", "score")
        )
        subscription, change, score = columns
        return RankChanges(tick[order], subscription, message_ids.take(pa.array(order)), change, score)


def engine_in_shards(n: int, make: Callable[[], RankedEngine]) -> RankedEngine | ShardedEngine:
    """An engine of `n` shards; for one shard the engine itself."""
    return make() if n == 1 else ShardedEngine([make() for _ in range(n)])


def _batch_of_shard(batch: RankedSubscriptionBatch, shard: int, n_shards: int) -> RankedSubscriptionBatch:
    """The subscriptions of one shard, with their numbers there."""
    rows = np.flatnonzero(batch.number % n_shards == shard)
    return batch.take(rows)._replace(number=(batch.number[rows] // n_shards).astype(np.int32))
