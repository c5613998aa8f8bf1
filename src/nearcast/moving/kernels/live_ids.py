"""A hash table from the ids of living messages to their slots, where ids come and go: numbers, or texts by key and bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import number_home
from nearcast.kernels.simd import prefetch
from nearcast.kernels.word_table import mix_into_hash, word_key

FREE = -1
ABSENT = -1
_AHEAD = 16


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
def find_ids(table, ids, key, start, data, found):
    """Fill `found` with the slot of each id, or ABSENT. Texts are those of a column; numbers have an empty `start`."""
    own, text = ids.key, ids.text.view(np.uint8)
    last, has_texts = table.size - 1, start.size > 0
    for i in range(key.size):
        if i + _AHEAD < key.size:
            prefetch(table, number_home(key[i + _AHEAD], table.size))
        at = number_home(key[i], table.size)
        while table[at] != FREE and not (
            own[table[at]] == key[i] and (not has_texts or is_text(ids, text, table[at], data, start[i], start[i + 1]))
        ):
            at = (at + 1) & last
        found[i] = table[at]


@kernel
def enter_slots(table, own, slots):
    """Enter slots whose ids are not in the table; it has room."""
    last = table.size - 1
    for i in range(slots.size):
        if i + _AHEAD < slots.size:
            prefetch(table, number_home(own[slots[i + _AHEAD]], table.size))
        at = number_home(own[slots[i]], table.size)
        while table[at] != FREE:
            at = (at + 1) & last
        table[at] = slots[i]


@kernel
def drop_slots(table, own, slots):
    """Take slots out of the table; what would not be found any more moves up."""
    last = table.size - 1
    for i in range(slots.size):
        if i + 2 * _AHEAD < slots.size:
            prefetch(table, number_home(own[slots[i + 2 * _AHEAD]], table.size))
        if i + _AHEAD < slots.size:
            # The id behind the one to go, which may move up.
            behind = (number_home(own[slots[i + _AHEAD]], table.size) + 1) & last
            prefetch(own, max(0, table[behind]))
        hole = number_home(own[slots[i]], table.size)
        while table[hole] != slots[i]:
            hole = (hole + 1) & last
        following = (hole + 1) & last
        while table[following] != FREE:
            home = number_home(own[table[following]], table.size)
            if (following - home) & last >= (following - hole) & last:
                table[hole] = table[following]
                hole = following
            following = (following + 1) & last
        table[hole] = FREE


@kernel
def mark_repeated(table, key, start, data, is_repeated):
    """Mark the ids of a column that came before in it; `table` is empty and has room for all."""
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
    """Whether two texts of a column are the same; numbers with one key are."""
    if not has_texts:
        return True
    if start[a + 1] - start[a] != start[b + 1] - start[b]:
        return False
    for i in range(start[a + 1] - start[a]):
        if data[start[a] + i] != data[start[b] + i]:
            return False
    return True


@kernel
def keep_texts(text, text_first, text_length, start, data, first, slots):
    """Copy the texts of a column to the chunks from `first[i]` on."""
    own = text.view(np.uint8)
    for i in range(slots.size):
        text_first[slots[i]], text_length[slots[i]] = first[i], start[i + 1] - start[i]
        for at in range(start[i + 1] - start[i]):
            own[4 * first[i] + at] = data[start[i] + at]


@kernel
def copy_texts(text, text_first, text_length, slots, start, out):
    """Write the texts at these slots one after the other, from `start[i]` on."""
    own = text.view(np.uint8)
    for i in range(slots.size):
        first = 4 * text_first[slots[i]]
        for at in range(text_length[slots[i]]):
            out[start[i] + at] = own[first + at]
