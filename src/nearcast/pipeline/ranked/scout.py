"""Looks for messages on behalf of subscriptions that live elsewhere: copies with a floor each, and no lists.

A subscription is copied to the shards of some of its words, and every one of these that gets a message finds the pair. The
shard of the rarest of those words that the message has reports it; each knows the words of both, so that it decides alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.columns.growing import GrowingArray
from nearcast.columns.identifiers import Identifiers
from nearcast.engine.reading import ReadingContext
from nearcast.engine.registry import create
from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.model.spaces import space_of
from nearcast.pipeline.plan.clause_view import id_hashes
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.filed_words import filed_words
from nearcast.pipeline.ranked.owner import FLOOR
from nearcast.pipeline.ranked.word_homes import concerns
from nearcast.ranked.index import DistanceScale, RankedIndex
from nearcast.ranked.indexes import RANKED_INDEXES
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.reading import RankedSubscriptionRows, read_arriving_table, read_ranked_table
from nearcast.ranked.score_parameters import WordWeights, max_distance_of
from nearcast.ranked.subscriptions import RankedSubscriptions, table_of_subscriptions
from nearcast.ranked.window import MessageWindow

_SHARE_FILED_ANEW = 8
_COLUMNS = {"floor": np.float64, "home": np.int64, "first": np.int64, "n_words": np.int64}


@dataclass(slots=True)
class _Prefixes:
    """The words some subscriptions are looked for under, rarest first, and whether each leads to this shard."""

    start: NDArray[np.int64]
    word: NDArray[np.int32]
    is_here: NDArray[np.bool_]


class Scout:
    """The copies of one shard. `plan` is its own: words of messages are added to it."""

    def __init__(self, number: int, plan: ShardPlan, settings: Mapping[str, Any]) -> None:
        self._number, self._plan = number, plan
        self._order, self._keywords = plan.word_order(), plan.keywords
        self._weights = WordWeights(settings["idf"], settings["n_documents"])
        self._space = space_of(settings["space"])
        self._ground = DistanceScale(self._space.is_lonlat, max_distance_of(self._space, None, settings["max_distance"]))
        self._ids, self._subscribers = Identifiers(), RankedSubscriptions()
        index = create(RANKED_INDEXES, "auto", {})
        assert isinstance(index, RankedIndex)
        self._index = index
        self._rows = {name: GrowingArray(dtype) for name, dtype in _COLUMNS.items()}
        self._word, self._is_here = GrowingArray(np.int32), GrowingArray(np.bool_)
        self._index.build(self._subscribers, self._floor, self._ground)
        self.n_reached = 0
        """Messages that had a word for this shard, so far."""
        self.n_registered = self.n_floors = 0
        """Copies that came or went, and floors that copies took over, so far."""

    @property
    def _floor(self) -> NDArray[np.float64]:
        return self._rows["floor"].used

    @property
    def _border(self) -> ReadingContext:
        return ReadingContext(self._space, self._keywords, DEFAULT_ANALYSIS)

    # --- copies ------------------------------------------------------------------------------------------------------

    def forget(self, ids: pa.Array) -> None:
        """Drop copies; who is not here is not."""
        self._drop(self._ids.find(ids))

    def file(self, subscriptions: pa.Table) -> None:
        """Take subscriptions that are new, or others than before, without a floor."""
        self.forget(subscriptions["id"].combine_chunks())
        self._put(subscriptions, np.zeros(subscriptions.num_rows))

    def learn_floors(self, floors: pa.Table) -> None:
        """Take over floors: some come to be looked for here, some are no longer."""
        if floors.num_rows == 0:
            return
        floor = floors[FLOOR].to_numpy()
        numbers = self._ids.find(floors["id"].combine_chunks())
        is_known = self._subscribers.is_alive(numbers)
        new = np.flatnonzero(~is_known)
        self._put(floors.take(pa.array(new)), floor[new])
        self._change_floors(numbers[is_known], floors.filter(pa.array(is_known)), floor[is_known])

    def _put(self, subscriptions: pa.Table, floor: NDArray[np.float64]) -> None:
        read = self._read(subscriptions)
        prefixes = self._prefixes(read, floor)
        wanted = _has_any(prefixes)
        if not len(wanted):
            return
        batch = read.batch.take(wanted)._replace(number=self._ids.add(read.ids.take(pa.array(wanted))))
        self._subscribers.put(batch, self._weights.of(self._keywords))
        self.n_registered += len(wanted)
        for column in self._rows.values():
            column.extend(0, max(0, self._subscribers.n - column.n))
        self._floor[batch.number] = floor[wanted]
        self._rows["home"].used[batch.number] = id_hashes(read.ids.take(pa.array(wanted))) % self._plan.n_shards
        self._note_prefixes(batch.number, prefixes, wanted)
        self._index.insert(self._subscribers, self._floor, batch.number)

    def _change_floors(self, numbers: NDArray[np.int32], subscriptions: pa.Table, floor: NDArray[np.float64]) -> None:
        prefixes = self._prefixes(self._read(subscriptions), floor)
        wanted = _has_any(prefixes)
        self._drop(np.delete(numbers, wanted))
        kept, before = numbers[wanted], self._floor[numbers[wanted]]
        self.n_floors += len(kept)
        self._floor[kept] = floor[wanted]
        self._note_prefixes(kept, prefixes, wanted)
        raised = kept[floor[wanted] > before]
        if len(raised) > self._subscribers.n_alive // _SHARE_FILED_ANEW:
            # They are filed as those they were, without a floor: found by many more messages than they need be.
            self._index.build(self._subscribers, self._floor, self._ground)
            return
        self._index.thresholds_lowered(self._subscribers, self._floor, kept[floor[wanted] < before])
        self._index.thresholds_raised(self._subscribers, self._floor, raised)

    def _drop(self, numbers: NDArray[np.int32]) -> None:
        gone = np.unique(numbers[self._subscribers.is_alive(numbers)])
        if len(gone):
            self._index.delete(self._subscribers, gone)
            self._subscribers.remove(gone)
            self.n_registered += len(gone)

    def _read(self, subscriptions: pa.Table) -> RankedSubscriptionRows:
        return read_ranked_table(subscriptions.select(["id", "keywords", "x", "y", "k", "spatial_weight"]), self._border)

    def _prefixes(self, read: RankedSubscriptionRows, floor: NDArray[np.float64]) -> _Prefixes:
        filed = filed_words(self._plan, self._order, self._weights.of(self._keywords), read.batch, floor)
        return _Prefixes(filed.start, filed.word, filed.home == self._number)

    def _note_prefixes(self, numbers: NDArray[np.int32], prefixes: _Prefixes, rows: NDArray[np.int64]) -> None:
        start, word = take_lists(prefixes.start, prefixes.word, rows)
        _, is_here = take_lists(prefixes.start, prefixes.is_here.astype(np.int32), rows)
        self._rows["first"].used[numbers] = self._word.n + start[:-1]
        self._rows["n_words"].used[numbers] = np.diff(start)
        self._word.extend(word)
        self._is_here.extend(is_here.astype(np.bool_))
        self._clear_waste()

    def _clear_waste(self) -> None:
        """Write prefixes anew when most are of earlier floors."""
        alive = self._subscribers.alive()
        first, n_words = self._rows["first"].used, self._rows["n_words"].used
        if self._word.n <= 4096 + 2 * int(n_words[alive].sum()):
            return
        at, start = _places(first[alive], n_words[alive])
        self._word, self._is_here = GrowingArray(np.int32, self._word.used[at]), GrowingArray(np.bool_, self._is_here.used[at])
        first[alive] = start[:-1]

    # --- messages ----------------------------------------------------------------------------------------------------

    def look(self, messages: pa.Table) -> dict[int, pa.Table]:
        """What is found in messages, by the home of the subscription: subscription_id, row of the message, score."""
        read = read_arriving_table(messages, self._border, is_timed=False)
        start, word = read.messages.keyword_start, read.messages.keyword
        row = np.repeat(np.arange(len(start) - 1), np.diff(start))
        chosen = np.unique(row[concerns(self._plan, self._order, word, self._number)])
        self.n_reached += len(chosen)
        if not len(chosen) or not self._subscribers.n_alive:
            return {}
        window = MessageWindow()
        window.append(read.messages.take(chosen), self._weights.of(self._keywords))
        layout = window.layout()
        self._index.learn(self._subscribers, layout)
        place, number, score = self._reached(layout, len(chosen))
        is_told = self._is_reported(place, number, layout.keyword_start, layout.keyword)
        place, number, score = place[is_told], number[is_told], score[is_told]
        home, rows = self._rows["home"].used[number], read.row[chosen[place]]
        told = {}
        for target in np.unique(home).tolist():
            own = home == target
            ids = self._ids.take(number[own])
            told[target] = pa.table({"subscription_id": ids, "row": rows[own], "score": score[own]})
        return told

    def _reached(self, window: WindowArrays, n: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """Which of `n` messages, by place, reach which subscriptions, with their scores."""
        subscribers, parts, place = self._subscribers.layout(), [], 0
        while place < n:
            found = self._index.find(subscribers, window, place, n, np.zeros(2, np.int64))
            places = np.repeat(np.arange(place, found.last), np.diff(found.start))
            parts.append((places, found.subscription.copy(), found.score.copy()))
            place = found.last
        places, numbers, scores = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return places, numbers, scores

    def _is_reported(
        self, place: NDArray[np.int64], number: NDArray[np.int32], start: NDArray[np.int64], keyword: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Whether the rarest word of the prefix that the message has leads here."""
        at, first = _places(self._rows["first"].used[number], self._rows["n_words"].used[number])
        pair = np.repeat(np.arange(len(number)), np.diff(first))
        # Keywords of messages are in order, one message after the other.
        n = self._keywords.n
        known = np.repeat(np.arange(len(start) - 1), np.diff(start)) * n + keyword
        wanted = place[pair] * n + self._word.used[at]
        spot = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        is_common = known[spot] == wanted
        common, which = pair[is_common], self._is_here.used[at[is_common]]
        is_told = np.zeros(len(number), bool)
        # Of several words of one pair the first, which is the rarest.
        rarest = np.unique(common, return_index=True)
        is_told[rarest[0]] = which[rarest[1]]
        return is_told

    # --- as a table --------------------------------------------------------------------------------------------------

    @property
    def n_copies(self) -> int:
        return self._subscribers.n_alive

    @property
    def n_bytes(self) -> int:
        arrays = sum(column.memory.nbytes for column in (*self._rows.values(), self._word, self._is_here))
        return arrays + self._ids.n_bytes + self._subscribers.n_bytes + int(self._index.stats()["bytes"])

    def copies(self) -> pa.Table:
        """All copies with their floors, as `learn_floors` takes them."""
        numbers = self._subscribers.alive()
        table = table_of_subscriptions(self._subscribers, numbers, self._ids.take(numbers), self._keywords)
        return table.append_column(FLOOR, pa.array(self._floor[numbers]))


def _has_any(prefixes: _Prefixes) -> NDArray[np.int64]:
    """The subscriptions that have a word that leads here."""
    row = np.repeat(np.arange(len(prefixes.start) - 1), np.diff(prefixes.start))
    return np.unique(row[prefixes.is_here])


def _places(first: NDArray[np.int64], length: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of lists one after the other, and where each begins among them."""
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    return np.repeat(first - start[:-1], length) + np.arange(start[-1]), start
