"""Lists above a floor: one message enters, those that are over leave, all are put in anew."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.floor_layouts import (
    FLOOR,
    GUARD_NUMBER,
    GUARD_TIME,
    NO_GUARD,
    NOWHERE,
    ROOMS,
    ROW,
    SIZE,
    START,
    WAITS_AT,
    full_number,
    k_of,
    kept_of,
    lower_half,
    room_of,
)
from nearcast.kernels.ranked_layouts import BASE
from nearcast.kernels.simd import move_within

REFUSED = -1


@inline_kernel
def is_over(is_alive, base, number, oldest, is_in_order):
    """Whether a message is over: all before the oldest living one are, and some behind it if they came late."""
    if number < oldest or is_in_order:
        return number < oldest
    return is_alive[number - base] == 0


@inline_kernel
def is_above_guard(row, real, at, score, time, number):
    """Whether a message ranks before the guard of the subscription whose row begins at `at`."""
    if row[at + GUARD_NUMBER] == NO_GUARD or score > real[at + FLOOR]:
        return True
    if score < real[at + FLOOR]:
        return False
    if time != real[at + GUARD_TIME]:
        return time > real[at + GUARD_TIME]
    return number > row[at + GUARD_NUMBER]


@inline_kernel
def is_older(time, base, low, number):
    """Whether a stored message is older than a living one; what has lost its place is."""
    stored = full_number(low, base)
    if stored < base or time[stored - base] != time[number - base]:
        return stored < base or time[stored - base] < time[number - base]
    return stored < number


@inline_kernel
def rank_for(row, scores, numbers, time, base, s, number, score, is_late):
    """Where a message that has just arrived belongs in a list; REFUSED if it is there already, having been found twice."""
    start, size, low = row[s * ROW + START], row[s * ROW + SIZE], lower_half(number)
    own = scores[start : start + size]
    # All that score more come first; whoever is newest comes before those that score the same.
    rank = 0
    for i in range(own.size):
        rank += 1 if own[i] > score else 0
    equal = rank
    while equal < size and own[equal] == score:
        if numbers[start + equal] == low:
            return REFUSED
        if is_late and not is_older(time, base, numbers[start + equal], number):
            rank = equal + 1
        equal += 1
    return rank


@kernel
def make_room(buffers, window, s, rank, oldest, is_in_order):
    """Clear a full list of what is over, or cut it; returns the rank of the message that is to come, or REFUSED."""
    row = buffers.row
    rooms = row[s * ROW + ROOMS]
    rank -= clear_over(buffers, window, s, k_of(rooms), oldest, is_in_order, rank)
    if row[s * ROW + SIZE] == room_of(rooms):
        cut(buffers, window, s, kept_of(k_of(rooms), room_of(rooms)))
        if rank >= row[s * ROW + SIZE]:
            return REFUSED
    return rank


@inline_kernel
def put_in(row, scores, numbers, s, rank, number, score):
    """Put a message into a list that has room for it."""
    start, size = row[s * ROW + START], row[s * ROW + SIZE]
    move_within(scores, start + rank, start + size, 1)
    move_within(numbers, start + rank, start + size, 1)
    scores[start + rank], numbers[start + rank] = score, lower_half(number)
    row[s * ROW + SIZE] = size + 1


@kernel
def clear_over(buffers, window, s, k, oldest, is_in_order, rank):
    """Take out messages beyond the best k that are over; returns how many of them were before a rank."""
    row, scores, numbers = buffers.row, buffers.score, buffers.number
    is_alive, base = window.is_alive, window.head[BASE]
    start = row[s * ROW + START]
    end = start + row[s * ROW + SIZE]
    kept = min(end, start + k)
    n_before = 0
    for i in range(kept, end):
        if is_over(is_alive, base, full_number(numbers[i], base), oldest, is_in_order):
            n_before += 1 if i < start + rank else 0
        else:
            scores[kept], numbers[kept] = scores[i], numbers[i]
            kept += 1
    row[s * ROW + SIZE] = kept - start
    return n_before


@kernel
def cut(buffers, window, s, n_kept):
    """Keep the first `n_kept` messages, none of which is over; the last of them is the guard from now on."""
    row, at, base = buffers.row, s * ROW, window.head[BASE]
    last = row[at + START] + n_kept - 1
    guard = full_number(buffers.number[last], base)
    row[at + SIZE], row[at + GUARD_NUMBER] = n_kept, guard
    buffers.real[at + FLOOR], buffers.real[at + GUARD_TIME] = buffers.score[last], window.time[guard - base]


@kernel
def fill_many(buffers, window, asked, start, n_filled, is_complete, number, score):
    """Hold the messages found for each subscription, which are in order; unless complete, the last one is the guard."""
    row, real, base = buffers.row, buffers.real, window.head[BASE]
    for i in range(asked.size):
        at = asked[i] * ROW
        first, n = row[at + START], n_filled[i]
        for j in range(n):
            buffers.score[first + j], buffers.number[first + j] = score[start[i] + j], lower_half(number[start[i] + j])
        row[at + SIZE] = n
        real[at + FLOOR], row[at + GUARD_NUMBER] = 0.0, NO_GUARD
        if not is_complete[i]:
            guard = number[start[i] + n - 1]
            real[at + FLOOR], row[at + GUARD_NUMBER] = score[start[i] + n - 1], guard
            real[at + GUARD_TIME] = window.time[guard - base]


@kernel
def empty_rows(buffers, asked, start, rooms):
    """Give new subscriptions their rooms."""
    for i in range(asked.size):
        at = asked[i] * ROW
        buffers.row[at + START], buffers.row[at + ROOMS], buffers.row[at + SIZE] = start[i], rooms[i], 0
        buffers.row[at + WAITS_AT] = NOWHERE
