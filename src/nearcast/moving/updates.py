"""Messages come and time passes: what is due leaves, what arrives enters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.groups import NO_PAIRS, Groups
from nearcast.kernels.checks import PLAIN
from nearcast.model.delivery import MatchReport
from nearcast.model.regions import Box, Region
from nearcast.moving.changes import Changes, cancelled, difference, joined
from nearcast.moving.index import Boxes
from nearcast.moving.kernels.live_messages import ABSENT
from nearcast.moving.reading import ReadMoves, TimedMessages, circle_in_place, moved_clauses
from nearcast.moving.state import MovingState

# --- messages arrive and expire ----------------------------------------------------------------------------------------


def arrive(state: MovingState, read: TimedMessages) -> tuple[Changes, int]:
    """Take in messages; the changes, and how many died."""
    messages = state.messages
    state.report = MatchReport(messages=len(read.batch))
    now = float(np.fmax.reduce(read.time, initial=messages.now))
    gone, left = expire(state, now)
    # Dead on arrival: never part of a result.
    read.keep(read.expires > now)
    _reject_living(state, read)
    state.report.messages, state.report.rejected = len(read.batch), read.rejected
    if len(read.batch) == 0:
        return Changes(left, NO_PAIRS, is_by_message=True), len(gone)
    slots = messages.add(read.ids, read.batch, read.expires)
    # The next match writes to the memory of the last one.
    changes = Changes(left.copied(), state.arrived(slots, read.batch), is_by_message=True)
    old = messages.ids.find_among(read.ids, gone)
    is_again = old != ABSENT
    if is_again.any():
        changes = cancelled(changes, slots[is_again], old[is_again], messages.n_slots)
    return changes, len(gone)


def expire(state: MovingState, now: float) -> tuple[NDArray[np.int32], Groups]:
    """End what is due; returns its slots and the results it leaves."""
    gone = state.messages.due(now)
    if len(gone) == 0 or state.subscriptions.clauses.n_alive == 0:
        return gone, NO_PAIRS
    return gone, state.expired(gone)


def _reject_living(state: MovingState, read: TimedMessages) -> None:
    is_living, is_repeated = state.messages.ids.find(read.ids) != ABSENT, state.messages.ids.is_repeated(read.ids)
    reasons = {}
    for at in np.flatnonzero(is_living | is_repeated).tolist():
        id = read.ids[at].as_py()
        reasons[at] = (
            f"a message with the id {id!r} is still alive; give each living message an id of its own"
            if is_living[at]
            else f"the id {id!r} comes twice in one batch; only its first message is used"
        )
    read.reject(reasons)


# --- subscriptions move ------------------------------------------------------------------------------------------------


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
