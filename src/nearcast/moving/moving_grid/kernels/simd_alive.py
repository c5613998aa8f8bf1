"""Test sixteen messages at once: which are alive, and which have all bits of a mask.

The messages are the first `n` of the sixteen slots from `slots[at]` on. `alive` has one bit for each slot, 32 to a word.
Each operation has a plain twin, which tests one message at a time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from nearcast.kernels.simd import (
    INTS,
    IS_PLAIN,
    LEVEL,
    bits_of,
    cgutils,
    constant,
    declare,
    first_lanes,
    loaded_lanes,
    register_jitable,
    splat,
    types,
)
from nearcast.kernels.simd_plain import LANES

_I32 = ir.IntType(32)
_FLAGS = ir.VectorType(ir.IntType(1), LANES)


def plain_alive_lanes(slots: Any, at: int, n: int, alive: Any) -> int:
    """Which of these messages are alive, as bits."""
    lanes = 0
    for i in range(n):
        slot = int(slots[at + i])
        lanes |= ((int(alive[slot >> 5]) >> (slot & 31)) & 1) << i
    return lanes


def plain_matching_lanes(slots: Any, at: int, n: int, alive: Any, masks: Any, mask: int) -> int:
    """Which of these messages are alive and have every bit of `mask`, as bits."""
    lanes = plain_alive_lanes(slots, at, n, alive)
    for i in range(n):
        if mask & ~int(masks[slots[at + i]]) != 0:
            lanes &= ~(1 << i)
    return lanes


def _gathered(builder, values, positions, is_there):
    """Gather the words at these positions; 0 where `is_there` is not set."""
    kind = ir.FunctionType(INTS, [INTS, cgutils.voidptr_t, INTS, _FLAGS, _I32])
    gather = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.mask.gather.dpi.512")
    base = builder.bitcast(values, cgutils.voidptr_t)
    return builder.call(gather, [constant(0), base, positions, is_there, ir.Constant(_I32, 4)])


def _alive(builder, slots, at, n, alive):
    """The slots, and the flags of the live ones."""
    is_there = first_lanes(builder, ir.Constant(_FLAGS, [1] * LANES), n)
    slot = loaded_lanes(builder, slots, at, is_there)
    words = _gathered(builder, alive, builder.lshr(slot, constant(5)), is_there)
    bits = builder.and_(builder.lshr(words, builder.and_(slot, constant(31))), constant(1))
    return slot, builder.icmp_signed("!=", bits, constant(0))


@declare(types.int64, None, types.int64, types.int64, None)
def _fast_alive_lanes(builder, slots, at, n, alive):
    return bits_of(builder, _alive(builder, slots, at, n, alive)[1])


@declare(types.int64, None, types.int64, types.int64, None, None, types.int64)
def _fast_matching_lanes(builder, slots, at, n, alive, masks, mask):
    slot, is_live = _alive(builder, slots, at, n, alive)
    required = splat(builder, builder.trunc(mask, _I32), INTS)
    present = builder.and_(_gathered(builder, masks, slot, is_live), required)
    return bits_of(builder, builder.and_(is_live, builder.icmp_signed("==", present, required)))


if IS_PLAIN:
    alive_lanes, matching_lanes = plain_alive_lanes, plain_matching_lanes
elif LEVEL == "avx512":
    alive_lanes, matching_lanes = _fast_alive_lanes, _fast_matching_lanes
else:
    # Below AVX-512, gathering is done one word at a time anyway.
    alive_lanes, matching_lanes = register_jitable(plain_alive_lanes), register_jitable(plain_matching_lanes)
