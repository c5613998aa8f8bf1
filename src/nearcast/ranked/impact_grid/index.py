"""The index of ranked subscriptions by keyword, by how much messages weigh, and by the cells from which they are reached."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import aligned_zeros, doubled
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.ranked.impact_grid.kernels import match
from nearcast.ranked.impact_grid.kernels.match import (
    LISTS_OF_WORD,
    MOST_AT_ONCE,
    N_KNOWN,
    N_LISTS,
    N_NEAR,
    N_REACHED,
    find_reached,
)
from nearcast.ranked.impact_grid.kernels.score_candidates import bits_of_subscribers, empty_table, score_near
from nearcast.ranked.impact_grid.kernels.simd_near_plain import N_SLOTS, OWN
from nearcast.ranked.impact_grid.layout import N_PARTS, FindScratch, Grid, PartArrays, WordArrays
from nearcast.ranked.impact_grid.rebuild import (
    Everything,
    Filed,
    Filing,
    Sample,
    build_part,
    grid_around,
    no_part,
    sample_of,
    with_words_of,
)
from nearcast.ranked.index import AheadIndex, DistanceScale, with_more
from nearcast.ranked.kernels.bounds import N_FIGURES, Frame
from nearcast.ranked.kernels.layouts import FoundArrays, RankedSubscriptionArrays, WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptions

# The first part has most subscriptions, the second those filed since, up to this share; the last few are in no list at all.
_SECOND_SHARE, _LEAST_SECOND = 128, 4096
# So many are filed in a thread, unless more than this share of them came since.
_LEAST_BESIDE, _BESIDE_SHARE = 20_000, 2
# Everything is filed anew after so many times as many messages as were in the sample, but not before so many.
_SAMPLES_LATER, _LEAST_LATER = 8, 20_000
# So many subscriptions share what a cell costs.
_MANY = 1_000_000
_NO_FLOOR = math.inf
_FIRST_ROOM, _FIRST_WORDS, _LEAST_WORDS = 1 << 14, 32, 4096
# When messages have reached so many subscriptions, the others are looked for later.
_ENOUGH = 1 << 20


@dataclass(frozen=True, slots=True)
class ImpactParameters(Parameters):
    """`cell_cost`: what it costs to be in a cell, in looks per message; `fresh`: most subscriptions that are in no list.

    Beyond a million subscriptions being in a cell costs less, as the root of how many there are: lists are longer, and more of
    them share what there is to do for a cell. For every million there may be `fresh` in no list: the second part, which is
    written anew for them, has so many more, and they come so much faster.
    """

    cell_cost: float = 5e-4
    fresh: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.cell_cost <= 1:
            raise IndexParameterError(f"cell_cost={self.cell_cost!r} is not possible; expected a number above 0, at most 1")
        if not 0 <= self.fresh <= 100_000:
            raise IndexParameterError(f"fresh={self.fresh!r} is not possible; expected 0 to 100000")


class ImpactGrid(AheadIndex):
    """A subscription is in the lists of those cells from which a message of some weight can reach its floor.

    Lists are written once: who is filed later, or whose floor falls, is looked at by every message until there are enough for a
    second part, and that until it is a share of the first. Who goes, or whose floor rises, stays listed; the record tells. All
    that is to be filed waits for the next message, so that many subscriptions that come together are filed together.
    """

    name = "impact_grid"
    paper = "none"
    summary = "lists by keyword, weight of the message and cell, scanned sixteen subscriptions at a time"
    parameters_class = ImpactParameters

    def __init__(self, parameters: ImpactParameters) -> None:
        super().__init__(parameters)
        self._window: WindowArrays | None = None
        self._clear(DistanceScale(False, 1.0))

    def _clear(self, ground: DistanceScale) -> None:
        self._ground = ground
        self._grid, self._frame = grid_around(ground, RankedSubscriptions(), None)
        self._sample = sample_of(None, self._grid)
        # What subscriptions are filed with; their records have what it is now.
        self._floor = np.zeros(0)
        self._parts = [no_part() for _ in range(N_PARTS)]
        # Subscriptions of the first part, and of the second; those in no list; and those of which that is not decided yet.
        self._n_filed, self._second, self._fresh = 0, np.empty(0, np.int32), np.empty(0, np.int32)
        self._waiting: list[NDArray[np.int32]] = []
        self._subscribers = RankedSubscriptions()
        # What is under way in a thread; nobody asks any more for what was before.
        self._filing: Filing | None = None
        self._n_seen = 0
        self._near = np.empty(_FIRST_ROOM, np.int32)
        self._scratch = _scratch_for(_FIRST_WORDS)
        # Whom messages reach, with their scores: until the next ones are looked for.
        self._reached = np.empty(_FIRST_ROOM, np.int32), np.empty(_FIRST_ROOM)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def learn(self, subscribers: RankedSubscriptions, window: WindowArrays) -> None:
        self._window, self._subscribers = window, subscribers
        if self._n_filed and self._n_seen >= max(_LEAST_LATER, _SAMPLES_LATER * self._sample.n):
            self._file_all(subscribers, is_beside=self._n_filed >= _LEAST_BESIDE)

    def build(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], ground: DistanceScale) -> None:
        self._clear(ground)
        self._note(subscribers, threshold, subscribers.alive())
        self._file_all(subscribers)

    def insert(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        if len(numbers):
            self._note_changed(numbers)
            self._note(subscribers, threshold, numbers)
            self._file(subscribers, numbers)

    def delete(self, subscribers: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        subscribers.forget_words(numbers)
        self._floor[numbers] = _NO_FLOOR

    def lowered(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        self._note_changed(numbers)
        below = numbers[threshold[numbers] < self._floor[numbers]]
        self.raised(subscribers, threshold, numbers)
        if len(below):
            self._floor[below] = threshold[below]
            self._file(subscribers, below)

    def raised(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        subscribers.floor[numbers] = threshold[numbers]

    def _note(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Take over the floors of new subscriptions."""
        n = subscribers.n
        if n > len(self._floor):
            self._floor = np.concatenate([self._floor, np.full(n + n // 8 - len(self._floor), _NO_FLOOR)])
        self._floor[numbers] = threshold[numbers]
        self.raised(subscribers, threshold, numbers)

    def _file(self, subscribers: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """With what else waits, when the next message comes."""
        self._subscribers = subscribers
        self._waiting.append(numbers.copy())

    def _file_waiting(self) -> None:
        """Into no list, into the second part with others, or everything anew."""
        if self._filing is not None and self._filing.is_done:
            self._end_filing(self._filing)
        if not self._waiting:
            return
        self._fresh, self._waiting = self._unlisted(), []
        if len(self._fresh) <= self._most_fresh:
            return
        later = np.unique(np.concatenate([self._second, self._fresh]))
        later = later[self._subscribers.is_alive(later)]
        if len(later) > max(_LEAST_SECOND if self._n_filed > 8 * _LEAST_SECOND else 0, self._n_filed // _SECOND_SHARE):
            is_beside = self._n_filed >= max(_LEAST_BESIDE, _BESIDE_SHARE * len(later))
            self._file_all(self._subscribers, is_beside)
            if not is_beside:
                return
        self._second, self._fresh = later, np.empty(0, np.int32)
        self._parts[1] = self._part_of(self._subscribers, later, 1)

    def _end_filing(self, filing: Filing) -> None:
        """Take over what was filed in a thread; those that have changed since wait again."""
        self._filing = None
        try:
            filed = filing.result()
        except Exception as problem:  # noqa: BLE001 - all that is needed is there
            warnings.warn(f"subscriptions could not be filed anew ({problem!r}); the lists there are go on", stacklevel=2)
            return
        self._take_over(filed)
        for numbers in filing.changed:
            self._floor[numbers] = self._subscribers.floor[numbers]
        self._waiting = filing.changed

    def _unlisted(self) -> NDArray[np.int32]:
        """Who is in no list."""
        return np.unique(np.concatenate([self._fresh, *self._waiting])) if self._waiting else self._fresh

    def _file_all(self, subscribers: RankedSubscriptions, is_beside: bool = False) -> None:
        """At once, or in a thread beside the messages, if that is not under way already."""
        everything = Everything(self._ground, subscribers, self._window, self._cost_of_cell(subscribers))
        if not is_beside:
            self._take_over(everything.filed())
        elif self._filing is None:
            self._filing, self._n_seen = Filing(everything.copied()), 0

    def _take_over(self, filed: Filed) -> None:
        """Everything is filed, but for what has changed since."""
        numbers, floor, self._grid, self._frame, self._sample, part = filed
        self._floor[numbers] = floor
        self._second, self._fresh, self._waiting = np.empty(0, np.int32), np.empty(0, np.int32), []
        self._n_filed, self._n_seen, self._filing = len(numbers), 0, None
        self._parts = [part, no_part()]

    def _note_changed(self, numbers: NDArray[np.int32]) -> None:
        """What is filed in a thread has them not, or not as they are."""
        if self._filing is not None:
            self._filing.changed.append(numbers.copy())

    def _part_of(self, subscribers: RankedSubscriptions, numbers: NDArray[np.int32], part: int) -> PartArrays:
        self._sample = with_words_of(subscribers, self._sample)
        cost = self._cost_of_cell(subscribers)
        return build_part(self._sample, self._grid, self._frame, subscribers, self._floor, numbers, part, cost)

    def _cost_of_cell(self, subscribers: RankedSubscriptions) -> float:
        assert isinstance(self.parameters, ImpactParameters)
        return self.parameters.cell_cost * min(1.0, math.sqrt(_MANY / max(1, subscribers.n)))

    @property
    def _most_fresh(self) -> int:
        assert isinstance(self.parameters, ImpactParameters)
        return self.parameters.fresh * max(1, self._n_filed // _MANY)

    # --- messages ----------------------------------------------------------------------------------------------------

    def find(
        self, subscribers: RankedSubscriptionArrays, window: WindowArrays, first: int, last: int, counters: NDArray[np.int64]
    ) -> FoundArrays:
        self._file_waiting()
        start = np.zeros(last - first + 1, np.int64)
        if not self._n_filed + len(self._fresh):
            self._n_seen += last - first
            return FoundArrays(first, last, start, np.empty(0, np.int32), np.empty(0))
        self._give_room_for_words(window, first, last)
        filed = (self._ground, self._sample.words, (self._parts[0], self._parts[1]), self._grid, self._frame)
        looked_for = (subscribers, window, self._fresh, _bits_of(subscribers, self._fresh), self._scratch)
        at = np.array([first, 0, 0, 0], np.int64)
        while True:
            found = FoundArrays(first, last, start, *self._reached)
            stopped = find_reached(*filed, *looked_for, self._near, found, at, _ENOUGH)
            if stopped == match.DONE:
                break
            if stopped == match.LACKS_NEAR:
                self._near = np.empty(2 * len(self._near), np.int32)
            else:
                subscriber, score = self._reached
                self._reached = doubled(subscriber, len(subscriber)), doubled(score, len(score))
        end = int(at[match.PLACE])
        self._n_seen += end - first
        counters[NODES] += at[N_LISTS]
        counters[CANDIDATES] += at[N_NEAR]
        return _first_of(found._replace(last=end, start=start[: end - first + 1]), int(at[N_REACHED]))

    def _give_room_for_words(self, window: WindowArrays, first: int, last: int) -> None:
        most = int(np.diff(window.keyword_start[first : last + 1]).max(initial=0))
        if most > _words_of(self._scratch):
            self._scratch = _scratch_for(2 * most)

    def find_too(
        self,
        subscribers: RankedSubscriptionArrays,
        window: WindowArrays,
        found: FoundArrays,
        place: int,
        numbers: NDArray[np.int32],
    ) -> FoundArrays:
        n = found.last - place
        n_near = n * len(numbers)
        room = FoundArrays(place, found.last, np.zeros(n + 1, np.int64), np.empty(n_near, np.int32), np.empty(n_near))
        self._give_room_for_words(window, place, found.last)
        # Nobody is near: all are looked at everywhere.
        nobody, everywhere = (self._near, np.zeros(n + 1, np.int64)), (numbers, _bits_of(subscribers, numbers))
        scratch = (self._scratch.table, self._scratch.common)
        looked_at = (window, place, found.last, *nobody, *everywhere, *scratch, room, 0)
        return with_more(found, place, _first_of(room, int(score_near(self._ground, subscribers, *looked_at))))

    # --- insight and disk --------------------------------------------------------------------------------------------

    def explain(self, subscribers: RankedSubscriptions, number: int) -> list[str]:
        where = "in no list yet, looked at by every message" if number in self._unlisted() else "in the first part"
        where = "in the second part" if number in self._second else where
        return [f"{where}, with floor {self._floor[number]:.6g}"]

    def stats(self) -> dict[str, int | float]:
        first = self._parts[0]
        sizes = {"cells": int(np.count_nonzero(first.slot[::2])), "buckets": len(first.bucket) // 2}
        sizes |= {"filed": self._n_filed, "filed_later": len(self._second), "fresh": len(self._unlisted())}
        return {**super().stats(), **sizes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        own = {f"{name}{at}": array for at, part in enumerate(self._parts) for name, array in part._asdict().items()}
        own |= {**self._sample.words._asdict(), "mass": self._sample.mass}
        own |= {"floor": self._floor, "second": self._second, "fresh": self._unlisted()}
        counts = np.array([self._sample.n, self._n_filed, self._n_seen], np.int64)
        return {**own, "counts": counts, "grid": np.array(self._grid, float), "frame": np.array(self._frame, float)}

    def restore(self, arrays: Mapping[str, NDArray[Any]], ground: DistanceScale) -> None:
        self._clear(ground)
        # Parts and the mass are never written to, floors and rows of words are.
        self._parts = [PartArrays(*(arrays[f"{name}{at}"] for name in PartArrays._fields)) for at in range(N_PARTS)]
        n_sample, self._n_filed, self._n_seen = arrays["counts"].tolist()
        self._sample = Sample(WordArrays(arrays["row"].copy(), arrays["edge"]), arrays["mass"], n_sample)
        self._floor = arrays["floor"].copy()
        self._second, self._waiting = arrays["second"], [arrays["fresh"]]
        self._grid = Grid(bool(arrays["grid"][0]), *arrays["grid"][1:].tolist())
        self._frame = Frame(bool(arrays["frame"][0]), *arrays["frame"][1:].tolist())


def _bits_of(subscribers: RankedSubscriptionArrays, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    bits = np.empty(len(numbers), np.int64)
    bits_of_subscribers(subscribers, numbers, bits)
    return bits


def _first_of(found: FoundArrays, n: int) -> FoundArrays:
    return found._replace(subscriber=found.subscriber[:n], score=found.score[:n])


def _scratch_for(n_words: int) -> FindScratch:
    """For messages of up to so many words."""
    item, owner = np.empty((2, max(n_words, _LEAST_WORDS) * LISTS_OF_WORD), np.int64)
    item_start, near_start = np.empty((2, MOST_AT_ONCE + 1), np.int64)
    figures, worth = np.zeros(OWN + n_words, np.float32), aligned_zeros(N_SLOTS * n_words, np.int16)
    known, common, repeated = np.zeros(N_KNOWN * n_words, np.int64), np.empty(max(1, n_words)), np.empty(N_FIGURES * n_words)
    return FindScratch(item, owner, item_start, near_start, figures, worth, known, empty_table(n_words), common, repeated)


def _words_of(scratch: FindScratch) -> int:
    """How many words a message may have."""
    return len(scratch.known) // N_KNOWN
