"""Hash tables in flat arrays, probed slot by slot: from a key to a value, and from a number to a dense id.

The table from keys to values is one int64 array: slot `at` holds its key at `2 * at` and its value behind it, and a free slot
has key 0. So nearly every look-up touches one cache line. Hot loops compute `home` first, prefetch that slot, and probe later.

The table from numbers to ids gives each new number the next id. `columns/id_tables.py` owns such tables, and those of words
(`word_table.py`), whose slots hold the word itself where it is short.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import multiply, prefetch, shift_right

FREE = 0  # key of a free slot
LINE_SLOTS = 4  # slots in a cache line
ABSENT = -1
EMPTY_SLOT = -1

_BLOCK = 64
_AHEAD = 16
_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, as signed
_MIX = 0x2545F4914F6CDD1D
_LARGEST = (1 << 63) - 1


@inline_kernel
def mixed_key(key):
    """A key as 64 bits without a pattern."""
    mixed = multiply(key, np.int64(_GOLDEN))
    return multiply(mixed ^ shift_right(mixed, np.int64(29)), np.int64(_MIX))


@inline_kernel
def home(key, n_slots):
    """Where the search for a key begins: the first slot of a cache line, because the other slots of the line come with it."""
    # The upper half of the hash as a fraction of all lines: their number need not be a power of two.
    return ((shift_right(mixed_key(key), np.int64(33)) * (n_slots // LINE_SLOTS)) >> 31) * LINE_SLOTS


@inline_kernel
def find(slot, key, at):
    """The slot that holds the key, or the free slot where it belongs; the search begins at slot `at`, the home of the key."""
    n_slots = slot.size // 2
    while slot[2 * at] != FREE and slot[2 * at] != key:
        at = at + 1 if at + 1 < n_slots else 0
    return at


@inline_kernel
def find_value(slot, key, at, absent):
    """The value of a key, or `absent`; the search begins at slot `at`, the home of the key."""
    n_slots = slot.size // 2
    # Most searches end at the first slot with the key.
    while slot[2 * at] != key:
        if slot[2 * at] == FREE:
            return np.int64(absent)
        at = at + 1 if at + 1 < n_slots else 0
    return slot[2 * at + 1]


@inline_kernel
def insert(slot, key, at):
    """As `find`, but a new key is entered with value 0. Returns the slot, and 1 if the key is new, else 0."""
    at = find(slot, key, at)
    is_new = np.int64(slot[2 * at] == FREE)
    if is_new:
        slot[2 * at], slot[2 * at + 1] = key, 0
    return at, is_new


@kernel
def remove(slot, at):
    """Free a slot. Keys behind it that a search would no longer reach move up."""
    n_slots = slot.size // 2
    hole = at
    following = at + 1 if at + 1 < n_slots else 0
    while slot[2 * following] != FREE:
        first = home(slot[2 * following], n_slots)
        if (following - first) % n_slots >= (following - hole) % n_slots:
            slot[2 * hole], slot[2 * hole + 1] = slot[2 * following], slot[2 * following + 1]
            hole = following
        following = following + 1 if following + 1 < n_slots else 0
    slot[2 * hole], slot[2 * hole + 1] = FREE, 0


@kernel
def rehash(slot, old):
    """Enter every key of an old table, with its value, into a larger one."""
    n_slots = slot.size // 2
    for begin in range(0, old.size, 2):
        if old[begin] != FREE:
            at = find(slot, old[begin], home(old[begin], n_slots))
            slot[2 * at], slot[2 * at + 1] = old[begin], old[begin + 1]


@kernel
def fill_table(slot, key, value, n):
    """Enter `n` distinct keys with their values into a table that has none of them."""
    n_slots = slot.size // 2
    for i in range(n):
        at = find(slot, key[i], home(key[i], n_slots))
        slot[2 * at], slot[2 * at + 1] = key[i], value[i]


class NumberTableArrays(NamedTuple):
    """The number with id `i` is `number[i]`; slots hold ids and are probed linearly.

    The number of slots is a power of two, at least 4/3 of the number of ids.
    """

    slot: np.ndarray  # int32[n_slots]; EMPTY_SLOT = free
    number: np.ndarray  # int64[capacity]


@inline_kernel
def number_home(number, n_slots):
    """Where the search for a number begins; the number of slots is a power of two."""
    spread = multiply(number ^ shift_right(number, np.int64(32)), np.int64(_GOLDEN))
    return shift_right(spread ^ multiply(spread, np.int64(_GOLDEN)), np.int64(24)) & np.int64(n_slots - 1)


@inline_kernel
def find_number(slot, known, number, at):
    """The slot that holds the number, or the free slot where it belongs; `at` is its home."""
    last = slot.size - 1
    while slot[at] != EMPTY_SLOT and known[slot[at]] != number:
        at = (at + 1) & last
    return at


@kernel
def find_numbers(table, numbers, ids):
    """Fill `ids` with the id of each number, or ABSENT; slots are asked for a block ahead of their use."""
    slot, known = table.slot, table.number
    places = np.empty(_BLOCK, np.int64)
    for block in range(0, ids.size, _BLOCK):
        n_block = min(_BLOCK, ids.size - block)
        for i in range(n_block):
            places[i] = number_home(numbers[block + i], slot.size)
            prefetch(slot, places[i])
        for i in range(n_block):
            found = slot[find_number(slot, known, numbers[block + i], places[i])]
            ids[block + i] = found if found != EMPTY_SLOT else ABSENT


@kernel
def add_numbers(table, n_known, numbers, first, ids):
    """Fill `ids` from position `first` on, giving new numbers the next ids; slots are asked for some numbers ahead.

    Stops where the table is full. Returns the count of numbers known and the position reached.
    """
    slot, known = table.slot, table.number
    for position in range(first, ids.size):
        if position + _AHEAD < ids.size:
            prefetch(slot, number_home(numbers[position + _AHEAD], slot.size))
        at = find_number(slot, known, numbers[position], number_home(numbers[position], slot.size))
        if slot[at] == EMPTY_SLOT:
            if 4 * (n_known + 1) > 3 * slot.size or n_known >= known.size:
                return n_known, position
            known[n_known] = numbers[position]
            slot[at] = n_known
            n_known += 1
        ids[position] = slot[at]
    return n_known, ids.size


@kernel
def fill_slots(table, n_known):
    """File every known number in empty slots (after the table has grown)."""
    slot, known = table.slot, table.number
    for i in range(n_known):
        if i + _AHEAD < n_known:
            prefetch(slot, number_home(known[i + _AHEAD], slot.size))
        slot[find_number(slot, known, known[i], number_home(known[i], slot.size))] = i


@kernel
def counts_up(number, first, last):
    """Whether the numbers from `first` up to `last` go on counting up by one from number 0 on."""
    for i in range(max(1, first), last):
        # Neighbours: the sum of the first number and a position may not fit.
        if number[i - 1] == _LARGEST or number[i] != number[i - 1] + 1:
            return False
    return True
