"""The interface of a peer, and the columns by which several of them file subscriptions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.columns.arrow import numbers

N_COLUMNS = 64
"""Columns and rows of the grid of peers with cells, over the unit square: the best for them at a million subscriptions."""


class Peer(ABC):
    """Subscriptions (id, keywords, x0, y0, x1, y1) are loaded once; then messages (id, keywords, x, y) are matched.

    Keywords are numbers, and locations lie in the unit square. `match` gives message_id and subscription_id, in any order.
    """

    takes_batches: ClassVar[bool] = True
    takes_singles: ClassVar[bool] = True

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot run here; None: it can."""
        return None

    @abstractmethod
    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        """File all subscriptions; `history` are past messages to learn from."""

    @abstractmethod
    def match(self, messages: pa.Table) -> pa.Table: ...

    @property
    def n_bytes(self) -> int | None:
        """The bytes that it reports itself; None: only the growth of this process is known."""
        return None

    def close(self) -> None:  # noqa: B027  # most have nothing to remove
        """Remove everything that was set up."""


def with_rarest(subscriptions: pa.Table, history: pa.Table) -> pa.Table:
    """Subscriptions with the column `rarest`: their keyword that is in the fewest past messages."""
    words = numbers(history["keywords"].combine_chunks().flatten(), np.int64)
    lists = subscriptions["keywords"].combine_chunks()
    members = numbers(lists.flatten(), np.int64)
    frequency = np.bincount(words, minlength=int(max(members.max(initial=0), words.max(initial=0))) + 1)
    row = numbers(pc.list_parent_indices(lists), np.int64)
    order = np.lexsort((members, frequency[members], row))
    rarest = members[order][np.searchsorted(row, np.arange(len(lists)))]
    return subscriptions.append_column("rarest", pa.array(rarest.astype(np.int32)))


def cell_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int32]:
    """The cell of each point."""
    return (_column(x) * N_COLUMNS + _column(y)).astype(np.int32)


def with_cells(subscriptions: pa.Table) -> pa.Table:
    """A row for each cell that a box touches, with the column `cell`."""
    x0, y0, x1, y1 = (_column(numbers(subscriptions[name].combine_chunks(), np.float64)) for name in ("x0", "y0", "x1", "y1"))
    n_across, n_down = x1 - x0 + 1, y1 - y0 + 1
    n = n_across * n_down
    row = np.repeat(np.arange(subscriptions.num_rows), n)
    within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    cell = (x0[row] + within // n_down[row]) * N_COLUMNS + y0[row] + within % n_down[row]
    return subscriptions.take(pa.array(row)).append_column("cell", pa.array(cell.astype(np.int32)))


def _column(coordinate: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.clip((coordinate * N_COLUMNS).astype(np.int64), 0, N_COLUMNS - 1)


def pairs_table(message_ids: NDArray[np.int64], subscription_ids: NDArray[np.int64]) -> pa.Table:
    return pa.table({"message_id": pa.array(message_ids), "subscription_id": pa.array(subscription_ids)})
