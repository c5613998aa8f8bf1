"""Pairs of subscriptions and messages before and after a call → the changes that are reported, as objects or as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.identifiers import Identifiers
from nearcast.columns.live_messages import LiveMessages
from nearcast.kernels.changes import look_up_ids
from nearcast.model.delivery import Change

_SHIFT = np.int64(32)


class Pairs(NamedTuple):
    """Distinct pairs: the number of a subscription and the slot of a message."""

    number: NDArray[np.int32]
    message: NDArray[np.int32]

    def keys(self) -> NDArray[np.int64]:
        """A pair as one number."""
        return (self.number.astype(np.int64) << _SHIFT) | self.message.astype(np.int64)


class Changes(NamedTuple):
    """Pairs that are no more, and new ones."""

    left: Pairs
    entered: Pairs

    def __len__(self) -> int:
        return len(self.left.number) + len(self.entered.number)

    def to_table(self, ids: Identifiers, messages: LiveMessages) -> pa.Table:
        """subscription_id, message_id, change."""
        n_left = len(self.left.number)
        change = np.ones(len(self), np.int8)
        change[:n_left] = -1
        return pa.table(
            {
                "subscription_id": _ids_of(self.left.number, self.entered.number, ids.take, _numbers_of(ids)),
                "message_id": _ids_of(
                    self.left.message,
                    self.entered.message,
                    messages.ids.take,
                    messages.ids.numbers if messages.ids.kind == "int" else None,
                ),
                "change": pa.array(change),
            }
        )


def _numbers_of(ids: Identifiers) -> NDArray[np.int64] | None:
    return ids.numbers if ids.kind == "int" else None


def _ids_of(
    left: NDArray[np.int32],
    entered: NDArray[np.int32],
    take: Callable[[NDArray[np.int32]], pa.Array],
    numbers: NDArray[np.int64] | None,
) -> pa.Array:
    """The ids at these places, one side after the other; numbers straight into the column."""
    if numbers is None:
        return take(np.concatenate([left, entered]))
    column = np.empty(len(left) + len(entered), np.int64)
    look_up_ids(numbers, left, column[: len(left)])
    look_up_ids(numbers, entered, column[len(left) :])
    return pa.array(column)


NO_PAIRS = Pairs(np.empty(0, np.int32), np.empty(0, np.int32))


def difference(before: Pairs, after: Pairs) -> Changes:
    """What it takes to come from one state to the other."""
    was, is_now = before.keys(), after.keys()
    return Changes(_pairs(np.setdiff1d(was, is_now)), _pairs(np.setdiff1d(is_now, was)))


def joined(parts: Sequence[Changes]) -> Changes:
    """Changes of different subscriptions, together."""
    sides = [
        Pairs(np.concatenate([p.number for p in side]), np.concatenate([p.message for p in side]))
        for side in ([part.left for part in parts], [part.entered for part in parts])
    ]
    return Changes(*sides)


def cancelled(changes: Changes, slots: NDArray[np.int32], old: NDArray[np.int32], n_slots: int) -> Changes:
    """Without pairs that leave and enter again, because an id was used again: that of `old[i]` by the message at `slots[i]`."""
    renamed = np.arange(n_slots, dtype=np.int32)
    renamed[slots] = old
    left, entered = changes.left.keys(), Pairs(changes.entered.number, renamed[changes.entered.message]).keys()
    stays = np.intersect1d(left, entered)
    is_left, is_entered = ~np.isin(left, stays), ~np.isin(entered, stays)
    return Changes(_taken(changes.left, is_left), _taken(changes.entered, is_entered))


def change_objects(table: pa.Table) -> list[Change]:
    """The rows of a table of changes as objects."""
    columns = (table[name].to_pylist() for name in ("subscription_id", "message_id", "change"))
    return [Change(*row) for row in zip(*columns, strict=True)]


def _pairs(keys: NDArray[np.int64]) -> Pairs:
    return Pairs((keys >> _SHIFT).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))


def _taken(pairs: Pairs, is_kept: NDArray[np.bool_]) -> Pairs:
    return Pairs(pairs.number[is_kept], pairs.message[is_kept])
