"""What engines tell, as arrays: which subscription, which message, what happened; and the sequences of such events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.storage.pages import ENTERED, LEFT, RANKED_IN, RANKED_OUT, Events


class Told(NamedTuple):
    """Events without sequences, in the order they happened to each subscription."""

    subscription: NDArray[np.int64]
    message: NDArray[np.int64]
    kind: NDArray[np.int8]
    score: NDArray[np.float64]
    rank: NDArray[np.int32]

    def keep(self, wanted: NDArray[np.bool_]) -> Told:
        arrays: Iterable[Any] = (array[wanted] for array in self)
        return Told(*arrays)

    @property
    def n(self) -> int:
        return len(self.subscription)


def nothing() -> Told:
    return Told(
        np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.float64), np.empty(0, np.int32)
    )


def joined(parts: Sequence[Told]) -> Told:
    if not parts:
        return nothing()
    return Told(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def told_of(subscription: Sequence[int], message: Sequence[int], kind: Sequence[int]) -> Told:
    n = len(subscription)
    arrays = np.array(subscription, np.int64), np.array(message, np.int64), np.array(kind, np.int8)
    return Told(*arrays, np.zeros(n), np.zeros(n, np.int32))


def told_by_moving(changes: pa.Table) -> Told:
    """Those that leave before those that enter."""
    change = _column(changes, "change")
    order = np.argsort(change, kind="stable")
    kind = np.where(change[order] > 0, ENTERED, LEFT).astype(np.int8)
    n = len(order)
    subscription, message = _column(changes, "subscription_id")[order], _column(changes, "message_id")[order]
    return Told(subscription.astype(np.int64), message.astype(np.int64), kind, np.zeros(n), np.zeros(n, np.int32))


def told_by_ranker(changes: pa.Table, tops: pa.Table) -> Told:
    """Those that leave before those that enter; `tops` are the lists afterwards, for the ranks."""
    change = _column(changes, "change")
    order = np.argsort(change, kind="stable")
    kind = np.where(change[order] > 0, RANKED_IN, RANKED_OUT).astype(np.int8)
    subscription = _column(changes, "subscription_id")[order].astype(np.int64)
    message = _column(changes, "message_id")[order].astype(np.int64)
    score = _column(changes, "score")[order].astype(np.float64)
    rank_of = _ranks(tops)
    pairs = zip(subscription.tolist(), message.tolist(), kind.tolist(), strict=True)
    rank = [rank_of.get((owner, held), 0) if what == RANKED_IN else 0 for owner, held, what in pairs]
    return Told(subscription, message, kind, score, np.array(rank, np.int32))


def _ranks(tops: pa.Table) -> dict[tuple[int, int], int]:
    ranks: dict[tuple[int, int], int] = {}
    last, rank = None, 0
    for owner, held in zip(tops["subscription_id"].to_pylist(), tops["message_id"].to_pylist(), strict=True):
        rank = rank + 1 if owner == last else 1
        last = owner
        ranks[owner, held] = rank
    return ranks


def in_sequence(told: Told, after: int) -> tuple[Events, int]:
    """Give the events sequences after one, none twice for a subscription; and the last that is taken."""
    if not told.n:
        return Events(told.subscription, np.empty(0, np.int64), *told[1:]), after
    order = np.argsort(told.subscription, kind="stable")
    sorted_owner = told.subscription[order]
    is_first = np.ones(told.n, bool)
    is_first[1:] = sorted_owner[1:] != sorted_owner[:-1]
    run_start = np.maximum.accumulate(np.where(is_first, np.arange(told.n), 0))
    ordinal = np.empty(told.n, np.int64)
    ordinal[order] = np.arange(told.n) - run_start
    return Events(told.subscription, after + 1 + ordinal, *told[1:]), after + 1 + int(ordinal.max())


def at_their_messages(told: Told) -> Events:
    """Events that have the sequence of their message."""
    return Events(told.subscription, told.message, *told[1:])


def _column(table: pa.Table, name: str) -> NDArray[Any]:
    return np.asarray(table[name].combine_chunks() if table[name].num_chunks != 1 else table[name].chunk(0))
