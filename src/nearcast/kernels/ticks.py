"""One tick after the other: a message arrives, what is due ends, buffers that lack messages are refilled, changes are told.

A run stops wherever it lacks something only its caller can give (room, refilled buffers), and goes on from there. The loop
itself is in each index, around its own search for candidates: a kernel that is given another as argument cannot be cached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.calendar import NOBODY, wait_at, wait_nowhere
from nearcast.kernels.compile import inline_kernel, kernel, lent
from nearcast.kernels.journal import reckon, remember
from nearcast.kernels.ranked_layouts import BASE
from nearcast.kernels.result_buffers import ADMITTED, ADMITTED_WITH_CUT, NO_MESSAGE, REFUSED_WITH_CUT, admit, drop, oldest_held
from nearcast.kernels.simd import prefetch
from nearcast.kernels.window import is_newer, pop_oldest, push_oldest_first


class RunArrays(NamedTuple):
    """Where a run stands, and what it hands to its caller."""

    at: np.ndarray  # int64[8], see below
    clock: np.ndarray  # float64[3], at NOW, SPAN and NEWEST_TIME
    heap: np.ndarray  # int64[room], living messages of a window of time, the oldest in front
    candidate: np.ndarray  # int32[capacity], subscriptions the arriving message may concern
    candidate_score: np.ndarray  # float64[capacity]
    lacking: np.ndarray  # int32[capacity], subscriptions to refill
    is_lacking: np.ndarray  # uint8[capacity]
    cut: np.ndarray  # int32[capacity], subscriptions whose threshold rose
    is_cut: np.ndarray  # uint8[capacity]
    kept_by_cut: np.ndarray  # int32[capacity], messages that a full buffer keeps
    scores: np.ndarray  # float64[words], scratch
    counters: np.ndarray  # int64[2]


# Positions of `at`: the next place to arrive, the phase it is in, candidates and how many are done, the newest message,
# living messages in the heap, subscriptions in `lacking` and in `cut`.
PLACE, PHASE, N_CANDIDATES, N_DONE, NEWEST, N_HEAP, N_LACKING, N_CUT = 0, 1, 2, 3, 4, 5, 6, 7
NOW, SPAN, NEWEST_TIME = 0, 1, 2
ARRIVE, ADMIT, EXPIRE, REFILL, TELL = 0, 1, 2, 3, 4
DONE, LACKS_JOURNAL, LACKS_MESSAGES, LACKS_OUTPUT = 0, 1, 2, 3
UNFINISHED, ALL_ARRIVED = -1, -2
# Buffers that are asked for ahead of their use, and messages in a line of memory.
_AHEAD, _PER_LINE = 4, 8


@inline_kernel
def next_arrival(window, run, last, is_timed):
    """Let the next message into the window: its place, ALL_ARRIVED, or UNFINISHED while the tick before is not over."""
    at, place = run.at, run.at[PLACE]
    if at[PHASE] != ARRIVE:
        return UNFINISHED
    if place == last:
        return ALL_ARRIVED
    at[PLACE] = place + 1
    number = window.head[BASE] + place
    window.is_alive[place] = 1
    if is_timed:
        run.clock[NOW] = max(run.clock[NOW], window.time[place])
        at[N_HEAP] = push_oldest_first(window, run.heap, at[N_HEAP], number)
    # Its number is the largest of all.
    if window.time[place] >= run.clock[NEWEST_TIME]:
        run.clock[NEWEST_TIME] = window.time[place]
        at[NEWEST] = number
    at[N_DONE] = 0
    at[PHASE] = ADMIT
    return place


@kernel
def admit_candidates(subscribers, window, buffers, calendar, journal, run, is_banded):
    """Offer the message that has arrived to its candidates; False if the journal is full."""
    at, base = run.at, window.head[BASE]
    number = base + at[PLACE] - 1
    is_late = at[NEWEST] != number
    candidate, n_candidates = run.candidate, at[N_CANDIDATES]
    for i in range(at[N_DONE], n_candidates):
        if i + 2 * _AHEAD < n_candidates:
            ask_for_row(subscribers, buffers, calendar, journal, candidate[i + 2 * _AHEAD])
        if i + _AHEAD < n_candidates:
            ask_for_list(buffers, candidate[i + _AHEAD])
        s = candidate[i]
        k = subscribers.k[s]
        if not remember(journal, buffers, k, s):
            at[N_DONE] = i
            return False
        outcome = admit(buffers, window, s, k, number, run.candidate_score[i], is_late, is_banded, run.kept_by_cut)
        if outcome in (ADMITTED, ADMITTED_WITH_CUT):
            waits_at = calendar.waits_at[s]
            if waits_at == NOBODY or (is_late and is_newer(window.time, base, waits_at, number)):
                wait_at(calendar, base, s, number)
        if outcome >= REFUSED_WITH_CUT and run.is_cut[s] == 0:
            run.is_cut[s] = 1
            run.cut[at[N_CUT]] = s
            at[N_CUT] += 1
    at[PHASE] = EXPIRE
    return True


@inline_kernel
def ask_for_row(subscribers, buffers, calendar, journal, s):
    """Have what is kept of a subscription in one place each brought from memory."""
    prefetch(buffers.start, s)
    prefetch(buffers.size, s)
    prefetch(buffers.room, s)
    prefetch(buffers.threshold, s)
    prefetch(buffers.is_complete, s)
    prefetch(subscribers.k, s)
    prefetch(calendar.waits_at, s)
    prefetch(journal.stamp, s)


@inline_kernel
def ask_for_list(buffers, s):
    """Have the messages of a buffer brought from memory."""
    start = buffers.start[s]
    for at in range(start, start + buffers.size[s] + 1, _PER_LINE):
        prefetch(buffers.score, at)
        prefetch(buffers.number, at)
        prefetch(buffers.dominators, at)


@kernel
def expire_due(subscribers, window, buffers, calendar, journal, run, is_timed, n_counted):
    """End the messages that are due; False if the journal is full."""
    at, base = run.at, window.head[BASE]
    while True:
        number = next_due(window, run, is_timed, n_counted)
        if number == NO_MESSAGE:
            break
        window.is_alive[number - base] = 0
        s = calendar.first[number - base]
        while s != NOBODY:
            k = subscribers.k[s]
            if not remember(journal, buffers, k, s):
                # Alive once more, so that it is found due again.
                window.is_alive[number - base] = 1
                return False
            drop(buffers, s, number)
            oldest = oldest_held(buffers, window, s)
            if oldest == NO_MESSAGE:
                wait_nowhere(calendar, base, s)
            else:
                wait_at(calendar, base, s, oldest)
            if buffers.size[s] < k and not buffers.is_complete[s] and run.is_lacking[s] == 0:
                run.is_lacking[s] = 1
                run.lacking[at[N_LACKING]] = s
                at[N_LACKING] += 1
            s = calendar.first[number - base]
        if is_timed:
            at[N_HEAP] = pop_oldest(window, run.heap, at[N_HEAP])
    at[PHASE] = REFILL
    return True


@inline_kernel
def next_due(window, run, is_timed, n_counted):
    """The next message that is to end now, or NO_MESSAGE."""
    base = window.head[BASE]
    if is_timed:
        if run.at[N_HEAP] == 0 or window.time[run.heap[0] - base] > run.clock[NOW] - run.clock[SPAN]:
            return NO_MESSAGE
        return run.heap[0]
    place = run.at[PLACE] - 1 - n_counted
    if place < 0 or window.is_alive[place] == 0:
        return NO_MESSAGE
    return base + place


@kernel
def finish_tick(subscribers, window, buffers, calendar, journal, run, changes, rules):
    """From ADMIT to the next ARRIVE; returns DONE, or what is lacking."""
    subscribers, window, buffers, calendar = lent(subscribers), lent(window), lent(buffers), lent(calendar)
    journal, run, changes = lent(journal), lent(run), lent(changes)
    is_timed, n_counted, is_net, is_banded = rules
    at = run.at
    if at[PHASE] == ADMIT and not admit_candidates(subscribers, window, buffers, calendar, journal, run, is_banded):
        return LACKS_JOURNAL
    if at[PHASE] == EXPIRE and not expire_due(subscribers, window, buffers, calendar, journal, run, is_timed, n_counted):
        return LACKS_JOURNAL
    if at[PHASE] == REFILL:
        if at[N_LACKING] > 0:
            return LACKS_MESSAGES
        at[PHASE] = TELL
    if not is_net and not reckon(journal, subscribers, window, buffers, window.head[BASE] + at[PLACE] - 1, changes):
        return LACKS_OUTPUT
    at[PHASE] = ARRIVE
    return DONE
