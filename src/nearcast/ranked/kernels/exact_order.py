"""The exact order of a list where keys do not decide: scores are computed again; of equal scores the newer message is first."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import move_within
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.list_layout import (
    GUARD_NUMBER,
    LAST,
    LIMITS,
    NO_LAST,
    ROW,
    SIZE,
    START,
    THRESHOLD,
    capacity_of,
    full_number,
    held_of,
    k_of,
    n_kept_when_full,
    number32_in,
    pack_last,
    start_of_numbers32,
)
from nearcast.ranked.kernels.lists import drop_expired, is_expired
from nearcast.ranked.kernels.scoring import score_at

_NOT_SCORED = -1.0
NOBODY, NOT_SHOWN = -1, -2


@inline_kernel
def number_at(buffers, base, s, position):
    row = buffers.row
    return full_number(
        buffers.pool[start_of_numbers32(row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])) + position], base
    )


@kernel
def exact_score(buffers, window, scorer, s, position):
    """The score of the message at a position of a list; the same as when it arrived."""
    buffers, window, scorer = borrow(buffers), borrow(window), borrow(scorer)
    score = scorer.score
    if score[position] == _NOT_SCORED:
        message = number_at(buffers, window.head[BASE], s, position) - window.head[BASE]
        score[position] = score_at(scorer.distances, scorer.subscriptions, window, s, message, scorer.common)
    return score[position]


@kernel
def ranks_first(buffers, window, scorer, s, a, b):
    """Whether the message at position `a` of a list ranks before the one at `b`."""
    buffers, window, scorer = borrow(buffers), borrow(window), borrow(scorer)
    key_at, base = 2 * buffers.row[s * ROW + START], window.head[BASE]
    if buffers.key[key_at + a] != buffers.key[key_at + b]:
        return buffers.key[key_at + a] > buffers.key[key_at + b]
    score_a, score_b = exact_score(buffers, window, scorer, s, a), exact_score(buffers, window, scorer, s, b)
    if score_a != score_b:
        return score_a > score_b
    number_a, number_b = number_at(buffers, base, s, a), number_at(buffers, base, s, b)
    time_a, time_b = window.time[number_a - base], window.time[number_b - base]
    if time_a != time_b:
        return time_a > time_b
    return number_a > number_b


@inline_kernel
def start_scoring(scorer, size):
    """Mark every message of a list as not scored."""
    for position in range(size):
        scorer.score[position] = _NOT_SCORED


@kernel
def order_living(buffers, window, scorer, s, oldest, is_in_order):
    """Write the positions of the living messages of a list, best first; returns how many there are."""
    buffers, window, scorer = borrow(buffers), borrow(window), borrow(scorer)
    order, base, is_alive = scorer.order, window.head[BASE], window.is_alive
    size = held_of(buffers.row[s * ROW + SIZE], capacity_of(buffers.row[s * ROW + LIMITS]))
    keys, key_at = buffers.key, 2 * buffers.row[s * ROW + START]
    start_scoring(scorer, size)
    n = 0
    for position in range(size):
        if is_expired(is_alive, base, number_at(buffers, base, s, position), oldest, is_in_order):
            continue
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            # Mostly keys decide; comparing them here is cheaper than a call.
            key, other = keys[key_at + position], keys[key_at + order[middle]]
            if other > key or (other == key and ranks_first(buffers, window, scorer, s, order[middle], position)):
                low = middle + 1
            else:
                high = middle
        move_within(order, low, n, 1)
        order[low] = position
        n += 1
    return n


@inline_kernel
def set_last(row, pool, keys, s, order, n):
    """Store the last of the best k; `order` has `n` messages."""
    k, start, last = k_of(row[s * ROW + LIMITS]), row[s * ROW + START], NO_LAST
    if n >= k:
        number32 = pool[start_of_numbers32(start, capacity_of(row[s * ROW + LIMITS])) + order[k - 1]]
        last = pack_last(keys[2 * start + order[k - 1]], number32)
    row[s * ROW + LAST] = last


@kernel
def enter_exactly(buffers, window, scorer, s, oldest, is_in_order):
    """The message that the newest pushes out of the best k, by number; NOBODY, or NOT_SHOWN if the newest is not among them."""
    buffers, window, scorer = borrow(buffers), borrow(window), borrow(scorer)
    row, order, base = buffers.row, scorer.order, window.head[BASE]
    drop_expired(buffers, scorer, base, window.is_alive, s, oldest, is_in_order)
    n = order_living(buffers, window, scorer, s, oldest, is_in_order)
    k, new = k_of(row[s * ROW + LIMITS]), row[s * ROW + SIZE] - 1
    for rank in range(k, n):
        if order[rank] == new:
            return NOT_SHOWN
    set_last(row, buffers.pool, buffers.key, s, order, n)
    return number_at(buffers, base, s, order[k]) if n > k else NOBODY


@kernel
def find_last(buffers, s):
    """The position of the last of the best k, which exists."""
    row, pool = buffers.row, buffers.pool
    number32, numbers32_start = (
        number32_in(row[s * ROW + LAST]),
        start_of_numbers32(row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])),
    )
    position = 0
    while pool[numbers32_start + position] != number32:
        position += 1
    return position


@kernel
def free_capacity(buffers, window, scorer, s, oldest, is_in_order):
    """Drop expired messages of a full list, or all but its best; the last one kept is the guard from then on.

    True if truncated.
    """
    buffers, window, scorer = borrow(buffers), borrow(window), borrow(scorer)
    row, pool, keys, order, base = buffers.row, buffers.pool, buffers.key, scorer.order, window.head[BASE]
    capacity, start = capacity_of(row[s * ROW + LIMITS]), row[s * ROW + START]
    numbers32_start = start_of_numbers32(start, capacity)
    drop_expired(buffers, scorer, base, window.is_alive, s, oldest, is_in_order)
    if row[s * ROW + SIZE] < capacity:
        return False
    order_living(buffers, window, scorer, s, oldest, is_in_order)
    n_kept = n_kept_when_full(k_of(row[s * ROW + LIMITS]), capacity)
    guard = order[n_kept - 1]
    row[s * ROW + GUARD_NUMBER] = number_at(buffers, base, s, guard)
    buffers.real[s * ROW + THRESHOLD] = exact_score(buffers, window, scorer, s, guard)
    # They stay in the order in which they arrived.
    order[:n_kept].sort()
    for i in range(n_kept):
        keys[2 * start + i], pool[numbers32_start + i] = keys[2 * start + order[i]], pool[numbers32_start + order[i]]
    row[s * ROW + SIZE] = n_kept
    return True


@kernel
def write_best(buffers, window, scorer, numbers, from_rank, oldest, is_in_order, start, number, score):
    """Write the best k of each of these subscriptions from a rank on, in order; `start` gets where each begins."""
    buffers, window, scorer = borrow(buffers), borrow(window), borrow(scorer)
    base, limits = window.head[BASE], buffers.row[LIMITS::ROW]
    n = 0
    for i in range(numbers.size):
        s = numbers[i]
        start[i] = n
        n_living = order_living(buffers, window, scorer, s, oldest, is_in_order)
        for rank in range(from_rank[i], min(n_living, k_of(limits[s]))):
            number[n] = number_at(buffers, base, s, scorer.order[rank])
            score[n] = exact_score(buffers, window, scorer, s, scorer.order[rank])
            n += 1
    start[numbers.size] = n
