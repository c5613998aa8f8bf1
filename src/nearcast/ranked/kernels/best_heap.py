"""The best messages found so far, as a heap with the worst in front; and in the end in order."""

from __future__ import annotations

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
