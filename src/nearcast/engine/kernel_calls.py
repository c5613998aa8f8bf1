"""Calls of match kernels: the scratch of a thread, and more room whenever pairs do not fit."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import doubled
from nearcast.engine.groups import Matches
from nearcast.kernels.layouts import CANDIDATES, NODES, Output

FIRST_ROOM = 4096


class Stamps(threading.local):
    """Scratch of one thread: `stamp[keyword] == mark` tells that the current message has the keyword."""

    def __init__(self) -> None:
        self._stamp: NDArray[np.int32] = np.zeros(0, np.int32)
        self._last_mark = 0

    def take(self, n_keywords: int, n_messages: int) -> tuple[NDArray[np.int32], int]:
        """A stamp array, and the mark before the first message's (message `m` uses mark + 1 + m)."""
        if len(self._stamp) < n_keywords or self._last_mark + n_messages >= np.iinfo(np.int32).max:
            self._stamp = np.zeros(max(n_keywords, 2 * len(self._stamp)), np.int32)
            self._last_mark = 0
        mark = self._last_mark
        self._last_mark += n_messages
        return self._stamp, mark


def collect(n_messages: int, match_from: Callable[[int, int, Output], tuple[int, int]]) -> Matches:
    """Run a match kernel over a batch, giving it more room whenever it stops for lack of it.

    `match_from(first, n_out, output)` matches messages from `first` on, writes pairs from `n_out` on, and returns the
    message it stopped before and the number of pairs then; it stops early only where a message's pairs did not fit.
    """
    output = Output(np.empty(FIRST_ROOM, np.int32), np.empty(FIRST_ROOM, np.int32), np.zeros(2, np.int64))
    first, n_out = 0, 0
    while True:
        first, n_out = match_from(first, n_out, output)
        if first >= n_messages:
            break
        output = Output(doubled(output.message, n_out), doubled(output.clause, n_out), output.counters)
    counters = output.counters
    return Matches(output.message[:n_out], output.clause[:n_out], int(counters[NODES]), int(counters[CANDIDATES]))
