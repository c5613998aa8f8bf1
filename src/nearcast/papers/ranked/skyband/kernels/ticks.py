"""The loop over ticks: a message arrives, due messages expire, buffers are refilled, differences are recorded.

A run stops when it lacks something that only its caller can supply (memory, refilled buffers), and continues from there. The
loop itself is in each index, around its own search for candidates: a kernel that takes another kernel as argument cannot be
cached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.papers.ranked.skyband.kernels.buffers import (
    ADMITTED,
    ADMITTED_AND_TRUNCATED,
    NOBODY,
    REFUSED_AND_TRUNCATED,
    admit,
    drop,
    oldest_held,
    schedule,
    unschedule,
)
from nearcast.ranked.kernels.layouts import (
    ADMIT,
    ARRIVE,
    BASE,
    DONE,
    EXPIRE,
    LACKS_MESSAGES,
    LACKS_OUTPUT,
    LACKS_SNAPSHOTS,
    N_CANDIDATES,
    N_DONE,
    N_HEAP,
    N_NEEDS_REFILL,
    N_TRUNCATED,
    NEWEST,
    NO_MESSAGE,
    PHASE,
    POSITION,
    REFILL,
    TELL,
)
from nearcast.ranked.kernels.window import is_newer, next_due, pop_oldest, ranks_before


class SkybandRunArrays(NamedTuple):
    """Where a run stands, and what it returns to its caller."""

    at: np.ndarray  # int64[8], see `ranked/kernels/layouts.py`
    clock: np.ndarray  # float64[3], at NOW, SPAN and NEWEST_TIME
    heap: np.ndarray  # int64[capacity], living messages of a window of time, the oldest in front
    candidate: np.ndarray  # int32[capacity], subscriptions the arriving message may reach
    candidate_score: np.ndarray  # float64[capacity]
    needs_refill: np.ndarray  # int32[capacity], subscriptions to refill
    is_in_refill: np.ndarray  # uint8[capacity]
    truncated: np.ndarray  # int32[capacity], subscriptions whose threshold rose
    is_truncated: np.ndarray  # uint8[capacity]
    kept_when_full: np.ndarray  # int32[capacity], messages that a full buffer keeps
    scores: np.ndarray  # float64[words], scratch
    counters: np.ndarray  # int64[2]


# Buffers that are prefetched, and messages in a line of memory.
_AHEAD, _PER_LINE = 4, 8


@kernel
def admit_candidates(subscriptions, window, buffers, calendar, snapshots, run, is_banded):
    """Offer the message that has arrived to its candidates; False if memory for snapshots is lacking."""
    at, base = run.at, window.head[BASE]
    number = base + at[POSITION] - 1
    is_late = at[NEWEST] != number
    candidate, n_candidates = run.candidate, at[N_CANDIDATES]
    for i in range(at[N_DONE], n_candidates):
        if i + 2 * _AHEAD < n_candidates:
            prefetch_row(subscriptions, buffers, calendar, snapshots, candidate[i + 2 * _AHEAD])
        if i + _AHEAD < n_candidates:
            prefetch_list(buffers, candidate[i + _AHEAD])
        s = candidate[i]
        k = subscriptions.k[s]
        if not snapshot_list(snapshots, buffers, k, s):
            at[N_DONE] = i
            return False
        outcome = admit(buffers, window, s, k, number, run.candidate_score[i], is_late, is_banded, run.kept_when_full)
        if outcome in (ADMITTED, ADMITTED_AND_TRUNCATED):
            scheduled_at = calendar.scheduled_at[s]
            if scheduled_at == NOBODY or (is_late and is_newer(window.time, base, scheduled_at, number)):
                schedule(calendar, base, s, number)
        if outcome >= REFUSED_AND_TRUNCATED and run.is_truncated[s] == 0:
            run.is_truncated[s] = 1
            run.truncated[at[N_TRUNCATED]] = s
            at[N_TRUNCATED] += 1
    at[PHASE] = EXPIRE
    return True


@inline_kernel
def prefetch_row(subscriptions, buffers, calendar, snapshots, s):
    """Prefetch the columns of a subscription."""
    prefetch(buffers.start, s)
    prefetch(buffers.size, s)
    prefetch(buffers.capacity, s)
    prefetch(buffers.threshold, s)
    prefetch(buffers.is_complete, s)
    prefetch(subscriptions.k, s)
    prefetch(calendar.scheduled_at, s)
    prefetch(snapshots.stamp, s)


@inline_kernel
def prefetch_list(buffers, s):
    """Prefetch the messages of a buffer."""
    start = buffers.start[s]
    for at in range(start, start + buffers.size[s] + 1, _PER_LINE):
        prefetch(buffers.score, at)
        prefetch(buffers.number, at)
        prefetch(buffers.dominators, at)


@kernel
def expire_due(subscriptions, window, buffers, calendar, snapshots, run, is_timed, n_counted):
    """Expire the messages that are due; False if memory for snapshots is lacking."""
    at, base = run.at, window.head[BASE]
    while True:
        number = next_due(window, run, is_timed, n_counted)
        if number == NO_MESSAGE:
            break
        window.is_alive[number - base] = 0
        s = calendar.first[number - base]
        while s != NOBODY:
            k = subscriptions.k[s]
            if not snapshot_list(snapshots, buffers, k, s):
                # Alive again, so that it is found due again.
                window.is_alive[number - base] = 1
                return False
            drop(buffers, s, number)
            oldest = oldest_held(buffers, window, s)
            if oldest == NO_MESSAGE:
                unschedule(calendar, base, s)
            else:
                schedule(calendar, base, s, oldest)
            if buffers.size[s] < k and not buffers.is_complete[s] and run.is_in_refill[s] == 0:
                run.is_in_refill[s] = 1
                run.needs_refill[at[N_NEEDS_REFILL]] = s
                at[N_NEEDS_REFILL] += 1
            s = calendar.first[number - base]
        if is_timed:
            at[N_HEAP] = pop_oldest(window, run.heap, at[N_HEAP])
    at[PHASE] = REFILL
    return True


@kernel
def finish_tick(subscriptions, window, buffers, calendar, snapshots, run, changes, rules):
    """Run a tick from ADMIT to the next ARRIVE; returns DONE, or what is lacking."""
    subscriptions, window, buffers, calendar = borrow(subscriptions), borrow(window), borrow(buffers), borrow(calendar)
    snapshots, run, changes = borrow(snapshots), borrow(run), borrow(changes)
    is_timed, n_counted, is_net, is_banded = rules
    at = run.at
    if at[PHASE] == ADMIT and not admit_candidates(subscriptions, window, buffers, calendar, snapshots, run, is_banded):
        return LACKS_SNAPSHOTS
    if at[PHASE] == EXPIRE and not expire_due(subscriptions, window, buffers, calendar, snapshots, run, is_timed, n_counted):
        return LACKS_SNAPSHOTS
    if at[PHASE] == REFILL:
        if at[N_NEEDS_REFILL] > 0:
            return LACKS_MESSAGES
        at[PHASE] = TELL
    if not is_net and not diff_snapshots(
        snapshots, subscriptions, window, buffers, window.head[BASE] + at[POSITION] - 1, changes
    ):
        return LACKS_OUTPUT
    at[PHASE] = ARRIVE
    return DONE


# --- snapshots: lists as they were before, and how they differ from what they are ---------------------------------


class SnapshotArrays(NamedTuple):
    """Lists as they were when a subscription was first touched; `stamp[s]` says whether it was since the last comparison."""

    head: np.ndarray  # int64[3], at STAMP, N_TOUCHED, N_SAVED
    stamp: np.ndarray  # int64[capacity]
    touched: np.ndarray  # int32[capacity], subscriptions in order
    saved_from: np.ndarray  # int64[capacity + 1], of each touched one
    score: np.ndarray  # float64[capacity]
    number: np.ndarray  # int64[capacity]


STAMP, N_TOUCHED, N_SAVED = 0, 1, 2


@kernel
def snapshot_list(snapshots, buffers, k, s):
    """Save the list of a subscription before it is touched; False if memory is lacking."""
    head = snapshots.head
    if snapshots.stamp[s] == head[STAMP]:
        return True
    n_shown = min(k, buffers.size[s])
    n_saved, n_touched = head[N_SAVED], head[N_TOUCHED]
    if n_saved + n_shown > snapshots.score.size:
        return False
    start = buffers.start[s]
    for i in range(n_shown):
        snapshots.score[n_saved + i] = buffers.score[start + i]
        snapshots.number[n_saved + i] = buffers.number[start + i]
    snapshots.stamp[s] = head[STAMP]
    snapshots.touched[n_touched] = s
    snapshots.saved_from[n_touched] = n_saved
    snapshots.saved_from[n_touched + 1] = n_saved + n_shown
    head[N_SAVED], head[N_TOUCHED] = n_saved + n_shown, n_touched + 1
    return True


@kernel
def most_changes(snapshots, subscriptions, buffers):
    """The most changes that a comparison can record."""
    total = snapshots.head[N_SAVED]
    for i in range(snapshots.head[N_TOUCHED]):
        s = snapshots.touched[i]
        total += min(subscriptions.k[s], buffers.size[s])
    return total


@kernel
def diff_snapshots(snapshots, subscriptions, window, buffers, tick, changes):
    """Record the differences of all touched lists, and clear the snapshots; False if memory is lacking."""
    n_out = changes.n[0]
    if n_out + most_changes(snapshots, subscriptions, buffers) > changes.tick.size:
        return False
    time, base = window.time, window.head[BASE]
    for i in range(snapshots.head[N_TOUCHED]):
        s = snapshots.touched[i]
        old, old_end = snapshots.saved_from[i], snapshots.saved_from[i + 1]
        new = buffers.start[s]
        new_end = new + min(subscriptions.k[s], buffers.size[s])
        # Both are ordered, so one pass finds what is in only one of them.
        while old < old_end or new < new_end:
            if old < old_end and new < new_end:
                was, is_now = snapshots.number[old], buffers.number[new]
                was_score, score = snapshots.score[old], buffers.score[new]
                if was == is_now and was_score == score:
                    old, new = old + 1, new + 1
                    continue
                leaves = ranks_before(time, base, was_score, was, score, is_now)
            else:
                leaves = old < old_end
            changes.tick[n_out] = tick
            changes.subscription[n_out] = s
            if leaves:
                changes.number[n_out], changes.change[n_out], changes.score[n_out] = (
                    snapshots.number[old],
                    -1,
                    snapshots.score[old],
                )
                old += 1
            else:
                changes.number[n_out], changes.change[n_out], changes.score[n_out] = buffers.number[new], 1, buffers.score[new]
                new += 1
            n_out += 1
    changes.n[0] = n_out
    snapshots.head[N_TOUCHED], snapshots.head[N_SAVED] = 0, 0
    snapshots.head[STAMP] += 1
    return True


@kernel
def snapshot_lists(snapshots, subscriptions, buffers, numbers, first):
    """Save the lists of these subscriptions from position `first` on; returns where it stopped for lack of memory."""
    for i in range(first, numbers.size):
        if not snapshot_list(snapshots, buffers, subscriptions.k[numbers[i]], numbers[i]):
            return i
    return numbers.size
