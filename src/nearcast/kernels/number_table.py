"""A hash table from int64 numbers to dense ids, as flat arrays: find and add whole columns of numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import multiply, prefetch, shift_right

ABSENT = -1
EMPTY_SLOT = -1

_BLOCK = 64
_AHEAD = 16
_GOLDEN = -7046029254386353131
_LARGEST = (1 << 63) - 1


class NumberTableArrays(NamedTuple):
    """The number with id `i` is `number[i]`; slots hold ids and are probed linearly.

    The number of slots is a power of two, at least 4/3 of the number of ids.
    """

    slot: np.ndarray  # int32[n_slots]; EMPTY_SLOT = free
    number: np.ndarray  # int64[capacity]


@inline_kernel
def home_slot(number, n_slots):
    spread = multiply(number ^ shift_right(number, np.int64(32)), np.int64(_GOLDEN))
    return shift_right(spread ^ multiply(spread, np.int64(_GOLDEN)), np.int64(24)) & np.int64(n_slots - 1)


@inline_kernel
def find_slot(slot, known, number, at):
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
            places[i] = home_slot(numbers[block + i], slot.size)
            prefetch(slot, places[i])
        for i in range(n_block):
            found = slot[find_slot(slot, known, numbers[block + i], places[i])]
            ids[block + i] = found if found != EMPTY_SLOT else ABSENT


@kernel
def add_numbers(table, n_known, numbers, first, ids):
    """Fill `ids` from position `first` on, giving new numbers the next ids; slots are asked for some numbers ahead.

    Stops where the table is full. Returns the count of numbers known and the position reached.
    """
    slot, known = table.slot, table.number
    for position in range(first, ids.size):
        if position + _AHEAD < ids.size:
            prefetch(slot, home_slot(numbers[position + _AHEAD], slot.size))
        at = find_slot(slot, known, numbers[position], home_slot(numbers[position], slot.size))
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
            prefetch(slot, home_slot(known[i + _AHEAD], slot.size))
        slot[find_slot(slot, known, known[i], home_slot(known[i], slot.size))] = i


@kernel
def counts_up(number, first, last):
    """Whether the numbers from `first` up to `last` go on counting up by one from number 0 on."""
    for i in range(max(1, first), last):
        # Neighbours: the sum of the first number and a position may not fit.
        if number[i - 1] == _LARGEST or number[i] != number[i - 1] + 1:
            return False
    return True
