"""Let subscriptions wait at messages, in chunks of a line of memory."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.floor_layouts import (
    CHUNK,
    COUNT,
    FREE,
    LOWER_HALF,
    MEMBERS,
    MOST_MEMBERS,
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
    k_of,
)
from nearcast.kernels.ranked_layouts import BASE


@inline_kernel
def has_chunk(head, chunk):
    """Whether one more chunk can be given out."""
    return head[FREE] != NO_CHUNK or (head[USED] + 1) * CHUNK <= chunk.size


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
    return taken


@inline_kernel
def oldest_shown(row, numbers, time, base, s, is_in_order):
    """The oldest of the best k messages of a subscription, NOWHERE without any; all of them are alive.

    `is_in_order`: no message of the window came after a newer one.
    """
    start = row[s * ROW + START]
    n_shown = min(k_of(row[s * ROW + ROOMS]), row[s * ROW + SIZE])
    if n_shown == 0:
        return NOWHERE
    if is_in_order:
        nearest = 1 << 62
        own = numbers[start : start + n_shown]
        for i in range(own.size):
            nearest = min(nearest, (int(own[i]) - base) & LOWER_HALF)
        return base + nearest
    least = full_number(numbers[start], base)
    for at in range(start, start + n_shown):
        number = full_number(numbers[at], base)
        if time[number - base] < time[least - base] or (time[number - base] == time[least - base] and number < least):
            least = number
    return least


@kernel
def wait_for_oldest(ends, buffers, window, asked, first, is_in_order):
    """Let these subscriptions wait at the oldest of their best messages, from position `first` on; returns where it stopped."""
    row, numbers, time, base = buffers.row, buffers.number, window.time, window.head[BASE]
    head, first_chunk, chunk = ends
    for i in range(first, asked.size):
        if not has_chunk(head, chunk):
            return i
        oldest = oldest_shown(row, numbers, time, base, asked[i], is_in_order)
        if oldest == NOWHERE:
            row[asked[i] * ROW + WAITS_AT] = NOWHERE
        elif row[asked[i] * ROW + WAITS_AT] != oldest:
            wait_at(head, first_chunk, chunk, row, base, asked[i], oldest)
    return asked.size
