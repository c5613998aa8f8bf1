"""Let subscriptions wait at messages, in chunks of a line of memory."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.list_layout import (
    CHUNK,
    COUNT,
    FREE,
    LAST,
    MEMBERS,
    MOST_MEMBERS,
    N_FREE,
    NEXT,
    NO_CHUNK,
    NOWHERE,
    ROOMS,
    ROW,
    SIZE,
    START,
    USED,
    WAITS_AT,
    full_number,
    held_of,
    key_in,
    lower_half,
    lows_at,
    room_of,
)
from nearcast.ranked.kernels.lists import is_over
from nearcast.ranked.kernels.simd_keys import high_lanes, least_ahead, living
from nearcast.ranked.kernels.simd_keys_plain import GROUP, NOTHING_ABOVE
from nearcast.ranked.kernels.window import is_newer


@inline_kernel
def has_chunks(head, chunk, n):
    """Whether so many more chunks can be given out."""
    return (head[USED] - head[N_FREE] + n) * CHUNK <= chunk.size


@inline_kernel
def wait_at(head, first, chunk, row, base, s, number):
    """Let a subscription wait at a message, and no longer where it did; there is a chunk for it."""
    row[s * ROW + WAITS_AT] = number
    place = number - base
    at = int(first[place])
    if at == NO_CHUNK or chunk[at * CHUNK + COUNT] == MOST_MEMBERS:
        new = head[FREE]
        if new != NO_CHUNK:
            head[FREE] = chunk[new * CHUNK + NEXT]
            head[N_FREE] -= 1
        else:
            new = head[USED]
            head[USED] += 1
        chunk[new * CHUNK + NEXT], chunk[new * CHUNK + COUNT] = at, 0
        first[place] = new
        at = int(new)
    count = int(chunk[at * CHUNK + COUNT])
    chunk[at * CHUNK + MEMBERS + count] = s
    chunk[at * CHUNK + COUNT] = count + 1


@inline_kernel
def take_waiting(head, first, chunk, place):
    """Take one subscription out of those that wait at a place, or have waited; there is one."""
    at = int(first[place])
    count = int(chunk[at * CHUNK + COUNT]) - 1
    taken = int(chunk[at * CHUNK + MEMBERS + count])
    chunk[at * CHUNK + COUNT] = count
    if count == 0:
        first[place] = chunk[at * CHUNK + NEXT]
        chunk[at * CHUNK + NEXT] = head[FREE]
        head[FREE] = at
        head[N_FREE] += 1
    return taken


@inline_kernel
def let_wait(head, first, chunk, row, base, put_off, n):
    """Let subscriptions wait that were put off; there are chunks for them."""
    for i in range(n):
        at = int(first[put_off[2 * i + 1] - base])
        prefetch(chunk, max(at, 0) * CHUNK)
    for i in range(n):
        wait_at(head, first, chunk, row, base, put_off[2 * i], put_off[2 * i + 1])


@inline_kernel
def oldest_shown(row, pool, keys, time, is_alive, base, s, oldest, is_in_order):
    """The oldest of the best k messages of a subscription, NOWHERE without any.

    Of those that have the same key as the last of them it may be one that is not among them; then it is waited at in vain.
    """
    start, room = row[s * ROW + START], room_of(row[s * ROW + ROOMS])
    size = held_of(row[s * ROW + SIZE], room)
    border, lows = max(0, key_in(row[s * ROW + LAST])), lows_at(start, room)
    if is_in_order:
        ahead, low = NOTHING_ABOVE, lower_half(oldest)
        for i in range(0, size, GROUP):
            n = min(GROUP, size - i)
            shown = living(pool, lows + i, n, low) & high_lanes(keys, 2 * start + i, n, border)
            ahead = min(ahead, least_ahead(pool, lows + i, n, low, shown))
        return oldest + ahead if ahead < NOTHING_ABOVE else NOWHERE
    chosen = NOWHERE
    for at in range(size):
        number = full_number(pool[lows + at], base)
        if keys[2 * start + at] < border or is_over(is_alive, base, number, oldest, False):
            continue
        if chosen == NOWHERE or not is_newer(time, base, number, chosen):
            chosen = number
    return chosen


@kernel
def wait_for_oldest(ends, buffers, window, asked, first, oldest, is_in_order):
    """Let these subscriptions wait at the oldest of their best messages, from position `first` on; returns where it stopped."""
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    time, is_alive, base = window.time, window.is_alive, window.head[BASE]
    head, first_chunk, chunk = ends
    for i in range(first, asked.size):
        if not has_chunks(head, chunk, 1):
            return i
        number = oldest_shown(row, pool, keys, time, is_alive, base, asked[i], oldest, is_in_order)
        if number == NOWHERE:
            row[asked[i] * ROW + WAITS_AT] = NOWHERE
        elif row[asked[i] * ROW + WAITS_AT] != number:
            wait_at(head, first_chunk, chunk, row, base, asked[i], number)
    return asked.size
