"""Keys of lists, bits of Bloom filters and of folded cells, rounded coordinates, and the keyword test of a clause."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.layout import CELL_BITS, FOLD_LEVEL
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import mixed_key
from nearcast.kernels.simd import shift_right

_LOW_HALF = (1 << 31) - 1
_FEW = 24  # below, keywords are compared one by one
_LARGEST_SINGLE = 3.4028234663852886e38


@inline_kernel
def to_float32(value):
    """A coordinate rounded to float32, which keeps the order; beyond the range of float32 the largest finite value."""
    return np.float32(min(max(value, -_LARGEST_SINGLE), _LARGEST_SINGLE))


@inline_kernel
def list_key(anchor, cell):
    """The key of a list in a cell; never 0."""
    return ((np.int64(anchor) << CELL_BITS) | np.int64(cell)) + 1


@inline_kernel
def bloom_bit(key, n_bits):
    """The bit of a key in a Bloom filter of `n_bits` bits."""
    return ((shift_right(mixed_key(key), np.int64(2)) & _LOW_HALF) * n_bits) >> 31


@inline_kernel
def fold_of(column, row, max_level):
    """The bit of a cell among eight by eight folded cells."""
    if max_level > FOLD_LEVEL:
        shift = max_level - FOLD_LEVEL
        return ((column >> shift) & 7) * 8 + ((row >> shift) & 7)
    return (column & 7) * 8 + (row & 7)


@inline_kernel
def has_keyword(keyword, begin, end, sought):
    """Whether a sorted run of keywords contains one: a binary search down to 24, then one by one."""
    while end - begin > _FEW:
        middle = (begin + end) // 2
        if keyword[middle] <= sought:
            begin = middle
        else:
            end = middle
    is_found = False
    for at in range(begin, end):
        is_found |= keyword[at] == sought
    return is_found


@kernel
def has_clause_keywords(keyword_start, keyword, clause, message_keyword, begin, end):
    """Whether a message has every keyword of a clause."""
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if not has_keyword(message_keyword, begin, end, keyword[at]):
            return False
    return True
