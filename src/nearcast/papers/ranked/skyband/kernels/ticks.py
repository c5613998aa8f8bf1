"""One tick after the other: a message arrives, what is due ends, buffers that lack messages are refilled, changes are told.

A run stops wherever it lacks something only its caller can give (room, refilled buffers), and goes on from there. The loop
itself is in each index, around its own search for candidates: a kernel that is given another as argument cannot be cached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.papers.ranked.skyband.kernels.buffers import (
    ADMITTED,
    ADMITTED_WITH_CUT,
    NOBODY,
    REFUSED_WITH_CUT,
    admit,
    drop,
    oldest_held,
    wait_at,
    wait_nowhere,
)
from nearcast.ranked.kernels.layouts import (
    ADMIT,
    ARRIVE,
    BASE,
    DONE,
    EXPIRE,
    LACKS_JOURNAL,
    LACKS_MESSAGES,
    LACKS_OUTPUT,
    N_CANDIDATES,
    N_CUT,
    N_DONE,
    N_HEAP,
    N_LACKING,
    NEWEST,
    NO_MESSAGE,
    PHASE,
    PLACE,
    REFILL,
    TELL,
)
from nearcast.ranked.kernels.window import is_newer, next_due, pop_oldest, ranks_before


class RunArrays(NamedTuple):
    """Where a run stands, and what it hands to its caller."""

    at: np.ndarray  # int64[8], see `ranked/kernels/layouts.py`
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


# Buffers that are asked for ahead of their use, and messages in a line of memory.
_AHEAD, _PER_LINE = 4, 8


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


@kernel
def finish_tick(subscribers, window, buffers, calendar, journal, run, changes, rules):
    """From ADMIT to the next ARRIVE; returns DONE, or what is lacking."""
    subscribers, window, buffers, calendar = borrow(subscribers), borrow(window), borrow(buffers), borrow(calendar)
    journal, run, changes = borrow(journal), borrow(run), borrow(changes)
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


# -- What the lists of touched subscriptions were before, and how they differ from what they are.


class JournalArrays(NamedTuple):
    """Lists as they were when a subscription was first touched; `stamp[s]` tells whether it was since the last reckoning."""

    head: np.ndarray  # int64[3], at STAMP, N_TOUCHED, N_SAVED
    stamp: np.ndarray  # int64[capacity]
    touched: np.ndarray  # int32[capacity], subscriptions in order
    saved_from: np.ndarray  # int64[capacity + 1], of each touched one
    score: np.ndarray  # float64[room]
    number: np.ndarray  # int64[room]


STAMP, N_TOUCHED, N_SAVED = 0, 1, 2


@kernel
def remember(journal, buffers, k, s):
    """Keep the list of a subscription before it is touched; False if there is no room."""
    head = journal.head
    if journal.stamp[s] == head[STAMP]:
        return True
    n_shown = min(k, buffers.size[s])
    n_saved, n_touched = head[N_SAVED], head[N_TOUCHED]
    if n_saved + n_shown > journal.score.size:
        return False
    start = buffers.start[s]
    for i in range(n_shown):
        journal.score[n_saved + i] = buffers.score[start + i]
        journal.number[n_saved + i] = buffers.number[start + i]
    journal.stamp[s] = head[STAMP]
    journal.touched[n_touched] = s
    journal.saved_from[n_touched] = n_saved
    journal.saved_from[n_touched + 1] = n_saved + n_shown
    head[N_SAVED], head[N_TOUCHED] = n_saved + n_shown, n_touched + 1
    return True


@kernel
def most_changes(journal, subscribers, buffers):
    """How many changes a reckoning may tell at most."""
    total = journal.head[N_SAVED]
    for i in range(journal.head[N_TOUCHED]):
        s = journal.touched[i]
        total += min(subscribers.k[s], buffers.size[s])
    return total


@kernel
def reckon(journal, subscribers, window, buffers, tick, changes):
    """Tell the differences of all touched subscriptions and begin anew; False if there is no room for them."""
    n_out = changes.n[0]
    if n_out + most_changes(journal, subscribers, buffers) > changes.tick.size:
        return False
    time, base = window.time, window.head[BASE]
    for i in range(journal.head[N_TOUCHED]):
        s = journal.touched[i]
        old, old_end = journal.saved_from[i], journal.saved_from[i + 1]
        new = buffers.start[s]
        new_end = new + min(subscribers.k[s], buffers.size[s])
        # Both are in order, so what is in one of them only shows in one pass.
        while old < old_end or new < new_end:
            if old < old_end and new < new_end:
                was, is_now = journal.number[old], buffers.number[new]
                was_score, score = journal.score[old], buffers.score[new]
                if was == is_now and was_score == score:
                    old, new = old + 1, new + 1
                    continue
                leaves = ranks_before(time, base, was_score, was, score, is_now)
            else:
                leaves = old < old_end
            changes.tick[n_out] = tick
            changes.subscriber[n_out] = s
            if leaves:
                changes.number[n_out], changes.change[n_out], changes.score[n_out] = journal.number[old], -1, journal.score[old]
                old += 1
            else:
                changes.number[n_out], changes.change[n_out], changes.score[n_out] = buffers.number[new], 1, buffers.score[new]
                new += 1
            n_out += 1
    changes.n[0] = n_out
    journal.head[N_TOUCHED], journal.head[N_SAVED] = 0, 0
    journal.head[STAMP] += 1
    return True


@kernel
def remember_all(journal, subscribers, buffers, asked, first):
    """Keep the lists of these subscriptions from position `first` on; returns where it stopped for lack of room."""
    for i in range(first, asked.size):
        if not remember(journal, buffers, subscribers.k[asked[i]], asked[i]):
            return i
    return asked.size
