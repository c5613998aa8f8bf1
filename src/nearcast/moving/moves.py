"""Subscriptions get other regions: boxes by the index, everything else by a comparison of the results before and after."""

from __future__ import annotations

import numpy as np

from nearcast.engine.groups import NO_PAIRS
from nearcast.kernels.checks import PLAIN
from nearcast.model.delivery import MatchReport
from nearcast.model.regions import Box, Region
from nearcast.moving.changes import Changes, difference, joined
from nearcast.moving.index import Boxes
from nearcast.moving.reading_moves import ReadMoves, circle_in_place, moved_clauses
from nearcast.moving.state import MovingState


def move(state: MovingState, read: ReadMoves) -> Changes:
    """Move subscriptions; returns what that changes."""
    state.report = MatchReport(rejected=read.rejected)
    first, count = state.subscriptions.clauses.spans(read.number)
    to = Boxes(*read.boxes)
    if not state.subscriptions.clauses.has_checks and not read.others:
        return _move_boxes(state, first, to)
    is_plain = (count == 1) & (state.subscriptions.clauses.checks().check[first] == PLAIN)
    # As pairs: what follows searches the index again, which writes to the memory of its last answer.
    parts = [joined([_move_boxes(state, first[is_plain], Boxes(*(side[is_plain] for side in to)))])]
    rest = [(int(read.number[at]), Box(*(float(side[at]) for side in to))) for at in np.flatnonzero(~is_plain).tolist()]
    parts.append(_reshape(state, [*rest, *read.others]))
    return joined(parts)


def _move_boxes(state: MovingState, slots: np.ndarray, to: Boxes) -> Changes:
    if len(slots) == 0:
        return Changes(NO_PAIRS, NO_PAIRS)
    return state.moved(slots, to)


def _reshape(state: MovingState, moves: list[tuple[int, Region]]) -> Changes:
    """Give regions to subscriptions that are more than a box, or become so."""
    clauses, shapes = state.subscriptions.clauses, state.subscriptions.shapes
    numbers = np.array([number for number, _ in moves], np.int32)
    before = state.results(numbers)
    anew: list[tuple[int, Region]] = []
    slots: list[int] = []
    bounds: list[tuple[float, float, float, float]] = []
    for number, where in moves:
        box = circle_in_place(clauses, shapes, number, where, state.subscriptions.space)
        if box is None:
            anew.append((number, where))
            continue
        own = clauses.slots_of(number)
        slots += own
        bounds += [box.bounds] * len(own)
        checks = clauses.checks()
        shapes.move_circle(int(checks.shape[checks.check[own[0]]]), where)  # type: ignore[arg-type]
    if slots:
        to = Boxes(*np.array(bounds, np.float64).T.copy())
        state.index.refile(clauses, state.messages, np.array(slots, np.int32), to)
    if anew:
        batch = moved_clauses(clauses, shapes, state.subscriptions.space, anew)
        state.remove(np.array([number for number, _ in anew], np.int32))
        state.index.insert(clauses, state.messages, clauses.add(batch))
    return difference(before, state.results(numbers))
