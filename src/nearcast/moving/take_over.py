"""The subscriptions of several moving matchers brought together in one, each where it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseBatch, ClauseStore, take_lists
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.messages import keyword_sets_of
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.subscription_store import move_shapes
from nearcast.moving.state import MovingState


def gather(state: MovingState, sources: Sequence[tuple[MovingState, NDArray[np.int32]]]) -> None:
    """Give up all subscriptions, and take in those with these numbers of other matchers (or of this one)."""
    ids, shapes, clauses = Identifiers(), ShapeStore(), ClauseStore()
    ids.kind = state.ids.kind
    for source, wanted in sources:
        numbers, batch = source.clauses.alive_batch()
        is_wanted = np.isin(numbers, wanted)
        batch = _kept(batch, is_wanted[batch.owner])
        own = np.full(len(numbers), -1, np.int32)
        own[is_wanted] = ids.add(source.ids.take(numbers[is_wanted]))
        batch.owner = own[batch.owner]
        move_shapes(batch, source.shapes, shapes)
        batch.required_start, batch.required = _in_words_of(
            state.keywords, source.keywords, batch.required_start, batch.required
        )
        batch.forbidden_start, batch.forbidden = _in_words_of(
            state.keywords, source.keywords, batch.forbidden_start, batch.forbidden
        )
        clauses.add(batch)
    state.ids, state.shapes, state.clauses = ids, shapes, clauses
    state.index.build(clauses, state.messages)


def _kept(batch: ClauseBatch, is_kept: NDArray[np.bool_]) -> ClauseBatch:
    rows = np.flatnonzero(is_kept)
    sides = (batch.x0[rows], batch.y0[rows], batch.x1[rows], batch.y1[rows])
    required = take_lists(batch.required_start, batch.required, rows)
    if batch.is_checked is None or not batch.is_checked[rows].any():
        return ClauseBatch(batch.owner[rows], *required, *sides)
    forbidden = take_lists(batch.forbidden_start, batch.forbidden, rows)
    return ClauseBatch(batch.owner[rows], *required, *sides, batch.is_checked[rows], *forbidden, batch.shape[rows])


def _in_words_of(
    ours: KeywordKind, theirs: KeywordKind, start: NDArray[np.int64], members: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Sets of their keywords as sets of ours."""
    if ours is theirs or len(members) == 0:
        return start, members
    used, at = np.unique(members, return_inverse=True)
    # Numbered anew, they are in another order.
    return keyword_sets_of(start, ours.take_over(theirs, used)[at])
