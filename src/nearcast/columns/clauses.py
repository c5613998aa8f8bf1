"""Subscriptions as clauses in flat arrays: what an index files, and what the engine still has to check.

A clause is a box and keywords that must all be present. `check` leads to what a box and keywords cannot say: forbidden
keywords, a circle or polygon, or that the subscription has several clauses and must be delivered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray
from nearcast.kernels.checks import PLAIN, CheckArrays
from nearcast.kernels.deliveries import fill_spans
from nearcast.kernels.layouts import ClauseArrays
from nearcast.kernels.shapes import NO_SHAPE


@dataclass(slots=True)
class ClauseBatch:
    """Clauses about to be filed; clauses of one subscription stand together.

    Required keywords of clause `c` are `required[required_start[c]:required_start[c + 1]]`, forbidden ones likewise.
    `is_checked` is None when no clause of the batch needs a check (then the last three fields are empty).
    """

    subscription: NDArray[np.int32]
    required_start: NDArray[np.int64]
    required: NDArray[np.int32]
    x0: NDArray[np.float64]
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]
    y1: NDArray[np.float64]
    is_checked: NDArray[np.bool_] | None = None
    forbidden_start: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    forbidden: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    shape: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    def __len__(self) -> int:
        return len(self.subscription)


class ClauseStore:
    """Every clause ever filed since the last compaction; slots are given out in order, dead ones are marked."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        saved = arrays or {}
        zero = np.zeros(1, np.int64)
        self._keyword_start = GrowingArray(np.int64, saved.get("keyword_start", zero))
        self._keyword = GrowingArray(np.int32, saved.get("keyword"))
        self._x0 = GrowingArray(np.float64, saved.get("x0"))
        self._y0 = GrowingArray(np.float64, saved.get("y0"))
        self._x1 = GrowingArray(np.float64, saved.get("x1"))
        self._y1 = GrowingArray(np.float64, saved.get("y1"))
        self._is_alive = GrowingArray(np.uint8, saved.get("is_alive"))
        self._subscription = GrowingArray(np.int32, saved.get("subscription"))
        self._check = GrowingArray(np.int32, saved.get("check"))
        self._forbidden_start = GrowingArray(np.int64, saved.get("forbidden_start", zero))
        self._forbidden = GrowingArray(np.int32, saved.get("forbidden"))
        self._shape = GrowingArray(np.int32, saved.get("shape"))
        # By subscription: where its clauses stand. A count of 0 = not subscribed (any more).
        self._first_clause = GrowingArray(np.int32, saved.get("first_clause"))
        self._n_clauses = GrowingArray(np.int32, saved.get("n_clauses"))
        # Kept beside the arrays, so that opening a saved store reads none of them.
        counts = saved.get("counts", np.array([0, 0, 0, 1], np.int64)).tolist()
        self.n_alive, self.n_subscriptions = counts[0], counts[1]
        self.n_keywords = counts[2]  # every required keyword is below
        self.is_identity = bool(counts[3])  # every clause stands at the number of its subscription

    @property
    def n(self) -> int:
        """Slots given out, dead ones included."""
        return self._subscription.n

    def layout(self) -> ClauseArrays:
        """What indexes read. Arrays are exactly as long as the clauses in use."""
        return ClauseArrays(
            self._keyword_start.used,
            self._keyword.used,
            self._x0.used,
            self._y0.used,
            self._x1.used,
            self._y1.used,
            self._is_alive.used,
        )

    def checks(self) -> CheckArrays:
        """What the engine reads to verify the matches of an index."""
        return CheckArrays(
            self._check.used, self._subscription.used, self._forbidden_start.used, self._forbidden.used, self._shape.used
        )

    @property
    def has_checks(self) -> bool:
        """Whether any clause is more than a box and keywords."""
        return self._shape.n > 0

    def add(self, batch: ClauseBatch) -> NDArray[np.int32]:
        """File clauses; returns their slots. Their subscriptions must have no clauses yet."""
        first = self.n
        slots = np.arange(first, first + len(batch), dtype=np.int32)
        self._keyword.extend(batch.required)
        self._keyword_start.extend(batch.required_start[1:] + self._keyword_start.used[-1])
        for column, values in ((self._x0, batch.x0), (self._y0, batch.y0), (self._x1, batch.x1), (self._y1, batch.y1)):
            column.extend(values)
        self._check.extend(self._add_checks(batch))
        self._is_alive.extend(1, len(batch))
        self._subscription.extend(batch.subscription)
        self.is_identity = self.is_identity and bool(np.array_equal(batch.subscription, slots))
        self._set_spans(batch.subscription, slots)
        self.n_alive += len(batch)
        self.n_keywords = max(self.n_keywords, int(batch.required.max(initial=-1)) + 1)
        return slots

    def _add_checks(self, batch: ClauseBatch) -> NDArray[np.int32]:
        check = np.full(len(batch), PLAIN, np.int32)
        if batch.is_checked is not None:
            first = self._shape.n
            rows = np.flatnonzero(batch.is_checked)
            check[rows] = np.arange(first, first + len(rows), dtype=np.int32)
            # Plain clauses forbid nothing, so the forbidden keywords of the batch are those of the checked ones in order.
            n_forbidden = np.diff(batch.forbidden_start)[rows]
            self._forbidden_start.extend(np.cumsum(n_forbidden) + self._forbidden_start.used[-1])
            self._forbidden.extend(batch.forbidden)
            self._shape.extend(batch.shape[rows])
        return check

    def _set_spans(self, subscription: NDArray[np.int32], slots: NDArray[np.int32]) -> None:
        if len(subscription) == 0:
            return
        is_first = np.concatenate([[True], subscription[1:] != subscription[:-1]])
        firsts = np.flatnonzero(is_first)
        missing = int(subscription.max()) + 1 - self._n_clauses.n
        if missing > 0:
            self._first_clause.extend(0, missing)
            self._n_clauses.extend(0, missing)
        self._first_clause.used[subscription[firsts]] = slots[firsts]
        self._n_clauses.used[subscription[firsts]] = np.diff(np.append(firsts, len(subscription)))
        self.n_subscriptions += len(firsts)

    def remove(self, subscriptions: NDArray[np.int32]) -> NDArray[np.int32]:
        """Mark every clause of these (distinct) subscriptions dead; returns their slots."""
        subscriptions = subscriptions[(subscriptions >= 0) & (subscriptions < self._n_clauses.n)]
        counts = self._n_clauses.used[subscriptions]
        subscriptions, counts = subscriptions[counts > 0], counts[counts > 0]
        slots = np.repeat(self._first_clause.used[subscriptions], counts)
        # 0, 1, 2, … within each subscription.
        slots += np.arange(len(slots), dtype=np.int32) - np.repeat(np.cumsum(counts) - counts, counts).astype(np.int32)
        self._is_alive.used[slots] = 0
        self._n_clauses.used[subscriptions] = 0
        self.n_alive -= len(slots)
        self.n_subscriptions -= len(subscriptions)
        return slots

    def spans(self, subscriptions: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The first clause of each subscription and how many follow it; 0 of those that are not subscribed (or negative)."""
        first, count = np.empty(len(subscriptions), np.int32), np.empty(len(subscriptions), np.int32)
        fill_spans(self._first_clause.used, self._n_clauses.used, subscriptions, first, count)
        return first, count

    def slots_of(self, subscription: int) -> range:
        """The clauses of one subscription; empty if it is not subscribed."""
        if not 0 <= subscription < self._n_clauses.n:
            return range(0)
        first = int(self._first_clause.used[subscription])
        return range(first, first + int(self._n_clauses.used[subscription]))

    def alive_batch(self) -> tuple[NDArray[np.int32], ClauseBatch]:
        """The living clauses as one batch, with subscriptions numbered from 0 again, and the old number of each."""
        rows = np.flatnonzero(self._is_alive.used)
        old_numbers, subscription = np.unique(self._subscription.used[rows], return_inverse=True)
        # Clauses of one subscription stand together, and `stable` keeps them in order.
        order = np.argsort(subscription, kind="stable")
        rows = rows[order]
        required_start, required = take_lists(self._keyword_start.used, self._keyword.used, rows)
        check = self._check.used[rows]
        is_checked = check != PLAIN
        shape = np.full(len(rows), NO_SHAPE, np.int32)
        shape[is_checked] = self._shape.used[check[is_checked]]
        _, forbidden = take_lists(self._forbidden_start.used, self._forbidden.used, check[is_checked])
        n_forbidden = np.zeros(len(rows), np.int64)
        n_forbidden[is_checked] = np.diff(self._forbidden_start.used)[check[is_checked]]
        batch = ClauseBatch(
            subscription[order].astype(np.int32),
            required_start,
            required,
            self._x0.used[rows],
            self._y0.used[rows],
            self._x1.used[rows],
            self._y1.used[rows],
            is_checked if is_checked.any() else None,
            np.concatenate([[0], np.cumsum(n_forbidden)]),
            forbidden,
            shape,
        )
        return old_numbers.astype(np.int32), batch

    def arrays(self) -> dict[str, NDArray[Any]]:
        counts = np.array([self.n_alive, self.n_subscriptions, self.n_keywords, self.is_identity], np.int64)
        columns = {name.lstrip("_"): value.used for name, value in vars(self).items() if isinstance(value, GrowingArray)}
        return {**columns, "counts": counts}

    @property
    def n_bytes(self) -> int:
        return sum(value.memory.nbytes for value in vars(self).values() if isinstance(value, GrowingArray))


def take_lists(
    starts: NDArray[np.int64], values: NDArray[np.int32], rows: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The lists at `rows`, one after the other."""
    lengths = starts[rows + 1] - starts[rows]
    begin = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.repeat(starts[rows] - begin[:-1], lengths) + np.arange(begin[-1])
    return begin, values[positions]
