"""`impact_grid`: lists of subscriptions by keyword, by the weight of messages, and by the cells from which they are reached."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import aligned_zeros, doubled, resized
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.ranked.impact_grid.kernels import match
from nearcast.ranked.impact_grid.kernels.match import (
    LISTS_OF_WORD,
    MOST_AT_ONCE,
    N_LISTS,
    N_NEAR,
    N_REACHED,
    N_WORD_FACTS,
    find_matches,
)
from nearcast.ranked.impact_grid.kernels.score_candidates import bits_of_subscriptions, empty_table, score_near
from nearcast.ranked.impact_grid.kernels.simd_near_plain import N_SLOTS, OWN
from nearcast.ranked.impact_grid.layout import N_PARTS, FindScratch, Grid, KeywordArrays, PartArrays
from nearcast.ranked.impact_grid.rebuild import (
    BackgroundRebuild,
    RebuildInput,
    RebuildResult,
    Sample,
    build_part,
    empty_part,
    enclosing_grid,
    sample_of,
    with_words_of,
)
from nearcast.ranked.index import DistanceScale, RankedIndex, with_more
from nearcast.ranked.kernels.bounds import N_FIGURES, Frame
from nearcast.ranked.kernels.layouts import RankedSubscriptionArrays, ScoredMatches, WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptions

# The base part has most subscriptions. The delta part has those filed since, up to this share. The last few are in no list.
_DELTA_SHARE, _LEAST_DELTA = 128, 4096
# At least this many subscriptions are filed in a thread, unless more than this share of them came since.
_MIN_IN_THREAD, _IN_THREAD_SHARE = 20_000, 2
# Everything is filed again after this many times as many messages as were in the sample, and at least _LEAST_LATER.
_SAMPLES_LATER, _LEAST_LATER = 8, 20_000
# From this many subscriptions on they share the cost of a cell.
_MANY = 1_000_000
_NO_THRESHOLD = math.inf
_FIRST_CAPACITY, _FIRST_WORDS, _LEAST_WORDS = 1 << 14, 32, 4096
# A search stops when messages have reached this many subscriptions; the other messages come later.
_ENOUGH = 1 << 20


@dataclass(frozen=True, slots=True)
class ImpactParameters(Parameters):
    """`cell_cost`: the cost of an entry in a cell, in entries scanned per message; `fresh`: most subscriptions in no list.

    Beyond a million subscriptions an entry costs less, by the root of their number: lists are longer, and more entries share
    the work for a cell. `fresh` applies per million: the delta part, which is written again for them, grows in proportion, and
    so does the rate of new subscriptions.
    """

    cell_cost: float = 5e-4
    fresh: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.cell_cost <= 1:
            raise IndexParameterError(f"cell_cost={self.cell_cost!r} is not possible; expected a number above 0, at most 1")
        if not 0 <= self.fresh <= 100_000:
            raise IndexParameterError(f"fresh={self.fresh!r} is not possible; expected 0 to 100000")


class ImpactGrid(RankedIndex):
    """A subscription is in the lists of the cells from which a message of some weight can reach its threshold.

    Lists are immutable. New subscriptions, and those whose threshold fell, are checked by every message until there are enough
    for a delta part. When the delta exceeds 1/128 of the base part, both are rebuilt. Removed subscriptions, and those whose
    threshold rose, stay listed: their records decide. Subscriptions wait for the next message, so that those that come together
    are filed together.
    """

    name = "impact_grid"
    paper = "none"
    summary = "lists by keyword, weight of the message and cell, scanned sixteen subscriptions at a time"
    parameters_class = ImpactParameters

    def __init__(self, parameters: ImpactParameters) -> None:
        super().__init__(parameters)
        self._window: WindowArrays | None = None
        self._clear(DistanceScale(False, 1.0))

    def _clear(self, distances: DistanceScale) -> None:
        self._distances = distances
        self._grid, self._frame = enclosing_grid(distances, RankedSubscriptions(), None)
        self._sample = sample_of(None, self._grid)
        # The threshold each subscription was filed with; records have the current one.
        self._filed_threshold = np.zeros(0)
        self._parts = [empty_part() for _ in range(N_PARTS)]
        # The size of the base part; the subscriptions of the delta part; those in no list; those that wait for a message.
        self._n_filed, self._delta, self._unindexed = 0, np.empty(0, np.int32), np.empty(0, np.int32)
        self._queued: list[NDArray[np.int32]] = []
        self._subscriptions = RankedSubscriptions()
        # A rebuild in a thread; one that was running is not needed any more.
        self._background_rebuild: BackgroundRebuild | None = None
        self._n_seen = 0
        self._near = np.empty(_FIRST_CAPACITY, np.int32)
        self._scratch = _scratch_for(_FIRST_WORDS)
        # The subscriptions that messages reach, with scores, until the next search.
        self._reached = np.empty(_FIRST_CAPACITY, np.int32), np.empty(_FIRST_CAPACITY)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def learn(self, subscriptions: RankedSubscriptions, window: WindowArrays) -> None:
        self._window, self._subscriptions = window, subscriptions
        if self._n_filed and self._n_seen >= max(_LEAST_LATER, _SAMPLES_LATER * self._sample.n):
            self._rebuild(subscriptions, in_thread=self._n_filed >= _MIN_IN_THREAD)

    def build(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], distances: DistanceScale) -> None:
        self._clear(distances)
        self._note(subscriptions, threshold, subscriptions.alive())
        self._rebuild(subscriptions)

    def insert(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        if len(numbers):
            self._note_changes(numbers)
            self._note(subscriptions, threshold, numbers)
            self._enqueue(subscriptions, numbers)

    def delete(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        subscriptions.clear_keywords(numbers)
        self._filed_threshold[numbers] = _NO_THRESHOLD

    def thresholds_lowered(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        self._note_changes(numbers)
        below = numbers[threshold[numbers] < self._filed_threshold[numbers]]
        self.thresholds_raised(subscriptions, threshold, numbers)
        if len(below):
            self._filed_threshold[below] = threshold[below]
            self._enqueue(subscriptions, below)

    def thresholds_raised(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        subscriptions.threshold[numbers] = threshold[numbers]

    def _note(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Take over the thresholds of subscriptions to file."""
        n = subscriptions.n
        self._filed_threshold = resized(self._filed_threshold, n + n // 8, _NO_THRESHOLD, needed=n)
        self._filed_threshold[numbers] = threshold[numbers]
        self.thresholds_raised(subscriptions, threshold, numbers)

    def _enqueue(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """File subscriptions when the next message comes, together with others that wait."""
        self._subscriptions = subscriptions
        self._queued.append(numbers.copy())

    def _file_queued(self) -> None:
        """Keep waiting subscriptions in no list, or put them into the delta part, or file everything again."""
        if self._background_rebuild is not None and self._background_rebuild.is_done:
            self._install_rebuild(self._background_rebuild)
        if not self._queued:
            return
        self._unindexed, self._queued = self._in_no_list(), []
        if len(self._unindexed) <= self._max_unindexed:
            return
        later = np.unique(np.concatenate([self._delta, self._unindexed]))
        later = later[self._subscriptions.is_alive(later)]
        if len(later) > max(_LEAST_DELTA if self._n_filed > 8 * _LEAST_DELTA else 0, self._n_filed // _DELTA_SHARE):
            in_thread = self._n_filed >= max(_MIN_IN_THREAD, _IN_THREAD_SHARE * len(later))
            self._rebuild(self._subscriptions, in_thread)
            if not in_thread:
                return
        self._delta, self._unindexed = later, np.empty(0, np.int32)
        self._parts[1] = self._part_of(self._subscriptions, later, 1)

    def _install_rebuild(self, rebuild: BackgroundRebuild) -> None:
        """Take over what was filed in a thread. Subscriptions that changed since wait again."""
        self._background_rebuild = None
        try:
            result = rebuild.result()
        except Exception as problem:  # noqa: BLE001 - all that is needed is there
            warnings.warn(f"a rebuild failed ({problem!r}); the old lists stay in use", stacklevel=2)
            return
        self._install(result)
        for numbers in rebuild.changed:
            self._filed_threshold[numbers] = self._subscriptions.threshold[numbers]
        self._queued = rebuild.changed

    def _in_no_list(self) -> NDArray[np.int32]:
        """The subscriptions that are in no list."""
        return np.unique(np.concatenate([self._unindexed, *self._queued])) if self._queued else self._unindexed

    def _rebuild(self, subscriptions: RankedSubscriptions, in_thread: bool = False) -> None:
        """File everything: at once, or in a thread, unless one is running."""
        source = RebuildInput(self._distances, subscriptions, self._window, self._cost_of_cell(subscriptions))
        if not in_thread:
            self._install(source.rebuild())
        elif self._background_rebuild is None:
            self._background_rebuild, self._n_seen = BackgroundRebuild(source.copy()), 0

    def _install(self, result: RebuildResult) -> None:
        """Take over lists of everything, except what changed since."""
        numbers, threshold, self._grid, self._frame, self._sample, part = result
        self._filed_threshold[numbers] = threshold
        self._delta, self._unindexed, self._queued = np.empty(0, np.int32), np.empty(0, np.int32), []
        self._n_filed, self._n_seen, self._background_rebuild = len(numbers), 0, None
        self._parts = [part, empty_part()]

    def _note_changes(self, numbers: NDArray[np.int32]) -> None:
        """Note subscriptions that a rebuild in a thread does not have, or not as they are now."""
        if self._background_rebuild is not None:
            self._background_rebuild.changed.append(numbers.copy())

    def _part_of(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32], part: int) -> PartArrays:
        self._sample = with_words_of(subscriptions, self._sample)
        cost = self._cost_of_cell(subscriptions)
        return build_part(self._sample, self._grid, self._frame, subscriptions, self._filed_threshold, numbers, part, cost)

    def _cost_of_cell(self, subscriptions: RankedSubscriptions) -> float:
        assert isinstance(self.parameters, ImpactParameters)
        return self.parameters.cell_cost * min(1.0, math.sqrt(_MANY / max(1, subscriptions.n)))

    @property
    def _max_unindexed(self) -> int:
        assert isinstance(self.parameters, ImpactParameters)
        return self.parameters.fresh * max(1, self._n_filed // _MANY)

    # --- messages ----------------------------------------------------------------------------------------------------

    def find(
        self, subscriptions: RankedSubscriptionArrays, window: WindowArrays, first: int, last: int, counters: NDArray[np.int64]
    ) -> ScoredMatches:
        self._file_queued()
        start = np.zeros(last - first + 1, np.int64)
        if not self._n_filed + len(self._unindexed):
            self._n_seen += last - first
            return ScoredMatches(first, last, start, np.empty(0, np.int32), np.empty(0))
        self._reserve_words(window, first, last)
        index_arrays = (self._distances, self._sample.words, (self._parts[0], self._parts[1]), self._grid, self._frame)
        search_input = (subscriptions, window, self._unindexed, _bits_of(subscriptions, self._unindexed), self._scratch)
        at = np.array([first, 0, 0, 0], np.int64)
        while True:
            matches = ScoredMatches(first, last, start, *self._reached)
            stopped = find_matches(*index_arrays, *search_input, self._near, matches, at, _ENOUGH)
            if stopped == match.DONE:
                break
            if stopped == match.LACKS_NEAR:
                self._near = np.empty(2 * len(self._near), np.int32)
            else:
                subscription, score = self._reached
                self._reached = doubled(subscription, len(subscription)), doubled(score, len(score))
        end = int(at[match.POSITION])
        self._n_seen += end - first
        counters[NODES] += at[N_LISTS]
        counters[CANDIDATES] += at[N_NEAR]
        return _first_matches(matches._replace(last=end, start=start[: end - first + 1]), int(at[N_REACHED]))

    def _reserve_words(self, window: WindowArrays, first: int, last: int) -> None:
        most = int(np.diff(window.keyword_start[first : last + 1]).max(initial=0))
        if most > _max_words(self._scratch):
            self._scratch = _scratch_for(2 * most)

    def find_more(
        self,
        subscriptions: RankedSubscriptionArrays,
        window: WindowArrays,
        matches: ScoredMatches,
        position: int,
        numbers: NDArray[np.int32],
    ) -> ScoredMatches:
        n = matches.last - position
        n_near = n * len(numbers)
        empty = ScoredMatches(position, matches.last, np.zeros(n + 1, np.int64), np.empty(n_near, np.int32), np.empty(n_near))
        self._reserve_words(window, position, matches.last)
        # No candidates from lists: these subscriptions are checked by all messages.
        no_candidates, unindexed = (self._near, np.zeros(n + 1, np.int64)), (numbers, _bits_of(subscriptions, numbers))
        scratch = (self._scratch.table, self._scratch.common)
        arguments = (window, position, matches.last, *no_candidates, *unindexed, *scratch, empty, 0)
        return with_more(matches, position, _first_matches(empty, int(score_near(self._distances, subscriptions, *arguments))))

    # --- insight and disk --------------------------------------------------------------------------------------------

    def explain(self, subscriptions: RankedSubscriptions, number: int) -> list[str]:
        where = "in no list yet, checked by every message" if number in self._in_no_list() else "in the base part"
        where = "in the delta part" if number in self._delta else where
        return [f"{where}, with threshold {self._filed_threshold[number]:.6g}"]

    def stats(self) -> dict[str, int | float]:
        first = self._parts[0]
        sizes = {"cells": int(np.count_nonzero(first.slot[::2])), "buckets": len(first.bucket) // 2}
        sizes |= {"filed": self._n_filed, "filed_later": len(self._delta), "fresh": len(self._in_no_list())}
        return {**super().stats(), **sizes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays_of_parts = {
            f"{name}{at}": array for at, part in enumerate(self._parts) for name, array in part._asdict().items()
        }
        arrays_of_parts |= {**self._sample.words._asdict(), "mass": self._sample.mass}
        arrays_of_parts |= {"threshold": self._filed_threshold, "delta": self._delta, "unindexed": self._in_no_list()}
        counts = np.array([self._sample.n, self._n_filed, self._n_seen], np.int64)
        return {**arrays_of_parts, "counts": counts, "grid": np.array(self._grid, float), "frame": np.array(self._frame, float)}

    def restore(self, arrays: Mapping[str, NDArray[Any]], distances: DistanceScale) -> None:
        self._clear(distances)
        # Parts and the mass are never written to; thresholds and the rows of words are.
        self._parts = [PartArrays(*(arrays[f"{name}{at}"] for name in PartArrays._fields)) for at in range(N_PARTS)]
        n_sample, self._n_filed, self._n_seen = arrays["counts"].tolist()
        self._sample = Sample(KeywordArrays(arrays["row"].copy(), arrays["edge"]), arrays["mass"], n_sample)
        self._filed_threshold = arrays["threshold"].copy()
        self._delta, self._queued = arrays["delta"], [arrays["unindexed"]]
        self._grid = Grid(bool(arrays["grid"][0]), *arrays["grid"][1:].tolist())
        self._frame = Frame(bool(arrays["frame"][0]), *arrays["frame"][1:].tolist())


def _bits_of(subscriptions: RankedSubscriptionArrays, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    bits = np.empty(len(numbers), np.int64)
    bits_of_subscriptions(subscriptions, numbers, bits)
    return bits


def _first_matches(matches: ScoredMatches, n: int) -> ScoredMatches:
    return matches._replace(subscription=matches.subscription[:n], score=matches.score[:n])


def _scratch_for(n_words: int) -> FindScratch:
    """Scratch for messages of up to `n_words` words."""
    item, item_word = np.empty((2, max(n_words, _LEAST_WORDS) * LISTS_OF_WORD), np.int64)
    item_start, near_start = np.empty((2, MOST_AT_ONCE + 1), np.int64)
    figures, relative_weight = np.zeros(OWN + n_words, np.float32), aligned_zeros(N_SLOTS * n_words, np.int16)
    word_facts, common, repeated = (
        np.zeros(N_WORD_FACTS * n_words, np.int64),
        np.empty(max(1, n_words)),
        np.empty(N_FIGURES * n_words),
    )
    return FindScratch(
        item, item_word, item_start, near_start, figures, relative_weight, word_facts, empty_table(n_words), common, repeated
    )


def _max_words(scratch: FindScratch) -> int:
    """The number of words that a message may have."""
    return len(scratch.word_facts) // N_WORD_FACTS
