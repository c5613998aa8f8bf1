"""Lists above a floor: which of their messages live, room for one more, and all put in anew."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.ranked.kernels.list_layout import (
    FLOOR,
    GUARD_NUMBER,
    LAST,
    NO_GUARD,
    NO_LAST,
    NOWHERE,
    ROOMS,
    ROW,
    SIZE,
    START,
    WAITS_AT,
    base_below,
    full_number,
    held_of,
    k_of,
    key_of,
    lower_half,
    lows_at,
    next_of,
    pack_last,
    pack_rooms,
    room_of,
)


@inline_kernel
def is_over(is_alive, base, number, oldest, is_in_order):
    """Whether a message is over: all before the oldest living one are, and some behind it if they came late."""
    if number < oldest or is_in_order:
        return number < oldest
    return is_alive[number - base] == 0


@inline_kernel
def is_above_guard(row, real, time, base, at, score, number):
    """Whether a living message ranks before the guard of the subscription whose row begins at `at`."""
    guard = row[at + GUARD_NUMBER]
    if guard == NO_GUARD or score > real[at + FLOOR]:
        return True
    # What has lost its place is older than all that live.
    if score < real[at + FLOOR] or guard < base:
        return score == real[at + FLOOR]
    if time[number - base] != time[guard - base]:
        return time[number - base] > time[guard - base]
    return number > guard


@inline_kernel
def mark_over(pool, keys, start, room, n, is_alive, base, oldest, marked_key, marked_low):
    """Copy a list; messages that are over get a number before the oldest."""
    lows = lows_at(start, room)
    for i in range(n):
        marked_key[i], marked_low[i] = keys[2 * start + i], pool[lows + i]
        if is_over(is_alive, base, full_number(pool[lows + i], base), oldest, False):
            marked_low[i] = lower_half(oldest - 1)


@kernel
def clear_over(buffers, judge, base, is_alive, s, oldest, is_in_order):
    """Take out the messages that are over; the others are in the order they came in, from the first place on."""
    buffers, judge = borrow(buffers), borrow(judge)
    row, pool, keys, scratch_key, scratch_low = buffers.row, buffers.pool, buffers.key, judge.marked_key, judge.marked_low
    start, room = row[s * ROW + START], room_of(row[s * ROW + ROOMS])
    lows = lows_at(start, room)
    size = row[s * ROW + SIZE]
    first = next_of(size, room) if size >= room else 0
    kept = 0
    for i in range(held_of(size, room)):
        at = first + i if first + i < room else first + i - room
        if not is_over(is_alive, base, full_number(pool[lows + at], base), oldest, is_in_order):
            scratch_key[kept], scratch_low[kept] = keys[2 * start + at], pool[lows + at]
            kept += 1
    for i in range(kept):
        keys[2 * start + i], pool[lows + i] = scratch_key[i], scratch_low[i]
    row[s * ROW + SIZE] = kept


@inline_kernel
def put_in(row, pool, keys, s, number, key):
    """Put a message behind the others, or where one is that is over."""
    start, size, room = row[s * ROW + START], row[s * ROW + SIZE], room_of(row[s * ROW + ROOMS])
    at = next_of(size, room)
    keys[2 * start + at], pool[lows_at(start, room) + at] = key, lower_half(number)
    row[s * ROW + SIZE] = size + 1 if size + 1 < 2 * room else room


@inline_kernel
def newest_in(row, pool, s):
    """The number, as it is stored, of the message that was put in last; there is one."""
    size, room = row[s * ROW + SIZE], room_of(row[s * ROW + ROOMS])
    place = next_of(size, room)
    return pool[lows_at(row[s * ROW + START], room) + (place if place > 0 else room) - 1]


@inline_kernel
def is_full(row, pool, is_alive, base, s, oldest, is_in_order):
    """Whether there is no place for a message, not even one whose message is over."""
    size, room = row[s * ROW + SIZE], room_of(row[s * ROW + ROOMS])
    if size < room:
        return False
    low = pool[lows_at(row[s * ROW + START], room) + next_of(size, room)]
    return not is_over(is_alive, base, full_number(low, base), oldest, is_in_order)


@kernel
def fill_many(buffers, asked, start, n_filled, is_complete, number, score):
    """Hold the messages found for each subscription, which are in order; unless complete, the last one is the guard."""
    row, real, pool, keys = buffers.row, buffers.real, buffers.pool, buffers.key
    for i in range(asked.size):
        at = asked[i] * ROW
        first, n, room, k = row[at + START], n_filled[i], room_of(row[at + ROOMS]), k_of(row[at + ROOMS])
        real[at + FLOOR], row[at + GUARD_NUMBER] = 0.0, NO_GUARD
        if not is_complete[i]:
            real[at + FLOOR], row[at + GUARD_NUMBER] = score[start[i] + n - 1], number[start[i] + n - 1]
        rooms = pack_rooms(k, room, base_below(real[at + FLOOR]))
        lows = lows_at(first, room)
        for j in range(n):
            keys[2 * first + j] = key_of(score[start[i] + j], rooms)
            pool[lows + j] = lower_half(number[start[i] + j])
        row[at + ROOMS], row[at + SIZE] = rooms, n
        row[at + LAST] = pack_last(keys[2 * first + k - 1], pool[lows + k - 1]) if n >= k else NO_LAST


@kernel
def empty_rows(buffers, asked, start, rooms):
    """Give new subscriptions their rooms."""
    for i in range(asked.size):
        at = asked[i] * ROW
        buffers.row[at + START], buffers.row[at + ROOMS], buffers.row[at + SIZE] = start[i], rooms[i], 0
        buffers.row[at + WAITS_AT], buffers.row[at + LAST] = NOWHERE, NO_LAST
