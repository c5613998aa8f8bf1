"""Changes of result lists: room for them, what is left of them in the end, and how they are given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import number_column
from nearcast.columns.identifiers import Identifiers
from nearcast.kernels.hashing import EMPTY_SLOT
from nearcast.model.delivery import RankChange
from nearcast.ranked.kernels.layouts import ChangeArrays
from nearcast.ranked.kernels.rank_changes import add_up_changes


class RankChanges(NamedTuple):
    """Changes of lists: at which tick, of which subscription (number), which message, +1 or -1, its score."""

    tick: NDArray[np.int64]
    subscriber: NDArray[np.int32]
    message_ids: pa.Array
    change: NDArray[np.int8]
    score: NDArray[np.float64]


def room_for(n: int) -> ChangeArrays:
    """Room for so many changes."""
    columns = (np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int8), np.empty(n))
    return ChangeArrays(np.zeros(1, np.int64), *columns)


def net(told: tuple[NDArray[Any], ...], id_number: NDArray[np.int32]) -> tuple[NDArray[Any], ...]:
    """Of changes one after the other those that do not undo each other.

    A message enters and leaves a list in turn, with the same score unless the list is of other words or weights by now.
    Messages of the same id, of which one takes the place of the other, are one.
    """
    tick, subscriber, number, change, score = told
    slot = np.full(1 << (2 * len(tick)).bit_length(), EMPTY_SLOT, np.int32)
    total = np.empty_like(change)
    add_up_changes(subscriber, id_number, score, change, slot, total)
    left = np.flatnonzero(total)
    return tick[left], subscriber[left], number[left], total[left], score[left]


# -- Changes of lists, as a table and as objects.

_COLUMNS = ("tick", "subscription_id", "message_id", "change", "score")


def change_table(changes: RankChanges, ids: Identifiers) -> pa.Table:
    """tick, subscription_id, message_id, change, score."""
    subscription_ids, change = ids.take(changes.subscriber), number_column(changes.change)
    return pa.table([changes.tick, subscription_ids, changes.message_ids, change, changes.score], names=_COLUMNS)


def change_objects(table: pa.Table) -> list[RankChange]:
    return [RankChange(*row) for row in zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)]
