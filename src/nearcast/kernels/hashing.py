"""Where a key of a hash table is looked for first.

A table is one array of keys and values by turns; a free slot has key 0.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.simd import multiply, shift_right

# A cache line holds this many slots of a table.
LINE_SLOTS = 4

_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, as signed
_MIX = 0x2545F4914F6CDD1D


@inline_kernel
def mixed_key(key):
    """A key as 64 bits without a pattern."""
    mixed = multiply(key, np.int64(_GOLDEN))
    return multiply(mixed ^ shift_right(mixed, np.int64(29)), np.int64(_MIX))


@inline_kernel
def home_slot(key, n_slots):
    """Where a key is looked for first: the first slot of a cache line, for the others of the line come with it."""
    # The upper half of the hash as a fraction of all lines: their number need not be a power of two.
    return ((shift_right(mixed_key(key), np.int64(33)) * (n_slots // LINE_SLOTS)) >> 31) * LINE_SLOTS
