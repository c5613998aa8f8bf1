"""The messages of a window: vectors of weighted words, order, and which message arrives and which expires next."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.kernels.layouts import (
    ADMIT,
    ALL_ARRIVED,
    ARRIVE,
    BASE,
    N_DONE,
    N_HEAP,
    NEWEST,
    NEWEST_TIME,
    NO_MESSAGE,
    NOW,
    PHASE,
    POSITION,
    SPAN,
    UNFINISHED,
)
from nearcast.ranked.kernels.scoring import sum_in_order


@kernel
def weigh_messages(window, first, last, weights):
    """Write values and lengths of the messages at positions `first` … `last - 1`; `weights[w]` is the weight of keyword `w`."""
    keyword_start, keyword, n_times = window.keyword_start, window.keyword, window.n_times
    value, length = window.value, window.length
    most = 0
    for position in range(first, last):
        most = max(most, keyword_start[position + 1] - keyword_start[position])
    squares, ordered = np.empty(most, np.float64), np.empty(most, np.float64)
    for position in range(first, last):
        begin, end = keyword_start[position], keyword_start[position + 1]
        for at in range(begin, end):
            weight = weights[keyword[at]]
            value[at] = n_times[at] * (weight * weight)
            part = n_times[at] * weight
            squares[at - begin] = part * part
        length[position] = math.sqrt(sum_in_order(squares, end - begin, ordered))


@inline_kernel
def is_newer(time, base, a, b):
    """Whether message number `a` is newer than number `b`."""
    if time[a - base] != time[b - base]:
        return time[a - base] > time[b - base]
    return a > b


@inline_kernel
def ranks_before(time, base, score_a, number_a, score_b, number_b):
    """Whether the first message has the larger score, or the same and is newer."""
    if score_a != score_b:
        return score_a > score_b
    return is_newer(time, base, number_a, number_b)


@kernel
def push_oldest_first(window, heap, n_heap, number):
    """Add a message to the heap with the oldest in front; `heap` has capacity."""
    time, base = window.time, window.head[BASE]
    at = n_heap
    while at > 0:
        parent = (at - 1) // 2
        if is_newer(time, base, number, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = number
    return n_heap + 1


@kernel
def pop_oldest(window, heap, n_heap):
    """Remove the oldest message from the heap; returns how many are left."""
    time, base = window.time, window.head[BASE]
    n_heap -= 1
    moved = heap[n_heap]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n_heap:
            break
        if child + 1 < n_heap and is_newer(time, base, heap[child], heap[child + 1]):
            child += 1
        if is_newer(time, base, heap[child], moved):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moved
    return n_heap


@inline_kernel
def next_arrival(window, run, last, is_timed):
    """Add the next message to the window; returns its position, ALL_ARRIVED, or UNFINISHED if the last tick is not finished."""
    at, position = run.at, run.at[POSITION]
    if at[PHASE] != ARRIVE:
        return UNFINISHED
    if position == last:
        return ALL_ARRIVED
    at[POSITION] = position + 1
    number = window.head[BASE] + position
    window.is_alive[position] = 1
    if is_timed:
        run.clock[NOW] = max(run.clock[NOW], window.time[position])
        at[N_HEAP] = push_oldest_first(window, run.heap, at[N_HEAP], number)
    # Its number is the largest of all.
    if window.time[position] >= run.clock[NEWEST_TIME]:
        run.clock[NEWEST_TIME] = window.time[position]
        at[NEWEST] = number
    at[N_DONE] = 0
    at[PHASE] = ADMIT
    return position


@inline_kernel
def next_due(window, run, is_timed, n_counted):
    """The next message that must expire now, or NO_MESSAGE."""
    base = window.head[BASE]
    if is_timed:
        if run.at[N_HEAP] == 0 or window.time[run.heap[0] - base] > run.clock[NOW] - run.clock[SPAN]:
            return NO_MESSAGE
        return run.heap[0]
    position = run.at[POSITION] - 1 - n_counted
    if position < 0 or window.is_alive[position] == 0:
        return NO_MESSAGE
    return base + position
