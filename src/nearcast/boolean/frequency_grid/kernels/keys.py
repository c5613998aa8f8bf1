"""How clauses, cells and messages are named: owners, keys of lists, bits of sieves, rounded coordinates."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.layout import CATCH_ALL, CELL_BITS, FOLD_LEVEL
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import mixed_key
from nearcast.kernels.simd import shift_right

_LOW_HALF = (1 << 31) - 1
_LARGEST_SINGLE = 3.4028234663852886e38


@inline_kernel
def narrow(value):
    """A coordinate as float32, never decreasing; beyond its range the largest there is."""
    return np.float32(min(max(value, -_LARGEST_SINGLE), _LARGEST_SINGLE))


@inline_kernel
def list_key(owner, cell):
    """What a list in a cell is found by; never 0."""
    return ((np.int64(owner) << CELL_BITS) | np.int64(cell)) + 1


@inline_kernel
def sieve_bit(key, n_bits):
    """The bit of a sieve that stands for a key."""
    return ((shift_right(mixed_key(key), np.int64(2)) & _LOW_HALF) * n_bits) >> 31


@inline_kernel
def fold_of(column, row, max_level):
    """The bit of a place among eight by eight folded cells."""
    if max_level > FOLD_LEVEL:
        shift = max_level - FOLD_LEVEL
        return ((column >> shift) & 7) * 8 + ((row >> shift) & 7)
    return (column & 7) * 8 + (row & 7)


@inline_kernel
def owner_of(keyword_start, keyword, frequency, clause):
    """The owner of a clause's rarest keyword when the grid was built; a keyword that came later is rarer than all."""
    best, least = CATCH_ALL, np.int64(0)
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        word = keyword[at]
        count = np.int64(frequency[word]) if word < frequency.size else np.int64(0)
        if best == CATCH_ALL or count < least:
            best, least = 1 + word, count
    return best


# -- Test the keywords of a clause against those of a message.

_FEW = 24


@inline_kernel
def has_keyword(keyword, begin, end, wanted):
    """Whether a sorted run of keywords holds one: few are compared one by one, many are halved first."""
    while end - begin > _FEW:
        middle = (begin + end) // 2
        if keyword[middle] <= wanted:
            begin = middle
        else:
            end = middle
    found = False
    for at in range(begin, end):
        found |= keyword[at] == wanted
    return found


@kernel
def has_clause_keywords(keyword_start, keyword, clause, message_keyword, begin, end):
    """Whether a message has every keyword of a clause."""
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if not has_keyword(message_keyword, begin, end, keyword[at]):
            return False
    return True
