"""How cells, keywords and coordinates are named."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.keyword_sets import filter_bit
from nearcast.kernels.quadtree import column_of
from nearcast.kernels.simd import LANES, equal_lanes
from nearcast.moving.kernels.live_messages import has_words
from nearcast.moving.moving_grid.layout import (
    CATCH_ALL,
    CELL_BITS,
    CLASS_BITS,
    FINE,
    HAS_OTHERS,
    MORE_KEYWORDS,
    MOST_LEVELS,
    NO_KEYWORD,
    OTHERS,
    RECORD,
)

_KNUTH = 2654435761
# Bits of a mask: those that keywords share, then those of the most frequent keywords.
N_SHARED_BITS, N_OWN_BITS = 12, 18
_N_FINE = 1 << FINE
_LARGEST_SHORT = 65534.0
_SHORT_PER_COLUMN = 2.0 ** (15 - FINE)


@inline_kernel
def fine_column(value, frame, first):
    """The column of x (`first` = 0) or the row of y (3), counted as fine as can be."""
    return np.int64(column_of(value, frame[first], frame[first + 1], frame[first + 2], _N_FINE))


@inline_kernel
def fine_place(value, frame, first):
    """As `fine_column`, with what lies between columns: 0 to 2^FINE."""
    if value <= frame[first]:
        return 0.0
    if value >= frame[first + 1]:
        return float(_N_FINE)
    return min((value * 0.5 - frame[first] * 0.5) * frame[first + 2], float(_N_FINE))


@inline_kernel
def place_in_cell(place, origin, level):
    """Where a fine place lies in a cell of a level, that begins at column `origin`, and the next: 1 to 65534, never falling."""
    within = (place - origin) * (np.float64(1 << level) * _SHORT_PER_COLUMN)
    if within < _LARGEST_SHORT:
        return np.int64(max(within, 1.0))
    return np.int64(_LARGEST_SHORT)


@inline_kernel
def packed_corner(x, y):
    """Two numbers of 16 bits as the bits of an int32."""
    return x | (((y ^ 0x8000) - 0x8000) << 16)


@inline_kernel
def packed_corners(x, y, other_x, other_y):
    """Two corners of 16 bits as the bits of an int64, as `simd.eight_points` reads them."""
    return x | y << 16 | other_x << 32 | ((other_y ^ 0x8000) - 0x8000) << 48


@inline_kernel
def list_key(owner, kind, level, column, row):
    """What the list of a class in a cell is found by; never 0. Columns and rows are fine ones."""
    shift = FINE - level
    cell = ((np.int64(column) >> shift) << level) | (np.int64(row) >> shift)
    return (((np.int64(owner) << CLASS_BITS) | np.int64(kind)) << CELL_BITS | cell) + 1


@inline_kernel
def cell_of_key(key):
    """The level of the cell that a key names, and the fine column and row where it begins; 0 names all there is."""
    if key == 0:
        return np.int64(0), np.int64(0), np.int64(0)
    level, cell = ((key - 1) >> CELL_BITS) & ((1 << CLASS_BITS) - 1), (key - 1) & ((1 << CELL_BITS) - 1)
    return level, (cell >> level) << (FINE - level), (cell & ((1 << level) - 1)) << (FINE - level)


@inline_kernel
def owner_of_key(key):
    return (key - 1) >> (CELL_BITS + CLASS_BITS)


@inline_kernel
def size_class(n_columns, n_rows, level):
    """The level whose cells are as large as something that reaches so many fine columns and rows, at most `level`."""
    reach, own = max(n_columns, n_rows), 0
    while own < level and reach >> (FINE - own - 1) == 0:
        own += 1
    return own


@inline_kernel
def mask_bit(own_bit, keyword):
    """The bit of a message's mask that stands for a keyword: one of its own, which the most frequent have, or a shared one."""
    if keyword < own_bit.size and own_bit[keyword] != 0:
        return np.int64(own_bit[keyword])
    return np.int64(1) << (((np.int64(keyword) * _KNUTH) & 0xFFFFFFFF) * N_SHARED_BITS >> 32)


@inline_kernel
def rarest_owner(keyword_start, keyword, frequency, clause):
    """The keyword that the fewest clauses have, as an owner; the first of several."""
    best = CATCH_ALL
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if best == CATCH_ALL or frequency[keyword[at]] < frequency[best - 1]:
            best = 1 + keyword[at]
    return best


@inline_kernel
def signature_of(keyword_start, keyword, owner, clause):
    """Up to three of a clause's other keywords as bits of a message's filter (see `simd.signature_lanes`), and whether any."""
    signature, n_named = 0, 0
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if 1 + keyword[at] != owner and n_named < 3:
            signature |= HAS_OTHERS | (filter_bit(keyword[at]) << (9 * n_named))
            n_named += 1
    return signature


@inline_kernel
def level_for(limit, count):
    """The level of the grid of an owner with so many entries."""
    level = 0
    for wanted in range(1, MOST_LEVELS + 1):
        if count >= limit[wanted]:
            level = wanted
    return level


@inline_kernel
def has_others(record, at, keyword_start, keyword, clause, member, first, n):
    """Whether the `n` keywords from `member[first]` on have all keywords of a clause besides its owner."""
    for field in range(OTHERS, RECORD):
        wanted = record[at + field]
        if wanted == NO_KEYWORD:
            return True
        if wanted == MORE_KEYWORDS:
            return has_words(keyword, keyword_start[clause], keyword_start[clause + 1], member, first, n)
        is_there = False
        for word in range(first, first + n, LANES):
            if equal_lanes(member, word, min(LANES, first + n - word), wanted) != 0:
                is_there = True
                break
        if not is_there:
            return False
    return True
