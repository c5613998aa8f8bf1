"""Pairs of subscriptions and messages before and after a call → the changes that are reported, as objects or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.identifiers import Identifiers
from nearcast.columns.live_messages import LiveMessages
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
        number = np.concatenate([self.left.number, self.entered.number])
        message = np.concatenate([self.left.message, self.entered.message])
        change = np.repeat(np.array([-1, 1], np.int8), [len(self.left.number), len(self.entered.number)])
        return pa.table(
            {"subscription_id": ids.take(number), "message_id": messages.ids(message), "change": pa.array(change, pa.int8())}
        )


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


def cancelled(changes: Changes, same: dict[int, int]) -> Changes:
    """Without pairs that leave and enter again, because an id was used again: `same` leads from the new slot to the old one."""
    renamed = np.array([same.get(slot, slot) for slot in changes.entered.message.tolist()], np.int32)
    left, entered = changes.left.keys(), Pairs(changes.entered.number, renamed).keys()
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
