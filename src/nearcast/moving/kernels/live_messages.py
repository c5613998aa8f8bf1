"""Live messages in slots that are reused: expiry, keywords, tests against a clause, a hash table of ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import number_home
from nearcast.kernels.pools import chunk_capacity, give_back, size_class, take_chunk
from nearcast.kernels.simd import prefetch
from nearcast.kernels.word_table import mix_into_hash, word_key

FREE = -1  # in the table of ids
ABSENT = -1
# Memory is prefetched this many messages ahead.
_AHEAD = 16


class LiveArrays(NamedTuple):
    """Message at slot `m`: a closed box (a point: x0 == x1, y0 == y1), sorted distinct keywords, the time it expires at.

    Its keywords are `keyword[keyword_first[m]:keyword_first[m] + n_keywords[m]]`. The slot of a dead message is reused only
    after every index has dropped the message.
    """

    keyword_first: np.ndarray  # int64[capacity]
    n_keywords: np.ndarray  # int32[capacity]
    keyword: np.ndarray  # int32[]
    x0: np.ndarray  # float64[capacity]
    y0: np.ndarray  # float64[capacity]
    x1: np.ndarray  # float64[capacity]
    y1: np.ndarray  # float64[capacity]
    expires: np.ndarray  # float64[capacity]; inf = never
    is_alive: np.ndarray  # uint8[capacity]
    alive_bits: np.ndarray  # uint32[(capacity + 31) // 32]: the same, 32 to a word


@kernel
def mark_alive(is_alive, alive_bits, slots, alive):
    """Set whether the messages at these slots are alive: 1 or 0."""
    for i in range(slots.size):
        slot = slots[i]
        is_alive[slot] = alive
        bit = np.int64(1) << (slot & 31)
        alive_bits[slot >> 5] = (np.int64(alive_bits[slot >> 5]) & ~bit) | (alive * bit)


@inline_kernel
def is_live(alive_bits, slot):
    """1 if the message at a slot is alive, else 0."""
    return (np.int64(alive_bits[slot >> 5]) >> (slot & 31)) & 1


@kernel
def push_expiry(queue, n_queued, heap, n_heap, expires, slots):
    """Add messages by expiry: to the queue while times do not fall, else to the heap, the first on top; returns both sizes."""
    for i in range(slots.size):
        slot = slots[i]
        if n_queued == 0 or expires[queue[n_queued - 1]] <= expires[slot]:
            queue[n_queued] = slot
            n_queued += 1
            continue
        at = n_heap
        n_heap += 1
        while at > 0:
            above = (at - 1) // 2
            if expires[heap[above]] <= expires[slot]:
                break
            heap[at] = heap[above]
            at = above
        heap[at] = slot
    return n_queued, n_heap


@kernel
def pop_expired(queue, n_expired, n_queued, heap, n, expires, now, out):
    """Write every slot with expires <= now to `out`, from the queue, whose first `n_expired` are gone, and the heap of `n`.

    Returns the new `n_expired`, the new size of the heap, and the number of slots written.
    """
    n_out = 0
    while n_expired < n_queued and expires[queue[n_expired]] <= now:
        out[n_out] = queue[n_expired]
        n_expired += 1
        n_out += 1
    while n > 0 and expires[heap[0]] <= now:
        out[n_out] = heap[0]
        n_out += 1
        n -= 1
        last = heap[n]
        at = 0
        while True:
            below = 2 * at + 1
            if below >= n:
                break
            if below + 1 < n and expires[heap[below + 1]] < expires[heap[below]]:
                below += 1
            if expires[last] <= expires[heap[below]]:
                break
            heap[at] = heap[below]
            at = below
        if n > 0:
            heap[at] = last
    return n_expired, n, n_out


@kernel
def keywords_capacity(set_start):
    """The number of elements that chunks for these sets take."""
    capacity = 0
    for i in range(set_start.size - 1):
        capacity += chunk_capacity(set_start[i + 1] - set_start[i])
    return capacity


@kernel
def reserve_keywords(keyword, free, used, set_start, first):
    """Take a chunk for each of these sets and write where it begins to `first`; `keyword` is long enough."""
    for i in range(first.size):
        n = set_start[i + 1] - set_start[i]
        first[i] = take_chunk(free, keyword, used, 0, chunk_capacity(n)) if n > 0 else 0


@kernel
def copy_keywords(keyword, keyword_first, n_keywords, slots, set_start, member):
    """Copy the keyword sets of messages to `member`, set i from `set_start[i]` on."""
    for i in range(slots.size):
        if i + _AHEAD < slots.size:
            prefetch(keyword, keyword_first[slots[i + _AHEAD]])
        first = keyword_first[slots[i]]
        for at in range(n_keywords[slots[i]]):
            member[set_start[i] + at] = keyword[first + at]


@kernel
def store_keywords(keyword, keyword_first, n_keywords, free, used, set_start, member, slots):
    """Copy the keyword set of message i of a batch into a chunk for `slots[i]`; `keyword` is long enough."""
    for i in range(slots.size):
        slot, n = slots[i], set_start[i + 1] - set_start[i]
        first = take_chunk(free, keyword, used, 0, chunk_capacity(n)) if n > 0 else 0
        # The next free chunk of this size: its first element is the link to the one after it.
        prefetch(keyword, max(0, free[size_class(chunk_capacity(n))]))
        for at in range(n):
            keyword[first + at] = member[set_start[i] + at]
        keyword_first[slot] = first
        n_keywords[slot] = n


@kernel
def free_keywords(keyword, keyword_first, n_keywords, free, slots):
    """Free the keywords of these slots."""
    for i in range(slots.size):
        give_back(free, keyword, keyword_first[slots[i]], chunk_capacity(n_keywords[slots[i]]))
        n_keywords[slots[i]] = 0


@inline_kernel
def has_keywords(keyword, start, stop, member, first, n):
    """Whether `member[first:first + n]` contains every keyword of `keyword[start:stop]`; both are sorted."""
    at, end = first, first + n
    for i in range(start, stop):
        while at < end and member[at] < keyword[i]:
            at += 1
        if at == end or member[at] != keyword[i]:
            return False
    return True


@inline_kernel
def matches_only_new_box(clause, message, clauses, messages, excluded):
    """Whether a live message meets the clause's box but not the box `excluded`, and has the clause's keywords.

    `clauses` are x0, y0, x1, y1, keyword_start, keyword; `messages` x0, y0, x1, y1, is_alive, keyword_first, n_keywords,
    keyword, all as plain arrays; `excluded` is four numbers.
    """
    cx0, cy0, cx1, cy1, keyword_start, keyword = clauses
    mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member = messages
    x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
    if is_alive[message] == 0 or not meets(cx0[clause], cy0[clause], cx1[clause], cy1[clause], x0, y0, x1, y1):
        return False
    if meets(excluded[0], excluded[1], excluded[2], excluded[3], x0, y0, x1, y1):
        return False
    start, stop = keyword_start[clause], keyword_start[clause + 1]
    return has_keywords(keyword, start, stop, member, keyword_first[message], n_keywords[message])


# --- ids of live messages ----------------------------------------------------------------------------------------------


class IdArrays(NamedTuple):
    """The id at slot `m` has `key[m]`: the number itself, or a hash of a text.

    The bytes of a text lie from `text[4 * text_first[m]]` on, `text_length[m]` of them; numbers have none.
    """

    key: np.ndarray  # int64[capacity]
    text_first: np.ndarray  # int64[capacity], in units of four bytes
    text_length: np.ndarray  # int32[capacity]
    text: np.ndarray  # int32[]


@kernel
def text_keys(start, data, key):
    """Fill `key` with the key of each text of a column."""
    for i in range(key.size):
        low, high, _ = word_key(data, start[i], start[i + 1], False)
        key[i] = mix_into_hash(low, high)


@inline_kernel
def is_text(ids, text, slot, data, begin, end):
    """Whether the text at a slot has exactly these bytes."""
    if ids.text_length[slot] != end - begin:
        return False
    first = 4 * ids.text_first[slot]
    for i in range(end - begin):
        if text[first + i] != data[begin + i]:
            return False
    return True


@kernel
def find_ids(table, ids, key, start, data, slots):
    """Fill `slots` with the slot of each id, or ABSENT. `start` and `data` are a column of texts; empty if ids are numbers."""
    keys, text = ids.key, ids.text.view(np.uint8)
    last, has_texts = table.size - 1, start.size > 0
    for i in range(key.size):
        if i + _AHEAD < key.size:
            prefetch(table, number_home(key[i + _AHEAD], table.size))
        at = number_home(key[i], table.size)
        while table[at] != FREE and not (
            keys[table[at]] == key[i] and (not has_texts or is_text(ids, text, table[at], data, start[i], start[i + 1]))
        ):
            at = (at + 1) & last
        slots[i] = table[at]


@kernel
def insert_slots(table, keys, slots):
    """Insert slots whose ids are not in the table, which has room for them."""
    last = table.size - 1
    for i in range(slots.size):
        if i + _AHEAD < slots.size:
            prefetch(table, number_home(keys[slots[i + _AHEAD]], table.size))
        at = number_home(keys[slots[i]], table.size)
        while table[at] != FREE:
            at = (at + 1) & last
        table[at] = slots[i]


@kernel
def remove_slots(table, keys, slots):
    """Remove slots from the table; entries behind them move up so that they are still found."""
    last = table.size - 1
    for i in range(slots.size):
        if i + 2 * _AHEAD < slots.size:
            prefetch(table, number_home(keys[slots[i + 2 * _AHEAD]], table.size))
        if i + _AHEAD < slots.size:
            # The id behind the removed one, which may move up.
            behind = (number_home(keys[slots[i + _AHEAD]], table.size) + 1) & last
            prefetch(keys, max(0, table[behind]))
        hole = number_home(keys[slots[i]], table.size)
        while table[hole] != slots[i]:
            hole = (hole + 1) & last
        following = (hole + 1) & last
        while table[following] != FREE:
            home = number_home(keys[table[following]], table.size)
            if (following - home) & last >= (following - hole) & last:
                table[hole] = table[following]
                hole = following
            following = (following + 1) & last
        table[hole] = FREE


@kernel
def mark_repeated(table, key, start, data, is_repeated):
    """Mark the ids that stand earlier in the column too; `table` is empty and has room for all."""
    last, has_texts = table.size - 1, start.size > 0
    for i in range(key.size):
        at = number_home(key[i], table.size)
        while table[at] != FREE and not (key[table[at]] == key[i] and is_same(has_texts, start, data, table[at], i)):
            at = (at + 1) & last
        is_repeated[i] = table[at] != FREE
        if table[at] == FREE:
            table[at] = i


@inline_kernel
def is_same(has_texts, start, data, a, b):
    """Whether two ids of a column with the same key are equal; numbers always are."""
    if not has_texts:
        return True
    if start[a + 1] - start[a] != start[b + 1] - start[b]:
        return False
    for i in range(start[a + 1] - start[a]):
        if data[start[a] + i] != data[start[b] + i]:
            return False
    return True


@kernel
def store_texts(text, text_first, text_length, start, data, first, slots):
    """Copy the texts of a column into the chunks at `first[i]`."""
    text_bytes = text.view(np.uint8)
    for i in range(slots.size):
        text_first[slots[i]], text_length[slots[i]] = first[i], start[i + 1] - start[i]
        for at in range(start[i + 1] - start[i]):
            text_bytes[4 * first[i] + at] = data[start[i] + at]


@kernel
def copy_texts(text, text_first, text_length, slots, start, out):
    """Write the texts at these slots one after the other, from `start[i]` on."""
    text_bytes = text.view(np.uint8)
    for i in range(slots.size):
        first = 4 * text_first[slots[i]]
        for at in range(text_length[slots[i]]):
            out[start[i] + at] = text_bytes[first + at]
