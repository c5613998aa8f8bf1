"""A ranked index that is told what to find: by those who look for messages on behalf of its subscriptions.

They know floors of an earlier batch. Where a floor has risen since, they report too much, which the lists refuse. Where one has
fallen, they may report too little: these subscriptions look at every message themselves until the others know. So lists never
depend on how soon floors are known; only the work does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.registry import Parameters
from nearcast.kernels.layouts import CANDIDATES
from nearcast.ranked.index import DistanceScale, RankedIndex, with_more
from nearcast.ranked.kernels.layouts import BASE, RankedSubscriptionArrays, ScoredMatches, WindowArrays
from nearcast.ranked.kernels.scoring import score_pairs
from nearcast.ranked.subscriptions import RankedSubscriptions

Reported = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]
_NEVER = -2
# So many pairs of messages and subscriptions are looked at together.
_MOST_PAIRS = 1 << 22


class ReportedIndex(RankedIndex):
    """Finds what `expect` was given."""

    name: ClassVar[str] = "reported"
    paper: ClassVar[str] = "Wang et al. 2017 (Skype), §7"
    summary: ClassVar[str] = "what other shards report"

    def __init__(self) -> None:
        super().__init__(Parameters())
        self._ground = DistanceScale(False, 1.0)
        # By subscription: the batch in which its floor fell last, and where it was then.
        self._fell_in, self._floor = np.empty(0, np.int64), np.empty(0)
        self._changed = np.empty(0, np.int32)
        self._number, self._known, self._first_tick = 0, _NEVER, 0
        self._start, self._subscriber, self._score = np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0)

    # --- what is reported --------------------------------------------------------------------------------------------

    def begin(self, number: int, known: int) -> None:
        """A batch begins; those who report know the floors of batch `known`."""
        self._number, self._known = number, known

    def expect(
        self,
        first_tick: int,
        row: NDArray[np.int64],
        reported: Reported,
    ) -> None:
        """Messages come, from row `row[i]` of the batch at tick `first_tick + i`; reported are row, subscription, score."""
        rows, subscriber, score = reported
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        first, last = np.searchsorted(rows, row, side="left"), np.searchsorted(rows, row, side="right")
        # Rows that were rejected have no tick.
        length = last - first
        start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        taken = order[np.repeat(first - start[:-1], length) + np.arange(start[-1])]
        self._first_tick, self._start = first_tick, start
        self._subscriber, self._score = subscriber[taken].astype(np.int32), score[taken]

    def take_changed(self, subscribers: RankedSubscriptions) -> NDArray[np.int32]:
        """Whose floors changed since the last time."""
        changed, self._changed = np.unique(self._changed), np.empty(0, np.int32)
        return changed[subscribers.is_alive(changed)]

    def find(
        self, subscribers: RankedSubscriptionArrays, window: WindowArrays, first: int, last: int, counters: NDArray[np.int64]
    ) -> ScoredMatches:
        fallen = self._looks_itself()
        fallen = fallen[subscribers.is_alive[fallen] != 0]
        last = min(last, first + max(1, _MOST_PAIRS // max(1, len(fallen))))
        at = int(window.head[BASE]) + first - self._first_tick
        start = self._start[at : at + last - first + 1]
        own = slice(int(start[0]), int(start[-1]))
        found = ScoredMatches(first, last, start - start[0], self._subscriber[own], self._score[own])
        counters[CANDIDATES] += len(found.score) + len(fallen) * (last - first)
        return self.find_more(subscribers, window, found, first, fallen)

    def _looks_itself(self) -> NDArray[np.int32]:
        """Whose floors fell without those who report knowing it."""
        return np.flatnonzero(self._fell_in > self._known).astype(np.int32)

    def find_more(
        self,
        subscribers: RankedSubscriptionArrays,
        window: WindowArrays,
        found: ScoredMatches,
        place: int,
        numbers: NDArray[np.int32],
    ) -> ScoredMatches:
        n = found.last - place
        subscriber, score, start = np.empty(n * len(numbers), np.int32), np.empty(n * len(numbers)), np.zeros(n + 1, np.int64)
        most = int(subscribers.n_words[numbers].max(initial=1))
        given = (self._ground, subscribers, window, self._floor, numbers, place, found.last, np.empty(most))
        n_more = int(score_pairs(*given, start, subscriber, score))
        return with_more(found, place, ScoredMatches(place, found.last, start, subscriber[:n_more], score[:n_more]))

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def build(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], ground: DistanceScale) -> None:
        self._ground = ground
        self.insert(subscribers, threshold, subscribers.alive())

    def insert(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        # Whoever is new is looked for without a floor.
        self._note(threshold, numbers, _NEVER)

    def delete(self, subscribers: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """Nothing is filed."""

    def thresholds_lowered(
        self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        self._note(threshold, numbers, self._number)

    def thresholds_raised(
        self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        self._changed = np.concatenate([self._changed, numbers])

    def _note(self, threshold: NDArray[np.float64], numbers: NDArray[np.int32], fell_in: int) -> None:
        n_more = len(threshold) - len(self._floor)
        if n_more > 0:
            self._fell_in = np.concatenate([self._fell_in, np.full(n_more, _NEVER, np.int64)])
            self._floor = np.concatenate([self._floor, np.zeros(n_more)])
        self._fell_in[numbers], self._floor[numbers] = fell_in, threshold[numbers]
        self._changed = np.concatenate([self._changed, numbers])

    # --- insight and disk --------------------------------------------------------------------------------------------

    def explain(self, subscribers: RankedSubscriptions, number: int) -> list[str]:
        return ["messages for it are looked for elsewhere"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"fell_in": self._fell_in, "floor": self._floor, "changed": self._changed}

    def restore(self, arrays: Mapping[str, NDArray[Any]], ground: DistanceScale) -> None:
        self._ground = ground
        # An engine of another index was saved without: its subscriptions come anew.
        if "fell_in" in arrays:
            self._fell_in, self._floor = arrays["fell_in"].copy(), arrays["floor"].copy()
            self._changed = arrays["changed"]


def reported_rows(told: Sequence[pa.Table]) -> pa.Table:
    """Reports of several shards as one table: subscription_id, row, score."""
    filled = [table for table in told if table.num_rows]
    kinds = pa.schema({"subscription_id": pa.int64(), "row": pa.int64(), "score": pa.float64()})
    return pa.concat_tables(filled).combine_chunks() if filled else kinds.empty_table()
