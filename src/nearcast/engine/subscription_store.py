"""Subscriptions filed anew without the dead clauses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.shapes import ShapeStore

# The dead are cleared away when they outnumber the living, but not before there are this many.
LEAST_DEAD = 1024


class Filed(NamedTuple):
    """Subscriptions: their ids, shapes and clauses."""

    ids: Identifiers
    shapes: ShapeStore
    clauses: ClauseStore


def wants_compacting(clauses: ClauseStore) -> bool:
    """Whether the dead clauses are in the majority."""
    return bool(clauses.n - clauses.n_alive > max(LEAST_DEAD, clauses.n_alive))


def compacted(filed: Filed) -> Filed:
    """The living ones, numbered anew."""
    numbers, batch = filed.clauses.alive_batch()
    ids, shapes, clauses = Identifiers(), ShapeStore(), ClauseStore()
    ids.kind = filed.ids.kind
    ids.add(filed.ids.take(numbers))
    move_shapes(batch, filed.shapes, shapes)
    clauses.add(batch)
    return Filed(ids, shapes, clauses)


def move_shapes(batch: ClauseBatch, old: ShapeStore, new: ShapeStore) -> None:
    """File the shapes a batch uses in a new store and renumber the batch."""
    renumbered = {int(shape): new.add(old.region(int(shape))) for shape in np.unique(batch.shape) if shape >= 0}
    batch.shape = np.array([renumbered.get(int(shape), int(shape)) for shape in batch.shape], np.int32)
