"""A hash table from int64 numbers to dense ids, as flat arrays: find and add whole columns of numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import multiply, prefetch, shift_right

ABSENT = -1
EMPTY_SLOT = -1

_BLOCK = 64
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
def find_slot(table, number, slot):
    """The slot that holds the number, or the free slot where it belongs."""
    last = table.slot.size - 1
    while table.slot[slot] != EMPTY_SLOT and table.number[table.slot[slot]] != number:
        slot = (slot + 1) & last
    return slot


@kernel
def find_numbers(table, numbers, ids):
    """Fill `ids` with the id of each number, or ABSENT; slots are asked for a block ahead of their use."""
    places = np.empty(_BLOCK, np.int64)
    for block in range(0, ids.size, _BLOCK):
        n_block = min(_BLOCK, ids.size - block)
        for i in range(n_block):
            places[i] = home_slot(numbers[block + i], table.slot.size)
            prefetch(table.slot, places[i])
        for i in range(n_block):
            found = table.slot[find_slot(table, numbers[block + i], places[i])]
            ids[block + i] = found if found != EMPTY_SLOT else ABSENT


@kernel
def add_numbers(table, n_known, numbers, first, ids):
    """Fill `ids` from position `first` on, giving new numbers the next ids.

    Stops where the table is full. Returns the count of numbers known and the position reached.
    """
    position = first
    while position < ids.size:
        slot = find_slot(table, numbers[position], home_slot(numbers[position], table.slot.size))
        if table.slot[slot] == EMPTY_SLOT:
            if 4 * (n_known + 1) > 3 * table.slot.size or n_known >= table.number.size:
                break
            table.number[n_known] = numbers[position]
            table.slot[slot] = n_known
            n_known += 1
        ids[position] = table.slot[slot]
        position += 1
    return n_known, position


@kernel
def fill_slots(table, n_known):
    """File every known number in empty slots (after the table has grown)."""
    for known in range(n_known):
        number = table.number[known]
        table.slot[find_slot(table, number, home_slot(number, table.slot.size))] = known


@kernel
def counts_up(number, first, last):
    """Whether the numbers from `first` up to `last` go on counting up by one from number 0 on."""
    for i in range(max(1, first), last):
        # Neighbours: the sum of the first number and a position may not fit.
        if number[i - 1] == _LARGEST or number[i] != number[i - 1] + 1:
            return False
    return True
