"""A batch of messages as flat arrays, ready for the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import keyword_sets
from nearcast.kernels.layouts import MessageArrays


@dataclass(slots=True)
class MessageBatch:
    """The usable messages of one call.

    `row[m]` is the row of message `m` in the input (rejected rows are left out); every keyword id is below `n_keywords`.
    `count` says how often each keyword is in its message, if it was requested.
    """

    arrays: MessageArrays
    row: NDArray[np.int64]
    n_keywords: int
    count: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.row)


def keyword_sets_of(list_start: NDArray[np.int64], ids: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Sorted sets of keyword ids, without the unknown (negative) ones, from lists: offsets and members."""
    set_start, members = np.empty(len(list_start), np.int64), np.empty(len(ids), np.int32)
    n = keyword_sets.gather_sets(list_start, ids, set_start, members, np.empty(0, np.int32))
    return set_start, members[:n]


def counted_sets_of(
    list_start: NDArray[np.int64], ids: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """As `keyword_sets_of`, and how often each member is in its list."""
    set_start, members, count = np.empty(len(list_start), np.int64), np.empty(len(ids), np.int32), np.empty(len(ids), np.int32)
    n = keyword_sets.gather_sets(list_start, ids, set_start, members, count)
    return set_start, members[:n], count[:n]
