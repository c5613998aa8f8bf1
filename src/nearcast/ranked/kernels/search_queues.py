"""What a search of the window keeps: the best messages so far, in a heap, and the parts of an index still to be searched.

Parts are in a bucket queue: a bucket for each interval of bounds from 0 to 1, the most promising bucket first. A heap would
keep the exact order; that costs more than the few parts that are taken too early.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.kernels.window import ranks_before


@inline_kernel
def offer(time, base, number, score, first, n, n_best, new_number, new_score):
    """Add a message to the heap of `n` from `first` on, if it is among the best `n_best`; returns how many there are then."""
    if n < n_best:
        number[first + n], score[first + n] = new_number, new_score
        lift_last(time, base, number, score, first, n + 1)
        return n + 1
    if n > 0 and ranks_before(time, base, new_score, new_number, score[first], number[first]):
        number[first], score[first] = new_number, new_score
        sink_first(time, base, number, score, first, n)
    return n


@inline_kernel
def put_in_order(time, base, number, score, first, n):
    """Turn the heap into a list, best first: the worst are taken out one by one and fill it from the back."""
    for n_left in range(n - 1, 0, -1):
        swap(number, score, first, first + n_left)
        sink_first(time, base, number, score, first, n_left)


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
            n_left, right = first + child, first + child + 1
            if ranks_before(time, base, score[n_left], number[n_left], score[right], number[right]):
                child += 1
        if ranks_before(time, base, score[first + child], number[first + child], score[first + at], number[first + at]):
            return
        swap(number, score, first + at, first + child)
        at = child


N_BUCKETS = 1024
NOTHING = -1
_N_PARTS, _HIGHEST = 0, 1


class BoundQueue(NamedTuple):
    """Capacity for all parts of one search; a search touches only the beginning."""

    at: np.ndarray  # int64[2], how many parts there are, and the highest bucket that may have one
    front: np.ndarray  # int32[N_BUCKETS], position of the first part of each bucket, or NOTHING
    next: np.ndarray  # int32[capacity], position of the next part
    bound: np.ndarray  # float64[capacity]
    part: np.ndarray  # int64[capacity]


def queue_for(n_parts: int) -> BoundQueue:
    """A queue for up to `n_parts` parts."""
    at, front = np.zeros(2, np.int64), np.empty(N_BUCKETS, np.int32)
    return BoundQueue(at, front, np.empty(n_parts, np.int32), np.empty(n_parts), np.empty(n_parts, np.int64))


@inline_kernel
def clear_queue(queue):
    """Empty the queue before a search."""
    queue.front[:] = NOTHING
    queue.at[_N_PARTS], queue.at[_HIGHEST] = 0, NOTHING


@inline_kernel
def push_bound(queue, bound, part):
    """Add a part; there is capacity."""
    at, front = queue.at, queue.front
    bucket, position = min(max(int(bound * N_BUCKETS), 0), N_BUCKETS - 1), at[_N_PARTS]
    queue.next[position], queue.bound[position], queue.part[position] = front[bucket], bound, part
    front[bucket], at[_N_PARTS], at[_HIGHEST] = position, position + 1, max(at[_HIGHEST], bucket)


@inline_kernel
def pop_bound(queue, least):
    """Take one part of the highest bucket; returns its position; NOTHING if all bounds are below `least`, which never falls."""
    at, front = queue.at, queue.front
    bucket = at[_HIGHEST]
    while bucket >= 0:
        position = front[bucket]
        while position != NOTHING:
            if queue.bound[position] >= least:
                front[bucket], at[_HIGHEST] = queue.next[position], bucket
                return position
            position = queue.next[position]
        front[bucket] = NOTHING
        bucket -= 1
    at[_HIGHEST] = NOTHING
    return NOTHING
