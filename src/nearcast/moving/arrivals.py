"""Messages come and time passes: what is due leaves, what arrives enters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.groups import NO_PAIRS, Groups
from nearcast.model.delivery import MatchReport
from nearcast.moving.changes import Changes, cancelled
from nearcast.moving.kernels.live_ids import ABSENT
from nearcast.moving.reading_messages import TimedMessages
from nearcast.moving.state import MovingState


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
