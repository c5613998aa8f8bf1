"""Pairs of subscriptions and messages before and after a call → the changes that are reported, as objects or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import number_column, number_room
from nearcast.columns.identifiers import Identifiers
from nearcast.engine.groups import Groups
from nearcast.kernels.deliveries import fill_group_ids, fill_ids, fill_message_ids, fill_owners, look_up_ids
from nearcast.model.delivery import Change
from nearcast.moving.live_messages import LiveMessages

_SHIFT = np.int64(32)


class Pairs(NamedTuple):
    """Distinct pairs: the number of a subscription and the slot of a message."""

    number: NDArray[np.int32]
    message: NDArray[np.int32]

    def keys(self) -> NDArray[np.int64]:
        """A pair as one number."""
        return (self.number.astype(np.int64) << _SHIFT) | self.message.astype(np.int64)

    @property
    def n(self) -> int:
        return len(self.number)

    def pairs(self) -> Pairs:
        return self

    def fill_ids(self, ids: Identifiers, messages: LiveMessages, number: NDArray[np.int64], message: NDArray[np.int64]) -> None:
        """Write the ids, which are int64, of each pair."""
        look_up_ids(ids.numbers, self.number, 0, number)
        look_up_ids(messages.ids.numbers, self.message, 0, message)


class Grouped(NamedTuple):
    """The same, as an index found them: `of` are messages and members clauses, or the other way round.

    An empty `owner` says that every clause is the number of its subscription.
    """

    groups: Groups
    is_by_message: bool
    owner: NDArray[np.int32]

    @property
    def n(self) -> int:
        return self.groups.n_pairs

    def pairs(self) -> Pairs:
        of, member, begin, end = self.groups
        member_of_pair = np.empty(self.n, np.int32)
        fill_owners(member, begin, end, self.owner if self.is_by_message else self.owner[:0], member_of_pair)
        of_pair = np.repeat(of if self.is_by_message else self._numbers(of), end - begin)
        return Pairs(member_of_pair, of_pair) if self.is_by_message else Pairs(of_pair, member_of_pair)

    def kept(self) -> Grouped:
        """In memory of its own."""
        member = self.groups.member[: int(self.groups.end.max(initial=0))].copy()
        return self._replace(groups=self.groups._replace(member=member))

    def fill_ids(self, ids: Identifiers, messages: LiveMessages, number: NDArray[np.int64], message: NDArray[np.int64]) -> None:
        """Write the ids, which are int64, of each pair."""
        of, member, begin, end = self.groups
        if not self.is_by_message:
            fill_group_ids(self._numbers(of), member, begin, end, ids.numbers, messages.ids.numbers, 0, number, message)
        elif len(self.owner):
            fill_message_ids(begin, end, of, messages.ids.numbers, message)
            fill_ids(member, begin, end, self.owner, *ids.numbering(), number)
        else:
            fill_group_ids(of, member, begin, end, messages.ids.numbers, *ids.numbering(), message, number)

    def _numbers(self, clause: NDArray[np.int32]) -> NDArray[np.int32]:
        return self.owner[clause] if len(self.owner) else clause


class Changes(NamedTuple):
    """Pairs that are no more, and new ones."""

    left: Pairs | Grouped
    entered: Pairs | Grouped

    def __len__(self) -> int:
        return self.left.n + self.entered.n

    def to_table(self, ids: Identifiers, messages: LiveMessages) -> pa.Table:
        """subscription_id, message_id, change."""
        n_left, n = self.left.n, len(self)
        change = np.ones(n, np.int8)
        change[:n_left] = -1
        if ids.kind == "string" or messages.ids.kind == "string":
            left, entered = self.left.pairs(), self.entered.pairs()
            concerned = ids.take(np.concatenate([left.number, entered.number]))
            sent = messages.ids.take(np.concatenate([left.message, entered.message]))
        else:
            number, concerned = number_room(n)
            message, sent = number_room(n)
            self.left.fill_ids(ids, messages, number[:n_left], message[:n_left])
            self.entered.fill_ids(ids, messages, number[n_left:], message[n_left:])
        return pa.table({"subscription_id": concerned, "message_id": sent, "change": number_column(change)})


NO_PAIRS = Pairs(np.empty(0, np.int32), np.empty(0, np.int32))


def difference(before: Pairs, after: Pairs) -> Changes:
    """What it takes to come from one state to the other."""
    was, is_now = before.keys(), after.keys()
    return Changes(_pairs(np.setdiff1d(was, is_now)), _pairs(np.setdiff1d(is_now, was)))


def joined(parts: Sequence[Changes]) -> Changes:
    """Changes of different subscriptions, together."""
    sides = [
        Pairs(np.concatenate([p.number for p in side]), np.concatenate([p.message for p in side]))
        for side in ([part.left.pairs() for part in parts], [part.entered.pairs() for part in parts])
    ]
    return Changes(*sides)


def cancelled(changes: Changes, slots: NDArray[np.int32], old: NDArray[np.int32], n_slots: int) -> Changes:
    """Without pairs that leave and enter again, because an id was used again: that of `old[i]` by the message at `slots[i]`."""
    renamed = np.arange(n_slots, dtype=np.int32)
    renamed[slots] = old
    was, is_now = changes.left.pairs(), changes.entered.pairs()
    left, entered = was.keys(), Pairs(is_now.number, renamed[is_now.message]).keys()
    stays = np.intersect1d(left, entered)
    return Changes(_taken(was, ~np.isin(left, stays)), _taken(is_now, ~np.isin(entered, stays)))


def change_objects(table: pa.Table) -> list[Change]:
    """The rows of a table of changes as objects."""
    columns = (table[name].to_pylist() for name in ("subscription_id", "message_id", "change"))
    return [Change(*row) for row in zip(*columns, strict=True)]


def _pairs(keys: NDArray[np.int64]) -> Pairs:
    return Pairs((keys >> _SHIFT).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))


def _taken(pairs: Pairs, is_kept: NDArray[np.bool_]) -> Pairs:
    return Pairs(pairs.number[is_kept], pairs.message[is_kept])
