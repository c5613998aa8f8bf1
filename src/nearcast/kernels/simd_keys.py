"""Sixteen messages of a list at once: which of them live and have a key, and which key is next; see `simd_keys_plain`."""

from __future__ import annotations

from llvmlite import ir

from nearcast.kernels import simd_keys_plain as plain
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

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_FLAGS, _SHORTS = ir.VectorType(ir.IntType(1), LANES), ir.VectorType(ir.IntType(16), LANES)
_ARGUMENTS = (types.int64, None, types.int64, None, types.int64, types.int64, types.int64, types.int64)


def _spread(builder, value):
    return splat(builder, builder.trunc(value, _I32), INTS)


def _columns(builder, keys, key_at, lows, low_at, n, oldest):
    """Keys, how far each is ahead, and who lives."""
    is_there = first_lanes(builder, ir.Constant(_FLAGS, [1] * LANES), n)
    # All sixteen: behind the keys of a list there is more of it.
    shorts = builder.load(builder.bitcast(builder.gep(keys, [key_at]), _SHORTS.as_pointer()), align=2)
    ahead = builder.sub(loaded_lanes(builder, lows, low_at, is_there), _spread(builder, oldest))
    return builder.zext(shorts, INTS), ahead, builder.and_(is_there, builder.icmp_signed(">=", ahead, constant(0)))


def _reduced(builder, which, values):
    kind = ir.FunctionType(_I32, [INTS])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.{which}.v16i32")
    return builder.sext(builder.call(function, [values]), _I64)


@declare(*_ARGUMENTS)
def _fast_least_above(builder, keys, key_at, lows, low_at, n, oldest, border):
    found, _, lives = _columns(builder, keys, key_at, lows, low_at, n, oldest)
    counts = builder.and_(lives, builder.icmp_signed(">", found, _spread(builder, border)))
    return _reduced(builder, "smin", builder.select(counts, found, constant(plain.NOTHING_ABOVE)))


@declare(*_ARGUMENTS)
def _fast_most_below(builder, keys, key_at, lows, low_at, n, oldest, border):
    found, _, lives = _columns(builder, keys, key_at, lows, low_at, n, oldest)
    counts = builder.and_(lives, builder.icmp_signed("<", found, _spread(builder, border)))
    return _reduced(builder, "smax", builder.select(counts, found, constant(plain.NOTHING_BELOW)))


@declare(*_ARGUMENTS)
def _fast_living_lanes(builder, keys, key_at, lows, low_at, n, oldest, wanted):
    found, _, lives = _columns(builder, keys, key_at, lows, low_at, n, oldest)
    return bits_of(builder, builder.and_(lives, builder.icmp_signed("==", found, _spread(builder, wanted))))


@declare(*_ARGUMENTS)
def _fast_least_ahead(builder, keys, key_at, lows, low_at, n, oldest, border):
    found, ahead, lives = _columns(builder, keys, key_at, lows, low_at, n, oldest)
    counts = builder.and_(lives, builder.icmp_signed(">=", found, _spread(builder, border)))
    return _reduced(builder, "smin", builder.select(counts, ahead, constant(plain.NOTHING_ABOVE)))


@declare(*_ARGUMENTS)
def _fast_high_lanes(builder, keys, key_at, lows, low_at, n, oldest, border):
    found, _, lives = _columns(builder, keys, key_at, lows, low_at, n, oldest)
    return bits_of(builder, builder.and_(lives, builder.icmp_signed(">=", found, _spread(builder, border))))


if IS_PLAIN:
    least_above, most_below, living_lanes, least_ahead, high_lanes = (
        plain.least_above,
        plain.most_below,
        plain.living_lanes,
        plain.least_ahead,
        plain.high_lanes,
    )
elif LEVEL == "plain":
    register_jitable(plain.ahead_of)
    least_above, most_below, living_lanes, least_ahead, high_lanes = (
        register_jitable(operation)
        for operation in (plain.least_above, plain.most_below, plain.living_lanes, plain.least_ahead, plain.high_lanes)
    )
else:
    least_above, most_below, living_lanes, least_ahead, high_lanes = (
        _fast_least_above,
        _fast_most_below,
        _fast_living_lanes,
        _fast_least_ahead,
        _fast_high_lanes,
    )
