"""The buffers of subscriptions and the calendar of expiries: a message enters, one leaves, a buffer is filled.

Paper: Wang et al., Skype (VLDB 2016), §6: the k-skyband above a threshold. The paper's threshold is a score; here it is a
message, the guard, so that age decides between equally relevant messages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.kernels.layouts import BASE, NO_MESSAGE
from nearcast.ranked.kernels.window import is_newer, ranks_before

REFUSED, ADMITTED, REFUSED_AND_TRUNCATED, ADMITTED_AND_TRUNCATED = 0, 1, 2, 3


class BufferArrays(NamedTuple):
    """The best messages of every subscription, from `start[s]` on, `size[s]` of at most `capacity[s]`, best first.

    All messages of the window that rank before the guard, and the guard, were considered; none below is held. With
    `is_complete` there is no guard: every message with a word in common was considered. `dominators` counts the newer messages
    that are at least as relevant; a message with k of them can never be among the best k and is not held.
    """

    start: np.ndarray  # int64[capacity]
    capacity: np.ndarray  # int32[capacity]
    size: np.ndarray  # int32[capacity]
    is_complete: np.ndarray  # uint8[capacity]
    threshold: np.ndarray  # float64[capacity], score of the guard; 0 where complete
    guard_time: np.ndarray  # float64[capacity]
    guard_number: np.ndarray  # int64[capacity]
    score: np.ndarray  # float64[pool]
    number: np.ndarray  # int64[pool], sequence numbers
    dominators: np.ndarray  # int32[pool]


@inline_kernel
def is_above_guard(buffers, window, s, score, number):
    """Whether a message ranks before the guard of a subscription."""
    if buffers.is_complete[s] or score > buffers.threshold[s]:
        return True
    if score < buffers.threshold[s]:
        return False
    time = window.time[number - window.head[BASE]]
    if time != buffers.guard_time[s]:
        return time > buffers.guard_time[s]
    return number > buffers.guard_number[s]


@kernel
def admit(buffers, window, s, k, number, score, is_late, is_banded, kept_when_full):
    """Add a message that has just arrived to the buffer of a subscription, if it ranks before the guard.

    `is_late`: it is not the newest of all. `is_banded`: messages with `k` newer ones that are as relevant are not held. A full
    buffer is truncated to `kept_when_full[s]` messages first.
    """
    if not is_above_guard(buffers, window, s, score, number):
        return REFUSED
    time, base = window.time, window.head[BASE]
    start, scores, numbers, dominators = buffers.start[s], buffers.score, buffers.number, buffers.dominators
    position = start + buffers.size[s]
    while position > start and ranks_before(time, base, score, number, scores[position - 1], numbers[position - 1]):
        position -= 1
    n_dominators = 0
    if is_late and is_banded:
        for at in range(start, position):
            if is_newer(time, base, numbers[at], number):
                n_dominators += 1
        if n_dominators >= k:
            return REFUSED
    end = start + buffers.size[s]
    if is_banded:
        n_kept = position
        for at in range(position, end):
            n_of = dominators[at]
            if not is_late or is_newer(time, base, number, numbers[at]):
                n_of += 1
            if n_of < k:
                scores[n_kept], numbers[n_kept], dominators[n_kept] = scores[at], numbers[at], n_of
                n_kept += 1
        end = n_kept
        buffers.size[s] = end - start
    outcome = ADMITTED
    if end - start == buffers.capacity[s]:
        truncate(buffers, window, s, kept_when_full[s])
        end = start + buffers.size[s]
        if position >= end:
            return REFUSED_AND_TRUNCATED
        outcome = ADMITTED_AND_TRUNCATED
    for at in range(end, position, -1):
        scores[at], numbers[at], dominators[at] = scores[at - 1], numbers[at - 1], dominators[at - 1]
    scores[position], numbers[position], dominators[position] = score, number, n_dominators
    buffers.size[s] += 1
    return outcome


@kernel
def truncate(buffers, window, s, n_kept):
    """Keep the first `n_kept` messages (at least one); the last of them is the guard from then on."""
    last = buffers.start[s] + n_kept - 1
    buffers.size[s] = n_kept
    buffers.is_complete[s] = 0
    buffers.threshold[s] = buffers.score[last]
    buffers.guard_number[s] = buffers.number[last]
    buffers.guard_time[s] = window.time[buffers.number[last] - window.head[BASE]]


@kernel
def drop(buffers, s, number):
    """Remove a message from a buffer if it is there. It is the oldest of all, so it dominates no other."""
    start, end = buffers.start[s], buffers.start[s] + buffers.size[s]
    scores, numbers, dominators = buffers.score, buffers.number, buffers.dominators
    position = start
    while position < end and numbers[position] != number:
        position += 1
    if position == end:
        return
    for at in range(position, end - 1):
        scores[at], numbers[at], dominators[at] = scores[at + 1], numbers[at + 1], dominators[at + 1]
    buffers.size[s] -= 1


@kernel
def oldest_held(buffers, window, s):
    """The oldest message of a buffer, or NO_MESSAGE."""
    time, base, numbers = window.time, window.head[BASE], buffers.number
    oldest = NO_MESSAGE
    for at in range(buffers.start[s], buffers.start[s] + buffers.size[s]):
        if oldest == NO_MESSAGE or is_newer(time, base, oldest, numbers[at]):
            oldest = numbers[at]
    return oldest


@kernel
def fill(buffers, window, s, k, best_score, best_number, n_best, is_complete, is_banded):
    """Hold the first `n_best` of the messages found, which are ordered. Unless complete, the last one is the guard."""
    time, base = window.time, window.head[BASE]
    start, scores, numbers, dominators = buffers.start[s], buffers.score, buffers.number, buffers.dominators
    buffers.is_complete[s] = 1 if is_complete else 0
    buffers.threshold[s] = 0.0
    if not is_complete:
        last = n_best - 1
        buffers.threshold[s] = best_score[last]
        buffers.guard_number[s] = best_number[last]
        buffers.guard_time[s] = time[best_number[last] - base]
    n_held = 0
    for i in range(n_best):
        n_dominators = 0
        if is_banded:
            # A dominator is held itself, or has k dominators, which then dominate this message too.
            for j in range(n_held):
                if is_newer(time, base, numbers[start + j], best_number[i]):
                    n_dominators += 1
        if n_dominators < k:
            at = start + n_held
            scores[at], numbers[at], dominators[at] = best_score[i], best_number[i], n_dominators
            n_held += 1
    buffers.size[s] = n_held


@kernel
def count_near(start, n_best, score, k, least_share):
    """The number of messages found for each subscription with at least `least_share` of the score of the k-th; at least k."""
    n_near = n_best.copy()
    for i in range(n_near.size):
        if n_best[i] > k[i]:
            least = least_share * score[start[i] + k[i] - 1]
            n_near[i] = k[i]
            while n_near[i] < n_best[i] and score[start[i] + n_near[i]] >= least:
                n_near[i] += 1
    return n_near


@kernel
def fill_many(buffers, window, k, numbers, start, n_filled, is_complete, number, score, is_banded):
    """Fill the buffer of each of these subscriptions from its part of the messages found."""
    for i in range(numbers.size):
        first = start[i]
        last = first + n_filled[i]
        best_score, best_number = score[first:last], number[first:last]
        fill(buffers, window, numbers[i], k[numbers[i]], best_score, best_number, n_filled[i], is_complete[i], is_banded)


# --- the calendar: each subscription is scheduled at one message, its oldest or one before that --------------------

NOBODY = -1


class CalendarArrays(NamedTuple):
    """Doubly linked lists of subscriptions, one for each position of the window."""

    first: np.ndarray  # int32[positions], a subscription or NOBODY
    following: np.ndarray  # int32[subscriptions]
    preceding: np.ndarray  # int32[subscriptions], NOBODY for the first
    scheduled_at: np.ndarray  # int64[subscriptions], a sequence number or NOBODY


@kernel
def schedule(calendar, base, s, number):
    """Schedule a subscription at a message, instead of where it was scheduled before."""
    unschedule(calendar, base, s)
    following = calendar.first[number - base]
    calendar.following[s], calendar.preceding[s], calendar.scheduled_at[s] = following, NOBODY, number
    if following != NOBODY:
        calendar.preceding[following] = s
    calendar.first[number - base] = s


@kernel
def unschedule(calendar, base, s):
    number = calendar.scheduled_at[s]
    if number == NOBODY:
        return
    before, after = calendar.preceding[s], calendar.following[s]
    if before == NOBODY:
        calendar.first[number - base] = after
    else:
        calendar.following[before] = after
    if after != NOBODY:
        calendar.preceding[after] = before
    calendar.scheduled_at[s] = NOBODY


@kernel
def schedule_at_oldest(calendar, buffers, window, numbers):
    """Schedule each of these subscriptions at the oldest message it holds, if it holds any."""
    base = window.head[BASE]
    for i in range(numbers.size):
        s = numbers[i]
        oldest = oldest_held(buffers, window, s)
        if oldest == NO_MESSAGE:
            unschedule(calendar, base, s)
        else:
            schedule(calendar, base, s, oldest)
