"""Changes of result lists: as arrays, as a table and as objects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import number_column
from nearcast.columns.growing import resized
from nearcast.columns.identifiers import Identifiers
from nearcast.kernels.hashing import EMPTY_SLOT
from nearcast.model.delivery import RankChange
from nearcast.ranked.kernels.layouts import ChangeArrays
from nearcast.ranked.kernels.rank_changes import sum_changes


class RankChanges(NamedTuple):
    """Changes of lists: at which tick, of which subscription (number), which message, +1 or -1, its score."""

    tick: NDArray[np.int64]
    subscription: NDArray[np.int32]
    message_ids: pa.Array
    change: NDArray[np.int8]
    score: NDArray[np.float64]


def change_arrays(n: int) -> ChangeArrays:
    """Empty columns for `n` changes."""
    columns = (np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int8), np.empty(n))
    return ChangeArrays(np.zeros(1, np.int64), *columns)


def with_capacity(changes: ChangeArrays, capacity: int) -> ChangeArrays:
    """The same changes in columns for at least `capacity`."""
    n = int(changes.n[0])
    return ChangeArrays(changes.n, *(resized(column, capacity, None, n) for column in changes[1:]))


def cancel_out(columns: tuple[NDArray[Any], ...], id_number: NDArray[np.int32]) -> tuple[NDArray[Any], ...]:
    """Drop pairs of changes that cancel out. A message that enters a list and leaves it within the call is not reported.

    A message enters and leaves a list in turn, with the same score unless the words or the weights of the list changed.
    Messages of the same id, of which one replaces the other, count as one.
    """
    tick, subscription, number, change, score = columns
    slot = np.full(1 << (2 * len(tick)).bit_length(), EMPTY_SLOT, np.int32)
    total = np.empty_like(change)
    sum_changes(subscription, id_number, score, change, slot, total)
    left = np.flatnonzero(total)
    return tick[left], subscription[left], number[left], total[left], score[left]


_COLUMNS = ("tick", "subscription_id", "message_id", "change", "score")


def change_table(changes: RankChanges, ids: Identifiers) -> pa.Table:
    """Columns tick, subscription_id, message_id, change, score."""
    subscription_ids, change = ids.take(changes.subscription), number_column(changes.change)
    return pa.table([changes.tick, subscription_ids, changes.message_ids, change, changes.score], names=_COLUMNS)


def change_objects(table: pa.Table) -> list[RankChange]:
    return [RankChange(*row) for row in zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)]
