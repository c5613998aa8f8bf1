"""The messages of a window: words counted and weighed, which of two ranks first, which arrives and which leaves next."""

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
    PLACE,
    SPAN,
    UNFINISHED,
)
from nearcast.ranked.kernels.scoring import sum_in_order


@kernel
def weigh_messages(window, first, last, weights):
    """Write values and lengths of the messages at places `first` … `last - 1`; `weights[w]` is that of keyword `w`."""
    keyword_start, keyword, n_times = window.keyword_start, window.keyword, window.n_times
    value, length = window.value, window.length
    most = 0
    for place in range(first, last):
        most = max(most, keyword_start[place + 1] - keyword_start[place])
    squares, ordered = np.empty(most, np.float64), np.empty(most, np.float64)
    for place in range(first, last):
        begin, end = keyword_start[place], keyword_start[place + 1]
        for at in range(begin, end):
            weight = weights[keyword[at]]
            value[at] = n_times[at] * (weight * weight)
            part = n_times[at] * weight
            squares[at - begin] = part * part
        length[place] = math.sqrt(sum_in_order(squares, end - begin, ordered))


@inline_kernel
def is_newer(time, base, a, b):
    """Whether message number `a` is newer than number `b`."""
    if time[a - base] != time[b - base]:
        return time[a - base] > time[b - base]
    return a > b


@inline_kernel
def ranks_before(time, base, score_a, number_a, score_b, number_b):
    """Whether the first message is more relevant than the second, or as relevant and newer."""
    if score_a != score_b:
        return score_a > score_b
    return is_newer(time, base, number_a, number_b)


@kernel
def push_oldest_first(window, heap, n_heap, number):
    """Add a message to the heap that has the oldest one in front; `heap` has room."""
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
    """Take the oldest message out of the heap; returns how many are left."""
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
