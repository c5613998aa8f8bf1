"""Calls of match kernels: the scratch of a thread, and more room whenever pairs do not fit."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import doubled
from nearcast.engine.groups import Groups, Work, grouped, single_pairs
from nearcast.kernels.layouts import CANDIDATES, NODES, Output

FIRST_CAPACITY = 4096


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


def run_until_it_fits(
    n_keys: int, run_from: Callable[[int, int, Output], tuple[int, int]], is_by_clause: bool = False
) -> tuple[Groups, Work]:
    """Run a kernel over the messages of a batch, or over clauses, with twice the output memory whenever the pairs do not fit.

    `run_from(first, n_out, output)` begins at message (or clause) `first`, writes pairs from `n_out` on, and returns where it
    stopped and the number of pairs written. It stops early only where the pairs of one message (or clause) do not fit.
    """
    output = Output(np.empty(FIRST_CAPACITY, np.int32), np.empty(FIRST_CAPACITY, np.int32), np.zeros(2, np.int64))
    first, n_out = 0, 0
    while True:
        first, n_out = run_from(first, n_out, output)
        if first >= n_keys:
            break
        output = Output(doubled(output.message, n_out), doubled(output.clause, n_out), output.counters)
    message, clause = output.message[:n_out], output.clause[:n_out]
    groups = single_pairs(clause, message) if is_by_clause else grouped(message, clause, n_keys)
    return groups, Work(int(output.counters[NODES]), int(output.counters[CANDIDATES]))
