"""Result lists: which of their messages live, adding one, and filling a list from the window."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.ranked.kernels.list_layout import (
    GUARD_NUMBER,
    LAST,
    LIMITS,
    NO_GUARD,
    NO_LAST,
    NOWHERE,
    ROW,
    SCHEDULED_AT,
    SIZE,
    START,
    THRESHOLD,
    base_below,
    capacity_of,
    full_number,
    held_of,
    k_of,
    key_of,
    next_of,
    number32_of,
    pack_last,
    pack_limits,
    start_of_numbers32,
)


@inline_kernel
def is_expired(is_alive, base, number, oldest, is_in_order):
    """Whether a message has expired: all before the oldest living one have, and some after it if they came late."""
    if number < oldest or is_in_order:
        return number < oldest
    return is_alive[number - base] == 0


@inline_kernel
def is_above_guard(row, real, time, base, at, score, number):
    """Whether a living message ranks before the guard of the subscription whose row begins at `at`."""
    guard = row[at + GUARD_NUMBER]
    if guard == NO_GUARD or score > real[at + THRESHOLD]:
        return True
    # A guard that was dropped from the window is older than all living messages.
    if score < real[at + THRESHOLD] or guard < base:
        return score == real[at + THRESHOLD]
    if time[number - base] != time[guard - base]:
        return time[number - base] > time[guard - base]
    return number > guard


@inline_kernel
def mark_expired(pool, keys, start, capacity, n, is_alive, base, oldest, marked_key, marked_number32):
    """Copy a list; expired messages get a number before the oldest."""
    numbers32_start = start_of_numbers32(start, capacity)
    for i in range(n):
        marked_key[i], marked_number32[i] = keys[2 * start + i], pool[numbers32_start + i]
        if is_expired(is_alive, base, full_number(pool[numbers32_start + i], base), oldest, False):
            marked_number32[i] = number32_of(oldest - 1)


@kernel
def drop_expired(buffers, scorer, base, is_alive, s, oldest, is_in_order):
    """Remove expired messages; the others stay in the order of arrival, from the first position on."""
    buffers, scorer = borrow(buffers), borrow(scorer)
    row, pool, keys, scratch_key, scratch_number32 = (
        buffers.row,
        buffers.pool,
        buffers.key,
        scorer.marked_key,
        scorer.marked_number32,
    )
    start, capacity = row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])
    numbers32_start = start_of_numbers32(start, capacity)
    size = row[s * ROW + SIZE]
    first = next_of(size, capacity) if size >= capacity else 0
    n_kept = 0
    for i in range(held_of(size, capacity)):
        at = first + i if first + i < capacity else first + i - capacity
        if not is_expired(is_alive, base, full_number(pool[numbers32_start + at], base), oldest, is_in_order):
            scratch_key[n_kept], scratch_number32[n_kept] = keys[2 * start + at], pool[numbers32_start + at]
            n_kept += 1
    for i in range(n_kept):
        keys[2 * start + i], pool[numbers32_start + i] = scratch_key[i], scratch_number32[i]
    row[s * ROW + SIZE] = n_kept


@inline_kernel
def put_in(row, pool, keys, s, number, key):
    """Add a message after the others, or in place of an expired one."""
    start, size, capacity = row[s * ROW + START], row[s * ROW + SIZE], capacity_of(row[s * ROW + LIMITS])
    at = next_of(size, capacity)
    keys[2 * start + at], pool[start_of_numbers32(start, capacity) + at] = key, number32_of(number)
    row[s * ROW + SIZE] = size + 1 if size + 1 < 2 * capacity else capacity


@inline_kernel
def newest_in(row, pool, s):
    """The lower half of the number of the message added last; there is one."""
    size, capacity = row[s * ROW + SIZE], capacity_of(row[s * ROW + LIMITS])
    position = next_of(size, capacity)
    return pool[start_of_numbers32(row[s * ROW + START], capacity) + (position if position > 0 else capacity) - 1]


@inline_kernel
def is_full(row, pool, is_alive, base, s, oldest, is_in_order):
    """Whether there is no space for a message, not even that of an expired one."""
    size, capacity = row[s * ROW + SIZE], capacity_of(row[s * ROW + LIMITS])
    if size < capacity:
        return False
    number32 = pool[start_of_numbers32(row[s * ROW + START], capacity) + next_of(size, capacity)]
    return not is_expired(is_alive, base, full_number(number32, base), oldest, is_in_order)


@kernel
def fill_many(buffers, numbers, start, n_filled, is_complete, number, score):
    """Fill lists with the messages found, which are in order. Unless that is all there are, the last one is the guard."""
    row, real, pool, keys = buffers.row, buffers.real, buffers.pool, buffers.key
    for i in range(numbers.size):
        at = numbers[i] * ROW
        first, n, capacity, k = row[at + START], n_filled[i], capacity_of(row[at + LIMITS]), k_of(row[at + LIMITS])
        real[at + THRESHOLD], row[at + GUARD_NUMBER] = 0.0, NO_GUARD
        if not is_complete[i]:
            real[at + THRESHOLD], row[at + GUARD_NUMBER] = score[start[i] + n - 1], number[start[i] + n - 1]
        limits = pack_limits(k, capacity, base_below(real[at + THRESHOLD]))
        numbers32_start = start_of_numbers32(first, capacity)
        for j in range(n):
            keys[2 * first + j] = key_of(score[start[i] + j], limits)
            pool[numbers32_start + j] = number32_of(number[start[i] + j])
        row[at + LIMITS], row[at + SIZE] = limits, n
        row[at + LAST] = pack_last(keys[2 * first + k - 1], pool[numbers32_start + k - 1]) if n >= k else NO_LAST


@kernel
def empty_rows(buffers, numbers, start, limits):
    """Give empty lists to new subscriptions."""
    for i in range(numbers.size):
        at = numbers[i] * ROW
        buffers.row[at + START], buffers.row[at + LIMITS], buffers.row[at + SIZE] = start[i], limits[i], 0
        buffers.row[at + SCHEDULED_AT], buffers.row[at + LAST] = NOWHERE, NO_LAST
