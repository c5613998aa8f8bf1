"""A ranking in shards, one thread each: every shard has its share of the subscriptions, and a window of its own.

Shards need nothing of each other, not even a lock: a window costs less than what it would take to agree on one, tick by tick.

Paper: Wang et al., Skype (VLDB 2016), §7: subscriptions shared out by hashing, each shard with the whole window.
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
from nearcast.ranked.tick_engine import Ranking
from nearcast.ranked.window import ArrivingMessages, MessageWindow

Answer = TypeVar("Answer")


class ShardedRanking:
    """Does what a `Ranking` does. Of n shards, the one at number % n has a subscription, under number // n."""

    def __init__(self, shards: Sequence[Ranking]) -> None:
        self.shards = tuple(shards)

    @property
    def tick(self) -> int:
        return self.shards[0].tick

    @property
    def now(self) -> float:
        return self.shards[0].now

    @property
    def window(self) -> MessageWindow:
        """That of the first shard; the others are equal."""
        return self.shards[0].window

    def holder_of(self, number: int) -> tuple[Ranking, int]:
        """The shard of a subscription, and its number there."""
        return self.shards[number % len(self.shards)], number // len(self.shards)

    # --- what happens ------------------------------------------------------------------------------------------------

    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
        parts = [_part_of(batch, shard, len(self.shards)) for shard in range(len(self.shards))]
        return self._all_change(lambda shard: self.shards[shard].put(parts[shard], weights))

    def remove(self, numbers: NDArray[np.int32]) -> None:
        for shard, own in enumerate(self._shared_out(numbers[numbers >= 0])):
            self.shards[shard].remove(own)

    def arrive(self, messages: ArrivingMessages, weights: NDArray[np.float64]) -> RankChanges:
        return self._all_change(lambda shard: self.shards[shard].arrive(messages, weights))

    def advance(self, now: float) -> RankChanges:
        return self._all_change(lambda shard: self.shards[shard].advance(now))

    def note_time(self, now: float) -> None:
        for shard in self.shards:
            shard.note_time(now)

    def weigh(self, weights: NDArray[np.float64]) -> RankChanges:
        return self._all_change(lambda shard: self.shards[shard].weigh(weights))

    def take_counters(self) -> NDArray[np.int64]:
        taken: NDArray[np.int64] = np.sum([shard.take_counters() for shard in self.shards], axis=0)
        return taken

    # --- insight -----------------------------------------------------------------------------------------------------

    def alive(self) -> NDArray[np.int32]:
        return np.sort(np.concatenate([self._outside(at, shard.alive()) for at, shard in enumerate(self.shards)]))

    def are_alive(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        alive = np.zeros(len(numbers), np.bool_)
        for at, shard in enumerate(self.shards):
            own = np.flatnonzero((numbers >= 0) & (numbers % len(self.shards) == at))
            alive[own] = shard.are_alive(numbers[own] // len(self.shards))
        return alive

    def lists(self, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """As of a `Ranking`; subscriptions in the order of their numbers."""
        found = [shard.lists(own) for shard, own in zip(self.shards, self._shared_out(numbers), strict=True)]
        subscriber = np.concatenate([self._outside(at, listed[0]) for at, listed in enumerate(found)])
        order = np.argsort(subscriber, kind="stable")
        number, score = (np.concatenate([listed[column] for listed in found]) for column in (1, 2))
        return subscriber[order], number[order], score[order]

    # --- parts of it -------------------------------------------------------------------------------------------------

    def _shared_out(self, numbers: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        n = len(self.shards)
        return [numbers[numbers % n == shard] // n for shard in range(n)]

    def _outside(self, shard: int, own: NDArray[np.int32]) -> NDArray[np.int32]:
        return (own * len(self.shards) + shard).astype(np.int32)

    def _all_change(self, work: Callable[[int], RankChanges]) -> RankChanges:
        """The changes of all shards, those of a tick together."""
        n = len(self.shards)
        told = run_in_threads(lambda shard, _: work(shard), [(shard, 1) for shard in range(n)], n)
        told = [changes._replace(subscriber=self._outside(at, changes.subscriber)) for at, changes in enumerate(told)]
        tick = np.concatenate([changes.tick for changes in told])
        order = np.argsort(tick, kind="stable")
        message_ids = pa.concat_arrays(
            [changes.message_ids for changes in told if len(changes.message_ids)] or [told[0].message_ids]
        )
        columns = (
            np.concatenate([getattr(changes, name) for changes in told])[order] for name in ("subscriber", "change", "score")
        )
        subscriber, change, score = columns
        return RankChanges(tick[order], subscriber, message_ids.take(pa.array(order)), change, score)


def ranking_in_shards(n: int, make: Callable[[], Ranking]) -> Ranking | ShardedRanking:
    """As many as asked for; one alone is no shard."""
    return make() if n == 1 else ShardedRanking([make() for _ in range(n)])


def _part_of(batch: RankedSubscriptionBatch, shard: int, n_shards: int) -> RankedSubscriptionBatch:
    """The subscriptions of one shard, with their numbers there."""
    rows = np.flatnonzero(batch.number % n_shards == shard)
    return batch.take(rows)._replace(number=(batch.number[rows] // n_shards).astype(np.int32))
