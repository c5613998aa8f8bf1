"""The best messages found so far, as a heap with the worst in front; and in the end in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.kernels.window import ranks_before


@inline_kernel
def offer(time, base, number, score, first, n, n_wanted, new_number, new_score):
    """Put a message into the heap of `n` from `first` on if it is among the best `n_wanted`; returns how many there are."""
    if n < n_wanted:
        number[first + n], score[first + n] = new_number, new_score
        lift_last(time, base, number, score, first, n + 1)
        return n + 1
    if n > 0 and ranks_before(time, base, new_score, new_number, score[first], number[first]):
        number[first], score[first] = new_number, new_score
        sink_first(time, base, number, score, first, n)
    return n


@inline_kernel
def put_in_order(time, base, number, score, first, n):
    """From a heap to a list, best first: the worst, taken out one by one, come from the back."""
    for left in range(n - 1, 0, -1):
        swap(number, score, first, first + left)
        sink_first(time, base, number, score, first, left)


@inline_kernel
def swap(number, score, a, b):
    number[a], number[b] = number[b], number[a]
    score[a], score[b] = score[b], score[a]


@kernel
def lift_last(time, base, number, score, first, n):
    """Restore the heap after one was added at its end."""
    at = n - 1
    while at > 0:
        parent = (at - 1) // 2
        if not ranks_before(time, base, score[first + parent], number[first + parent], score[first + at], number[first + at]):
            return
        swap(number, score, first + at, first + parent)
        at = parent


@kernel
def sink_first(time, base, number, score, first, n):
    """Restore the heap after its front was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            return
        if child + 1 < n:
            left, right = first + child, first + child + 1
            if ranks_before(time, base, score[left], number[left], score[right], number[right]):
                child += 1
        if ranks_before(time, base, score[first + child], number[first + child], score[first + at], number[first + at]):
            return
        swap(number, score, first + at, first + child)
        at = child


# -- Parts of an index still to be searched, the most promising first but for those that promise nearly the same.
#
# A part lies on the shelf of its bound, a share of the way from 0 to 1. A heap would keep the exact order; that costs more than
# the few parts that are taken too early.

N_SHELVES = 1024
NOTHING = -1
_N_PARTS, _HIGHEST = 0, 1


class BoundQueue(NamedTuple):
    """Room for all parts there may be in one search; a search touches the beginning only."""

    at: np.ndarray  # int64[2], how many parts there are, and the highest shelf that may have one
    front: np.ndarray  # int32[N_SHELVES], place of the first part of each shelf, or NOTHING
    next: np.ndarray  # int32[room], place of the part behind
    bound: np.ndarray  # float64[room]
    part: np.ndarray  # int64[room]


def queue_for(n_parts: int) -> BoundQueue:
    """For so many parts."""
    at, front = np.zeros(2, np.int64), np.empty(N_SHELVES, np.int32)
    return BoundQueue(at, front, np.empty(n_parts, np.int32), np.empty(n_parts), np.empty(n_parts, np.int64))


@inline_kernel
def clear_queue(queue):
    """Before each search."""
    queue.front[:] = NOTHING
    queue.at[_N_PARTS], queue.at[_HIGHEST] = 0, NOTHING


@inline_kernel
def push_bound(queue, bound, part):
    """Add a part; there is room for it."""
    at, front = queue.at, queue.front
    shelf, place = min(max(int(bound * N_SHELVES), 0), N_SHELVES - 1), at[_N_PARTS]
    queue.next[place], queue.bound[place], queue.part[place] = front[shelf], bound, part
    front[shelf], at[_N_PARTS], at[_HIGHEST] = place, place + 1, max(at[_HIGHEST], shelf)


@inline_kernel
def pop_bound(queue, least):
    """The place of a part of the highest shelf, taken away; NOTHING if no bound is at least `least`, which never falls."""
    at, front = queue.at, queue.front
    shelf = at[_HIGHEST]
    while shelf >= 0:
        place = front[shelf]
        while place != NOTHING:
            if queue.bound[place] >= least:
                front[shelf], at[_HIGHEST] = queue.next[place], shelf
                return place
            place = queue.next[place]
        front[shelf] = NOTHING
        shelf -= 1
    at[_HIGHEST] = NOTHING
    return NOTHING
