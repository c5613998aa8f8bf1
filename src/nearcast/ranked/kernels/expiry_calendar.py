"""Schedule subscriptions at the messages whose expiry concerns them, in chunks of a line of memory."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.list_layout import (
    CHUNK,
    COUNT,
    FREE,
    LAST,
    LIMITS,
    MEMBERS,
    MOST_MEMBERS,
    N_FREE,
    NEXT,
    NO_CHUNK,
    NOWHERE,
    ROW,
    SCHEDULED_AT,
    SIZE,
    START,
    USED,
    capacity_of,
    full_number,
    held_of,
    key_in,
    number32_of,
    start_of_numbers32,
)
from nearcast.ranked.kernels.lists import is_expired
from nearcast.ranked.kernels.simd_keys import high_lanes, least_ahead, living
from nearcast.ranked.kernels.simd_keys_plain import GROUP, NOTHING_ABOVE
from nearcast.ranked.kernels.window import is_newer


@inline_kernel
def has_chunks(head, chunk, n):
    """Whether `n` more chunks are free."""
    return (head[USED] - head[N_FREE] + n) * CHUNK <= chunk.size


@inline_kernel
def schedule(head, first, chunk, row, base, s, number):
    """Schedule a subscription at a message, instead of where it was scheduled before. There is a chunk for it."""
    row[s * ROW + SCHEDULED_AT] = number
    position = number - base
    at = int(first[position])
    if at == NO_CHUNK or chunk[at * CHUNK + COUNT] == MOST_MEMBERS:
        new = head[FREE]
        if new != NO_CHUNK:
            head[FREE] = chunk[new * CHUNK + NEXT]
            head[N_FREE] -= 1
        else:
            new = head[USED]
            head[USED] += 1
        chunk[new * CHUNK + NEXT], chunk[new * CHUNK + COUNT] = at, 0
        first[position] = new
        at = int(new)
    count = int(chunk[at * CHUNK + COUNT])
    chunk[at * CHUNK + MEMBERS + count] = s
    chunk[at * CHUNK + COUNT] = count + 1


@inline_kernel
def pop_scheduled(head, first, chunk, position):
    """Take one subscription out of those that are, or were, scheduled at a position. There is one."""
    at = int(first[position])
    count = int(chunk[at * CHUNK + COUNT]) - 1
    s = int(chunk[at * CHUNK + MEMBERS + count])
    chunk[at * CHUNK + COUNT] = count
    if count == 0:
        first[position] = chunk[at * CHUNK + NEXT]
        chunk[at * CHUNK + NEXT] = head[FREE]
        head[FREE] = at
        head[N_FREE] += 1
    return s


@inline_kernel
def schedule_deferred(head, first, chunk, row, base, deferred, n):
    """Schedule the deferred subscriptions. There are chunks for them."""
    for i in range(n):
        at = int(first[deferred[2 * i + 1] - base])
        prefetch(chunk, max(at, 0) * CHUNK)
    for i in range(n):
        schedule(head, first, chunk, row, base, deferred[2 * i], deferred[2 * i + 1])


@inline_kernel
def oldest_shown(row, pool, keys, time, is_alive, base, s, oldest, is_in_order):
    """The oldest of the best k messages of a subscription; NOWHERE if it has none.

    A message with the same key as the last of the best k may be returned although it is not among them. Then the subscription
    is looked at once in vain.
    """
    start, capacity = row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])
    size = held_of(row[s * ROW + SIZE], capacity)
    last_key, numbers32_start = max(0, key_in(row[s * ROW + LAST])), start_of_numbers32(start, capacity)
    if is_in_order:
        ahead, oldest32 = NOTHING_ABOVE, number32_of(oldest)
        for i in range(0, size, GROUP):
            n = min(GROUP, size - i)
            shown = living(pool, numbers32_start + i, n, oldest32) & high_lanes(keys, 2 * start + i, n, last_key)
            ahead = min(ahead, least_ahead(pool, numbers32_start + i, n, oldest32, shown))
        return oldest + ahead if ahead < NOTHING_ABOVE else NOWHERE
    earliest = NOWHERE
    for at in range(size):
        number = full_number(pool[numbers32_start + at], base)
        if keys[2 * start + at] < last_key or is_expired(is_alive, base, number, oldest, False):
            continue
        if earliest == NOWHERE or not is_newer(time, base, number, earliest):
            earliest = number
    return earliest


@kernel
def schedule_at_oldest(calendar, buffers, window, numbers, first, oldest, is_in_order):
    """Schedule `numbers` from position `first` on at the oldest of their best messages; returns where it stopped."""
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    time, is_alive, base = window.time, window.is_alive, window.head[BASE]
    head, first_chunk, chunk = calendar
    for i in range(first, numbers.size):
        if not has_chunks(head, chunk, 1):
            return i
        number = oldest_shown(row, pool, keys, time, is_alive, base, numbers[i], oldest, is_in_order)
        if number == NOWHERE:
            row[numbers[i] * ROW + SCHEDULED_AT] = NOWHERE
        elif row[numbers[i] * ROW + SCHEDULED_AT] != number:
            schedule(head, first_chunk, chunk, row, base, numbers[i], number)
    return numbers.size
