"""The best messages of each subscription: one enters, one leaves, all are put in anew.

Paper: Wang et al., Skype (VLDB 2016), §6: the k-skyband above a threshold. Where the paper has a score as threshold we have a
message, the guard, so that equally relevant messages are told apart by their age.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.kernels.layouts import BASE, NO_MESSAGE
from nearcast.ranked.kernels.window import is_newer, ranks_before

REFUSED, ADMITTED, REFUSED_WITH_CUT, ADMITTED_WITH_CUT = 0, 1, 2, 3


class BufferArrays(NamedTuple):
    """The best messages of every subscription, from `start[s]` on, `size[s]` of at most `room[s]`, best first.

    All messages of the window that rank before the guard, or are the guard, were considered; none below is held. With
    `is_complete` there is no guard: every message that has a word in common was. `dominators` counts the newer messages that
    are at least as relevant; those with k of them can never be among the best k and are not held.
    """

    start: np.ndarray  # int64[capacity]
    room: np.ndarray  # int32[capacity]
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
def admit(buffers, window, s, k, number, score, is_late, is_banded, kept_by_cut):
    """Put a message that has just arrived into the buffer of a subscription, if it ranks before the guard.

    `is_late`: it is not the newest of all. `is_banded`: messages with `k` newer ones that are as relevant are not held. A full
    buffer is cut to `kept_by_cut[s]` messages first.
    """
    if not is_above_guard(buffers, window, s, score, number):
        return REFUSED
    time, base = window.time, window.head[BASE]
    start, scores, numbers, dominators = buffers.start[s], buffers.score, buffers.number, buffers.dominators
    place = start + buffers.size[s]
    while place > start and ranks_before(time, base, score, number, scores[place - 1], numbers[place - 1]):
        place -= 1
    n_dominators = 0
    if is_late and is_banded:
        for at in range(start, place):
            if is_newer(time, base, numbers[at], number):
                n_dominators += 1
        if n_dominators >= k:
            return REFUSED
    end = start + buffers.size[s]
    if is_banded:
        kept = place
        for at in range(place, end):
            n_of = dominators[at]
            if not is_late or is_newer(time, base, number, numbers[at]):
                n_of += 1
            if n_of < k:
                scores[kept], numbers[kept], dominators[kept] = scores[at], numbers[at], n_of
                kept += 1
        end = kept
        buffers.size[s] = end - start
    outcome = ADMITTED
    if end - start == buffers.room[s]:
        cut(buffers, window, s, kept_by_cut[s])
        end = start + buffers.size[s]
        if place >= end:
            return REFUSED_WITH_CUT
        outcome = ADMITTED_WITH_CUT
    for at in range(end, place, -1):
        scores[at], numbers[at], dominators[at] = scores[at - 1], numbers[at - 1], dominators[at - 1]
    scores[place], numbers[place], dominators[place] = score, number, n_dominators
    buffers.size[s] += 1
    return outcome


@kernel
def cut(buffers, window, s, n_kept):
    """Keep the first `n_kept` messages (at least one); the last of them is the guard from now on."""
    last = buffers.start[s] + n_kept - 1
    buffers.size[s] = n_kept
    buffers.is_complete[s] = 0
    buffers.threshold[s] = buffers.score[last]
    buffers.guard_number[s] = buffers.number[last]
    buffers.guard_time[s] = window.time[buffers.number[last] - window.head[BASE]]


@kernel
def drop(buffers, s, number):
    """Take a message out of a buffer if it is there. It is the oldest of all, so it dominates no other."""
    start, end = buffers.start[s], buffers.start[s] + buffers.size[s]
    scores, numbers, dominators = buffers.score, buffers.number, buffers.dominators
    place = start
    while place < end and numbers[place] != number:
        place += 1
    if place == end:
        return
    for at in range(place, end - 1):
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
def fill(buffers, window, s, k, found_score, found_number, n_found, is_complete, is_banded):
    """Hold the first `n_found` of the messages found, which are in order; unless complete, the last one is the guard."""
    time, base = window.time, window.head[BASE]
    start, scores, numbers, dominators = buffers.start[s], buffers.score, buffers.number, buffers.dominators
    buffers.is_complete[s] = 1 if is_complete else 0
    buffers.threshold[s] = 0.0
    if not is_complete:
        last = n_found - 1
        buffers.threshold[s] = found_score[last]
        buffers.guard_number[s] = found_number[last]
        buffers.guard_time[s] = time[found_number[last] - base]
    n_held = 0
    for i in range(n_found):
        n_dominators = 0
        if is_banded:
            # Whoever dominates a message is held itself or has k dominators, which then dominate this one too.
            for j in range(n_held):
                if is_newer(time, base, numbers[start + j], found_number[i]):
                    n_dominators += 1
        if n_dominators < k:
            at = start + n_held
            scores[at], numbers[at], dominators[at] = found_score[i], found_number[i], n_dominators
            n_held += 1
    buffers.size[s] = n_held


@kernel
def count_near(start, n_found, score, k, least_share):
    """How many of the messages found for each subscription have `least_share` of the score of the k-th; at least k."""
    n_near = n_found.copy()
    for i in range(n_near.size):
        if n_found[i] > k[i]:
            least = least_share * score[start[i] + k[i] - 1]
            n_near[i] = k[i]
            while n_near[i] < n_found[i] and score[start[i] + n_near[i]] >= least:
                n_near[i] += 1
    return n_near


@kernel
def fill_many(buffers, window, k, asked, start, n_filled, is_complete, number, score, is_banded):
    """Fill the buffer of each subscription asked for from its part of the messages found."""
    for i in range(asked.size):
        first = start[i]
        last = first + n_filled[i]
        found_score, found_number = score[first:last], number[first:last]
        fill(buffers, window, asked[i], k[asked[i]], found_score, found_number, n_filled[i], is_complete[i], is_banded)


# -- Which subscriptions to look after when a message ends: each waits at one message, its oldest or one before that.

NOBODY = -1


class CalendarArrays(NamedTuple):
    """Doubly linked lists of subscriptions, one for each place of the window."""

    first: np.ndarray  # int32[places], a subscription or NOBODY
    following: np.ndarray  # int32[subscriptions]
    preceding: np.ndarray  # int32[subscriptions], NOBODY for the first
    waits_at: np.ndarray  # int64[subscriptions], a sequence number or NOBODY


@kernel
def wait_at(calendar, base, s, number):
    """Let a subscription wait at a message, and no longer where it did."""
    wait_nowhere(calendar, base, s)
    following = calendar.first[number - base]
    calendar.following[s], calendar.preceding[s], calendar.waits_at[s] = following, NOBODY, number
    if following != NOBODY:
        calendar.preceding[following] = s
    calendar.first[number - base] = s


@kernel
def wait_nowhere(calendar, base, s):
    number = calendar.waits_at[s]
    if number == NOBODY:
        return
    before, after = calendar.preceding[s], calendar.following[s]
    if before == NOBODY:
        calendar.first[number - base] = after
    else:
        calendar.following[before] = after
    if after != NOBODY:
        calendar.preceding[after] = before
    calendar.waits_at[s] = NOBODY


@kernel
def wait_for_oldest(calendar, buffers, window, asked):
    """Let each of these subscriptions wait at the oldest message it holds, if it holds any."""
    base = window.head[BASE]
    for i in range(asked.size):
        s = asked[i]
        oldest = oldest_held(buffers, window, s)
        if oldest == NO_MESSAGE:
            wait_nowhere(calendar, base, s)
        else:
            wait_at(calendar, base, s, oldest)
