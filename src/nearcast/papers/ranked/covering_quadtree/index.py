"""`covering_quadtree`: lists by cell and keyword; a subscription is in the lists of all cells that cover the plane for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import resized
from nearcast.columns.id_tables import NumberTable
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.papers.ranked.covering_quadtree.kernels import (
    FILED,
    FRAMED,
    POSTINGS,
    QUARTERS,
    CellListArrays,
    Cover,
    post_many,
    remove_many,
    run_ticks,
    write_keys,
    write_nearness,
)
from nearcast.papers.ranked.skyband.tick_index import TickArrays, TickIndex
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.layouts import POSITION, TickRules
from nearcast.ranked.subscriptions import RankedSubscriptions

_COUNT_NAMES = ("cells_seen", "lists_seen", "postings_seen", "met", "scored")
_BY_LIST = {"first": np.int64, "size": np.int32, "capacity": np.int32}
_TABLE = "table."
_COVER = "cover"
# Keys are written for this many subscriptions at a time.
_PART = 20_000
# The frame is chosen again when there are this many times, and this many, more subscriptions than it was chosen for.
_TIMES, _MORE = 4, 64


@dataclass(frozen=True, slots=True)
class CoverParameters(Parameters):
    """`levels`: how often the cell around a subscription is divided; it is covered by three times as many cells and one."""

    levels: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= 12:
            raise IndexParameterError(f"levels={self.levels!r} is not possible; expected 1 to 12")


class CoveringQuadtree(TickIndex):
    """The largest proximity of a cell is computed beforehand; the lists of a cell are merged by subscription."""

    name = "covering_quadtree"
    aliases = ("ciq",)
    paper = "Chen et al. (CIQ), as compared in Wang et al., Skype (VLDB 2016)"
    summary = "lists by covering cell and keyword, merged by subscription"
    parameters_class = CoverParameters

    def __init__(self, parameters: CoverParameters) -> None:
        super().__init__(parameters)
        self._levels = parameters.levels
        self._counts = np.zeros(len(_COUNT_NAMES), np.int64)
        self._cursors, self._value = np.empty((3, 0), np.int64), np.empty(0)
        self._clear(DistanceScale(False, 1.0))

    def _clear(self, distances: DistanceScale, box: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)) -> None:
        self._distances = distances
        self._cover = Cover(*distances, *((-180.0, -90.0, 180.0, 90.0) if distances.is_lonlat else box), self._levels)
        self._table = NumberTable()
        empty: dict[str, NDArray[Any]] = {name: np.empty(0, dtype) for name, dtype in _BY_LIST.items()}
        empty |= {"subscription": np.empty(0, np.int32), "share": np.empty(0, np.float32), "near": np.empty(0, np.float32)}
        self._lists = CellListArrays(**empty, free=np.full(N_CLASSES, NO_CHUNK, np.int64), used=np.zeros(3, np.int64))

    @property
    def _per_word(self) -> int:
        return 3 * self._levels + 1

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def build(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], distances: DistanceScale) -> None:
        rows, numbers = subscriptions.layout(), subscriptions.alive()
        x, y = rows.x[numbers], rows.y[numbers]
        self._clear(distances, (float(x.min()), float(y.min()), float(x.max()), float(y.max())) if len(numbers) else (0.0,) * 4)
        self._lists.used[FRAMED] = len(numbers)
        self._file(subscriptions, numbers)

    def insert(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        filed, framed = int(self._lists.used[FILED]), int(self._lists.used[FRAMED])
        if filed + len(numbers) > _TIMES * framed + _MORE:
            self.build(subscriptions, threshold, self._distances)
        else:
            self._file(subscriptions, numbers)

    def _file(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        rows = subscriptions.layout()
        self._lists = self._lists._replace(near=_grown(self._lists.near, subscriptions.n * self._levels * QUARTERS))
        for begin in range(0, len(numbers), _PART):
            part = numbers[begin : begin + _PART]
            write_nearness(self._cover, rows, part, self._lists.near)
            list_ids = self._table.add(self._keys(subscriptions, part))
            grown = {name: _grown(getattr(self._lists, name), self._table.n) for name in _BY_LIST}
            self._lists = self._lists._replace(**grown)
            done = 0
            while True:
                done = int(post_many(self._lists, rows, part, self._per_word, list_ids, done))
                if done == len(part):
                    break
                n_needed = int(self._lists.used[POSTINGS]) * 5 // 4 + self._capacity_for(list_ids)
                capacity = {name: _grown(getattr(self._lists, name), n_needed) for name in ("subscription", "share")}
                self._lists = self._lists._replace(**capacity)

    def _capacity_for(self, list_ids: NDArray[np.int32]) -> int:
        """Enough to move every one of these lists."""
        return int((self._lists.size[np.unique(list_ids)].astype(np.int64) * 5 // 4 + 4).sum())

    def _keys(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        rows = subscriptions.layout()
        keys = np.empty(self._per_word * int(rows.n_words[numbers].sum()), np.int64)
        write_keys(self._cover, rows, numbers, keys)
        return keys

    def delete(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        list_ids = self._table.find(self._keys(subscriptions, numbers))
        remove_many(self._lists, subscriptions.layout(), numbers, self._per_word, list_ids)

    def thresholds_lowered(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        """Thresholds are read from the buffers."""

    def thresholds_raised(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        """Thresholds are read from the buffers."""

    # --- messages ----------------------------------------------------------------------------------------------------

    def run_ticks(self, arrays: TickArrays, last: int, rules: TickRules) -> int:
        n_words = int(np.diff(arrays.window.keyword_start[int(arrays.run.at[POSITION]) : last + 1]).max(initial=0))
        if n_words > len(self._value):
            self._cursors, self._value = np.empty((3, 2 * n_words), np.int64), np.empty(2 * n_words)
        scratch = (self._cursors, self._value, self._counts)
        return int(run_ticks((self._lists, self._table.layout(), self._cover), scratch, *arrays, last, rules))

    # --- insight and disk --------------------------------------------------------------------------------------------

    def explain(self, subscriptions: RankedSubscriptions, number: int) -> list[str]:
        rows = subscriptions.layout()
        n_words = int(rows.n_words[number])
        sizes = self._lists.size[self._table.find(self._keys(subscriptions, np.array([number], np.int32)))]
        near = self._lists.near[number * self._levels * QUARTERS : (number + 1) * self._levels * QUARTERS]
        return [
            f"{self._per_word} cells cover the plane; {n_words} keywords: {len(sizes)} lists of {sizes.mean():.1f}",
            f"a message adds at most {near.max():.6g} by its place in the nearest cell, {near.min():.6g} in the farthest",
        ]

    def stats(self) -> dict[str, int | float]:
        postings = int(self._lists.size.sum())
        sizes = {"lists": self._table.n, "postings": postings, "filed": int(self._lists.used[FILED])}
        return {**super().stats(), **sizes, **dict(zip(_COUNT_NAMES, self._counts.tolist(), strict=True))}

    def arrays(self) -> dict[str, NDArray[Any]]:
        n = int(self._lists.used[POSTINGS])
        used = {name: getattr(self._lists, name)[:n] for name in ("subscription", "share")}
        table = {_TABLE + name: array for name, array in self._table.arrays().items()}
        return {**self._lists._asdict(), **used, **table, _COVER: np.array(self._cover[2:6])}

    def restore(self, arrays: Mapping[str, NDArray[Any]], distances: DistanceScale) -> None:
        box = arrays[_COVER]
        self._clear(distances, (float(box[0]), float(box[1]), float(box[2]), float(box[3])))
        self._lists = CellListArrays(**{name: np.ascontiguousarray(arrays[name]) for name in CellListArrays._fields})
        self._table = NumberTable.from_arrays(
            {name.removeprefix(_TABLE): array for name, array in arrays.items() if name.startswith(_TABLE)}
        )


def _grown(array: NDArray[Any], n: int) -> NDArray[Any]:
    return resized(array, n + n // 8, needed=n)
