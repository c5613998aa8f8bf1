"""The changes that a call reports: pairs that left results or entered them, as objects or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import number_buffer, number_column
from nearcast.columns.identifiers import Identifiers
from nearcast.engine.groups import Groups, single_pairs
from nearcast.kernels.deliveries import fill_group_ids
from nearcast.model.delivery import Change
from nearcast.moving.live_messages import LiveMessages

_SHIFT = np.int64(32)


class Changes(NamedTuple):
    """Pairs of a subscription number and a message slot: those that left the results, and those that entered.

    The keys of the groups are messages if `is_by_message`, else subscriptions.
    """

    left: Groups
    entered: Groups
    is_by_message: bool = False

    def __len__(self) -> int:
        return self.left.n_pairs + self.entered.n_pairs

    def pair_keys(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each pair as one int64: the subscription in the upper half, the message in the lower half."""
        left, entered = (_pair_keys(groups, self.is_by_message) for groups in (self.left, self.entered))
        return left, entered

    def to_table(self, ids: Identifiers, messages: LiveMessages) -> pa.Table:
        """A table of subscription_id, message_id and change (-1 or 1)."""
        n_left, n = self.left.n_pairs, len(self)
        change = np.ones(n, np.int8)
        change[:n_left] = -1
        if ids.kind == "string" or messages.ids.kind == "string":
            key = np.concatenate(self.pair_keys())
            subscription_id = ids.take((key >> _SHIFT).astype(np.int32))
            message_id = messages.ids.take(_message_of(key))
        else:
            number, subscription_id = number_buffer(n)
            message, message_id = number_buffer(n)
            for groups, part in ((self.left, slice(0, n_left)), (self.entered, slice(n_left, n))):
                if self.is_by_message:
                    fill_group_ids(*groups, messages.ids.numbers, *ids.numbering(), message[part], number[part])
                else:
                    fill_group_ids(*groups, ids.numbers, messages.ids.numbers, 0, number[part], message[part])
        columns = {"subscription_id": subscription_id, "message_id": message_id, "change": number_column(change)}
        return pa.table(columns)


def difference(before: Groups, after: Groups) -> Changes:
    """The changes from one state of results to another; the keys are subscriptions."""
    left, entered = Changes(before, after).pair_keys()
    return _changes(np.setdiff1d(left, entered), np.setdiff1d(entered, left))


def joined(parts: Sequence[Changes]) -> Changes:
    """Changes of different subscriptions together, copied."""
    keys = [part.pair_keys() for part in parts]
    return _changes(*(np.concatenate(column) for column in zip(*keys, strict=True)))


def without_reused_ids(changes: Changes, slots: NDArray[np.int32], old: NDArray[np.int32], n_slots: int) -> Changes:
    """Drop pairs that leave and enter within a call because the message at `slots[i]` has the id of the expired `old[i]`."""
    renamed = np.arange(n_slots, dtype=np.int64)
    renamed[slots] = old
    left, entered = changes.pair_keys()
    entered_before = (entered >> _SHIFT << _SHIFT) | renamed[_message_of(entered)]
    return _changes(left[~np.isin(left, entered_before)], entered[~np.isin(entered_before, left)])


def combined(first: Changes, then: Changes) -> Changes:
    """Two consecutive changes as one: pairs that enter and leave again cancel out."""
    left, entered = joined([first, then]).pair_keys()
    return _changes(left[~np.isin(left, entered)], entered[~np.isin(entered, left)])


def change_objects(table: pa.Table) -> list[Change]:
    """The rows of a table of changes as objects."""
    columns = (table[name].to_pylist() for name in ("subscription_id", "message_id", "change"))
    return [Change(*row) for row in zip(*columns, strict=True)]


def _pair_keys(groups: Groups, is_by_message: bool) -> NDArray[np.int64]:
    key, member = groups.pairs()
    number, message = (member, key) if is_by_message else (key, member)
    return (number.astype(np.int64) << _SHIFT) | message.astype(np.int64)


def _message_of(keys: NDArray[np.int64]) -> NDArray[np.int32]:
    return (keys & 0xFFFFFFFF).astype(np.int32)


def _changes(left: NDArray[np.int64], entered: NDArray[np.int64]) -> Changes:
    left_pairs, entered_pairs = (single_pairs((keys >> _SHIFT).astype(np.int32), _message_of(keys)) for keys in (left, entered))
    return Changes(left_pairs, entered_pairs)
