"""Keys of lists, bits of keywords, coordinates in cells."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.keyword_sets import filter_bit
from nearcast.kernels.quadtree import column_of
from nearcast.kernels.simd import LANES, equal_lanes
from nearcast.moving.kernels.live_messages import has_keywords
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
# Bits of a mask: shared ones, then those reserved for the most frequent keywords.
N_SHARED_BITS, N_RESERVED_BITS = 12, 18
_N_FINE = 1 << FINE
_LARGEST_SHORT = 65534.0
_SHORT_PER_COLUMN = 2.0 ** (15 - FINE)


@inline_kernel
def fine_column(value, frame, first):
    """The column of x (`first` = 0) or the row of y (3) in the finest grid."""
    return np.int64(column_of(value, frame[first], frame[first + 1], frame[first + 2], _N_FINE))


@inline_kernel
def fine_coordinate(value, frame, first):
    """As `fine_column`, with a fraction: 0 to 2^FINE."""
    if value <= frame[first]:
        return 0.0
    if value >= frame[first + 1]:
        return float(_N_FINE)
    return min((value * 0.5 - frame[first] * 0.5) * frame[first + 2], float(_N_FINE))


@inline_kernel
def cell_coordinate(place, origin, level):
    """A fine coordinate relative to a cell of a level that begins at column `origin`: 1 to 65534, monotone."""
    within = (place - origin) * (np.float64(1 << level) * _SHORT_PER_COLUMN)
    if within < _LARGEST_SHORT:
        return np.int64(max(within, 1.0))
    return np.int64(_LARGEST_SHORT)


@inline_kernel
def packed_corner(x, y):
    """Pack two 16-bit numbers into an int32."""
    return x | (((y ^ 0x8000) - 0x8000) << 16)


@inline_kernel
def packed_corners(x, y, other_x, other_y):
    """Pack two corners of 16-bit numbers into an int64, as `simd.eight_points` reads them."""
    return x | y << 16 | other_x << 32 | ((other_y ^ 0x8000) - 0x8000) << 48


@inline_kernel
def list_key(anchor, kind, level, column, row):
    """The key of the list of a class in a cell; never 0. `column` and `row` are fine ones."""
    shift = FINE - level
    cell = ((np.int64(column) >> shift) << level) | (np.int64(row) >> shift)
    return (((np.int64(anchor) << CLASS_BITS) | np.int64(kind)) << CELL_BITS | cell) + 1


@inline_kernel
def cell_of_key(key):
    """The level of a key's cell, and the fine column and row where it begins; key 0 is the whole plane."""
    if key == 0:
        return np.int64(0), np.int64(0), np.int64(0)
    level, cell = ((key - 1) >> CELL_BITS) & ((1 << CLASS_BITS) - 1), (key - 1) & ((1 << CELL_BITS) - 1)
    return level, (cell >> level) << (FINE - level), (cell & ((1 << level) - 1)) << (FINE - level)


@inline_kernel
def anchor_of_key(key):
    return (key - 1) >> (CELL_BITS + CLASS_BITS)


@inline_kernel
def size_class(n_columns, n_rows, level):
    """The finest level, at most `level`, whose cells are as large as something of this many fine columns and rows."""
    reach, result = max(n_columns, n_rows), 0
    while result < level and reach >> (FINE - result - 1) == 0:
        result += 1
    return result


@inline_kernel
def mask_bit(reserved_bit, keyword):
    """The bit of a keyword in a message's mask: reserved for a most frequent keyword, else shared."""
    if keyword < reserved_bit.size and reserved_bit[keyword] != 0:
        return np.int64(reserved_bit[keyword])
    return np.int64(1) << (((np.int64(keyword) * _KNUTH) & 0xFFFFFFFF) * N_SHARED_BITS >> 32)


@inline_kernel
def rarest_anchor(keyword_start, keyword, frequency, clause):
    """The anchor of a clause: its keyword with the lowest frequency, the first one of several."""
    best = CATCH_ALL
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if best == CATCH_ALL or frequency[keyword[at]] < frequency[best - 1]:
            best = 1 + keyword[at]
    return best


@inline_kernel
def signature_of(keyword_start, keyword, anchor, clause):
    """HAS_OTHERS and up to three keywords of a clause without its anchor, as filter bits (see `simd.four_signatures`)."""
    signature, n_named = 0, 0
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if 1 + keyword[at] != anchor and n_named < 3:
            signature |= HAS_OTHERS | (filter_bit(keyword[at]) << (9 * n_named))
            n_named += 1
    return signature


@inline_kernel
def level_for(limit, count):
    """The level of the grid of an anchor with this many entries."""
    level = 0
    for finer in range(1, MOST_LEVELS + 1):
        if count >= limit[finer]:
            level = finer
    return level


@inline_kernel
def has_others(record, at, keyword_start, keyword, clause, member, first, n):
    """Whether the `n` keywords from `member[first]` on contain all keywords of a clause except its anchor."""
    for field in range(OTHERS, RECORD):
        required = record[at + field]
        if required == NO_KEYWORD:
            return True
        if required == MORE_KEYWORDS:
            return has_keywords(keyword, keyword_start[clause], keyword_start[clause + 1], member, first, n)
        is_there = False
        for word in range(first, first + n, LANES):
            if equal_lanes(member, word, min(LANES, first + n - word), required) != 0:
                is_there = True
                break
        if not is_there:
            return False
    return True
