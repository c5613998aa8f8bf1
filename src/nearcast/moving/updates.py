"""What changes results: messages arrive, messages expire, subscriptions move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.groups import NO_PAIRS, Groups
from nearcast.kernels.checks import PLAIN
from nearcast.model.delivery import MatchReport
from nearcast.model.regions import Box, Region
from nearcast.moving.changes import Changes, difference, joined, without_reused_ids
from nearcast.moving.index import Boxes
from nearcast.moving.kernels.live_messages import ABSENT
from nearcast.moving.reading import MoveBatch, TimedMessages, circle_in_place, moved_clauses
from nearcast.moving.state import MovingState

# --- messages arrive and expire ----------------------------------------------------------------------------------------


def arrive(state: MovingState, new: TimedMessages) -> tuple[Changes, int]:
    """Add messages and set the clock forward; returns the changes and how many messages expired."""
    messages = state.messages
    state.report = MatchReport(messages=len(new.batch))
    now = float(np.fmax.reduce(new.time, initial=messages.now))
    expired, left = expire(state, now)
    # A message that has expired already is never part of a result.
    new.keep(new.expires > now)
    _reject_live(state, new)
    state.report.messages, state.report.rejected = len(new.batch), new.rejected
    if len(new.batch) == 0:
        return Changes(left, NO_PAIRS, is_by_message=True), len(expired)
    slots = messages.add(new.ids, new.batch, new.expires)
    # Copied, because the next match reuses the memory.
    changes = Changes(left.copied(), state.match_new(slots, new.batch), is_by_message=True)
    old = messages.ids.find_in_slots(new.ids, expired)
    is_reused = old != ABSENT
    if is_reused.any():
        changes = without_reused_ids(changes, slots[is_reused], old[is_reused], messages.n_slots)
    return changes, len(expired)


def expire(state: MovingState, now: float) -> tuple[NDArray[np.int32], Groups]:
    """Set the clock forward; returns the slots of expired messages, and the subscriptions whose results they leave."""
    expired = state.messages.expire(now)
    if len(expired) == 0 or state.subscriptions.clauses.n_alive == 0:
        return expired, NO_PAIRS
    return expired, state.match_expired(expired)


def _reject_live(state: MovingState, new: TimedMessages) -> None:
    is_live, is_repeated = state.messages.ids.find(new.ids) != ABSENT, state.messages.ids.is_repeated(new.ids)
    reasons = {}
    for at in np.flatnonzero(is_live | is_repeated).tolist():
        id = new.ids[at].as_py()
        reasons[at] = (
            f"a message with the id {id!r} is still alive; give each live message an id of its own"
            if is_live[at]
            else f"the id {id!r} comes twice in one batch; only its first message is used"
        )
    new.reject(reasons)


# --- subscriptions move ------------------------------------------------------------------------------------------------


def move(state: MovingState, moves: MoveBatch) -> Changes:
    """Move subscriptions; returns the changes. Boxes are moved by the index; for other regions, results are compared."""
    state.report = MatchReport(rejected=moves.rejected)
    first, count = state.subscriptions.clauses.spans(moves.number)
    to = Boxes(*moves.boxes)
    if not state.subscriptions.clauses.has_checks and not moves.others:
        return _move_boxes(state, first, to)
    is_plain = (count == 1) & (state.subscriptions.clauses.checks().check[first] == PLAIN)
    # Copied, because the next search of the index reuses the memory.
    parts = [joined([_move_boxes(state, first[is_plain], Boxes(*(bound[is_plain] for bound in to)))])]
    rest = [(int(moves.number[at]), Box(*(float(bound[at]) for bound in to))) for at in np.flatnonzero(~is_plain).tolist()]
    parts.append(_reshape(state, [*rest, *moves.others]))
    return joined(parts)


def _move_boxes(state: MovingState, slots: np.ndarray, to: Boxes) -> Changes:
    if len(slots) == 0:
        return Changes(NO_PAIRS, NO_PAIRS)
    return state.move_clauses(slots, to)


def _reshape(state: MovingState, regions: list[tuple[int, Region]]) -> Changes:
    """Move subscriptions that are, or become, more than one box: compare their results before and after."""
    clauses, shapes = state.subscriptions.clauses, state.subscriptions.shapes
    numbers = np.array([number for number, _ in regions], np.int32)
    before = state.results(numbers)
    rebuilt: list[tuple[int, Region]] = []
    slots: list[int] = []
    bounds: list[tuple[float, float, float, float]] = []
    for number, region in regions:
        box = circle_in_place(clauses, shapes, number, region, state.subscriptions.space)
        if box is None:
            rebuilt.append((number, region))
            continue
        clause_slots = clauses.slots_of(number)
        slots += clause_slots
        bounds += [box.bounds] * len(clause_slots)
        checks = clauses.checks()
        shapes.move_circle(int(checks.shape[checks.check[clause_slots[0]]]), region)  # type: ignore[arg-type]
    if slots:
        to = Boxes(*np.array(bounds, np.float64).T.copy())
        state.index.refile(clauses, state.messages, np.array(slots, np.int32), to)
    if rebuilt:
        batch = moved_clauses(clauses, shapes, state.subscriptions.space, rebuilt)
        state.remove(np.array([number for number, _ in rebuilt], np.int32))
        state.index.insert(clauses, state.messages, clauses.add(batch))
    return difference(before, state.results(numbers))
