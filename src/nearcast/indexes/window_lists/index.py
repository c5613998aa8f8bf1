"""Lists of messages by keyword, linked through the words of the window itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray
from nearcast.columns.subscribers import Subscribers
from nearcast.columns.window import MessageWindow
from nearcast.indexes.ranked_base import Ground
from nearcast.indexes.window_base import Best, WindowIndex
from nearcast.indexes.window_lists.match import NO_OCCURRENCE, find_best, link_occurrences


class WindowLists(WindowIndex):
    """Of each keyword its latest occurrence, of each occurrence the one before."""

    name = "window_lists"

    def __init__(self) -> None:
        self._latest = GrowingArray(np.int64)
        self._earlier = GrowingArray(np.int64)
        self._place_of = GrowingArray(np.int32)

    def add(self, window: MessageWindow, first: int) -> None:
        layout = window.layout()
        n_keywords = int(layout.keyword.max()) + 1 if layout.keyword.size else 0
        self._latest.extend(NO_OCCURRENCE, max(0, n_keywords - self._latest.n))
        n_new = layout.keyword.size - self._earlier.n
        self._earlier.extend(NO_OCCURRENCE, n_new)
        self._place_of.extend(0, n_new)
        lists = (self._latest.used, self._earlier.used, self._place_of.used)
        link_occurrences(layout.keyword_start, layout.keyword, first, *lists)

    def rebuild(self, window: MessageWindow) -> None:
        self._latest, self._earlier, self._place_of = GrowingArray(np.int64), GrowingArray(np.int64), GrowingArray(np.int32)
        self.add(window, 0)

    def best(
        self,
        subscribers: Subscribers,
        window: MessageWindow,
        ground: Ground,
        numbers: NDArray[np.int32],
        n_wanted: NDArray[np.int32],
        first_number: int = 0,
    ) -> Best:
        start = np.concatenate([[0], np.cumsum(n_wanted)]).astype(np.int64)
        layout = subscribers.layout()
        seen = np.full(window.n, -1, np.int64)
        common = np.empty(int(layout.n_words.max()) if len(layout.n_words) else 0)
        found = Best(start, np.zeros(len(numbers), np.int32), np.empty(int(start[-1]), np.int64), np.empty(int(start[-1])))
        lists = (self._latest.used, self._earlier.used, self._place_of.used)
        find_best(
            lists,
            layout,
            window.layout(),
            ground,
            numbers,
            n_wanted,
            first_number,
            seen,
            common,
            start,
            found.n,
            (found.number, found.score),
        )
        return found

    @property
    def n_bytes(self) -> int:
        return sum(array.room.nbytes for array in (self._latest, self._earlier, self._place_of))
