"""The exact order of a list, where keys do not tell: scores are computed again, then the newer message comes first."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import move_within
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.list_layout import (
    FLOOR,
    GUARD_NUMBER,
    LAST,
    NO_LAST,
    ROOMS,
    ROW,
    SIZE,
    START,
    full_number,
    held_of,
    k_of,
    kept_of,
    low_in,
    lows_at,
    pack_last,
    room_of,
)
from nearcast.ranked.kernels.lists import clear_over, is_over
from nearcast.ranked.kernels.scoring import score_at

_NOT_SCORED = -1.0
NOBODY, NOT_SHOWN = -1, -2


@inline_kernel
def number_at(buffers, base, s, position):
    row = buffers.row
    return full_number(buffers.pool[lows_at(row[s * ROW + START], room_of(row[s * ROW + ROOMS])) + position], base)


@kernel
def exact_score(buffers, window, judge, s, position):
    """The score of the message at a position of a list, as it was when it came."""
    buffers, window, judge = borrow(buffers), borrow(window), borrow(judge)
    score = judge.score
    if score[position] == _NOT_SCORED:
        place = number_at(buffers, window.head[BASE], s, position) - window.head[BASE]
        score[position] = score_at(judge.ground, judge.subscribers, window, s, place, judge.common)
    return score[position]


@kernel
def ranks_first(buffers, window, judge, s, a, b):
    """Whether the message at position `a` of a list ranks before the one at `b`."""
    buffers, window, judge = borrow(buffers), borrow(window), borrow(judge)
    key_at, base = 2 * buffers.row[s * ROW + START], window.head[BASE]
    if buffers.key[key_at + a] != buffers.key[key_at + b]:
        return buffers.key[key_at + a] > buffers.key[key_at + b]
    score_a, score_b = exact_score(buffers, window, judge, s, a), exact_score(buffers, window, judge, s, b)
    if score_a != score_b:
        return score_a > score_b
    number_a, number_b = number_at(buffers, base, s, a), number_at(buffers, base, s, b)
    time_a, time_b = window.time[number_a - base], window.time[number_b - base]
    if time_a != time_b:
        return time_a > time_b
    return number_a > number_b


@inline_kernel
def start_scoring(judge, size):
    """Nothing of a list is scored yet."""
    for position in range(size):
        judge.score[position] = _NOT_SCORED


@kernel
def order_living(buffers, window, judge, s, oldest, is_in_order):
    """Write the positions of the living messages of a list, best first; returns how many there are."""
    buffers, window, judge = borrow(buffers), borrow(window), borrow(judge)
    order, base, is_alive = judge.order, window.head[BASE], window.is_alive
    size = held_of(buffers.row[s * ROW + SIZE], room_of(buffers.row[s * ROW + ROOMS]))
    keys, key_at = buffers.key, 2 * buffers.row[s * ROW + START]
    start_scoring(judge, size)
    n = 0
    for position in range(size):
        if is_over(is_alive, base, number_at(buffers, base, s, position), oldest, is_in_order):
            continue
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            # Most keys tell; a call costs more than to look at them.
            key, other = keys[key_at + position], keys[key_at + order[middle]]
            if other > key or (other == key and ranks_first(buffers, window, judge, s, order[middle], position)):
                low = middle + 1
            else:
                high = middle
        move_within(order, low, n, 1)
        order[low] = position
        n += 1
    return n


@inline_kernel
def set_last(row, pool, keys, s, order, n):
    """Take note of the last of the best k, of `n` in order."""
    k, start, last = k_of(row[s * ROW + ROOMS]), row[s * ROW + START], NO_LAST
    if n >= k:
        low = pool[lows_at(start, room_of(row[s * ROW + ROOMS])) + order[k - 1]]
        last = pack_last(keys[2 * start + order[k - 1]], low)
    row[s * ROW + LAST] = last


@kernel
def enter_exactly(buffers, window, judge, s, oldest, is_in_order):
    """Whom the message put in last pushes out of the best k: its number, NOBODY, or NOT_SHOWN if it is not among them."""
    buffers, window, judge = borrow(buffers), borrow(window), borrow(judge)
    row, order, base = buffers.row, judge.order, window.head[BASE]
    clear_over(buffers, judge, base, window.is_alive, s, oldest, is_in_order)
    n = order_living(buffers, window, judge, s, oldest, is_in_order)
    k, new = k_of(row[s * ROW + ROOMS]), row[s * ROW + SIZE] - 1
    for rank in range(k, n):
        if order[rank] == new:
            return NOT_SHOWN
    set_last(row, buffers.pool, buffers.key, s, order, n)
    return number_at(buffers, base, s, order[k]) if n > k else NOBODY


@kernel
def find_last(buffers, s):
    """The position of the last of the best k; there is one."""
    row, pool = buffers.row, buffers.pool
    low, lows = low_in(row[s * ROW + LAST]), lows_at(row[s * ROW + START], room_of(row[s * ROW + ROOMS]))
    position = 0
    while pool[lows + position] != low:
        position += 1
    return position


@kernel
def make_room(buffers, window, judge, s, oldest, is_in_order):
    """Clear a full list of what is over, or keep its best, of which the last is the guard from now on; True if it was cut."""
    buffers, window, judge = borrow(buffers), borrow(window), borrow(judge)
    row, pool, keys, order, base = buffers.row, buffers.pool, buffers.key, judge.order, window.head[BASE]
    room, start = room_of(row[s * ROW + ROOMS]), row[s * ROW + START]
    lows = lows_at(start, room)
    clear_over(buffers, judge, base, window.is_alive, s, oldest, is_in_order)
    if row[s * ROW + SIZE] < room:
        return False
    order_living(buffers, window, judge, s, oldest, is_in_order)
    n_kept = kept_of(k_of(row[s * ROW + ROOMS]), room)
    guard = order[n_kept - 1]
    row[s * ROW + GUARD_NUMBER] = number_at(buffers, base, s, guard)
    buffers.real[s * ROW + FLOOR] = exact_score(buffers, window, judge, s, guard)
    # They stay in the order they came in.
    order[:n_kept].sort()
    for i in range(n_kept):
        keys[2 * start + i], pool[lows + i] = keys[2 * start + order[i]], pool[lows + order[i]]
    row[s * ROW + SIZE] = n_kept
    return True


@kernel
def write_shown(buffers, window, judge, asked, from_rank, oldest, is_in_order, start, number, score):
    """Write the best k of each of these subscriptions from a rank on, in order; `start` gets where each begins."""
    buffers, window, judge = borrow(buffers), borrow(window), borrow(judge)
    base, rooms = window.head[BASE], buffers.row[ROOMS::ROW]
    n = 0
    for i in range(asked.size):
        s = asked[i]
        start[i] = n
        n_living = order_living(buffers, window, judge, s, oldest, is_in_order)
        for rank in range(from_rank[i], min(n_living, k_of(rooms[s]))):
            number[n] = number_at(buffers, base, s, judge.order[rank])
            score[n] = exact_score(buffers, window, judge, s, judge.order[rank])
            n += 1
    start[asked.size] = n
