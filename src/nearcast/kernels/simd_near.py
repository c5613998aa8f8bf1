"""Sixteen subscriptions at once: may the message be near and similar enough to reach their floors?

Entries are whole numbers of sixteen bits, packed in columns of int32; see `near_lanes` in `simd_near_plain`.
"""

from __future__ import annotations

from llvmlite import ir

from nearcast.kernels import simd_near_plain as plain
from nearcast.kernels.simd import (
    FLOATS,
    INTS,
    IS_PLAIN,
    LEVEL,
    bits_of,
    constant,
    declare,
    first_lanes,
    load,
    register_jitable,
    splat,
    types,
)
from nearcast.kernels.simd_plain import LANES

_I64 = ir.IntType(64)
_ZERO = ir.Constant(FLOATS, [0.0] * LANES)


def _floats(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [value] * LANES)


def _low(builder, words):
    return builder.uitofp(builder.and_(words, constant(0xFFFF)), FLOATS)


def _high(builder, words):
    return builder.uitofp(builder.lshr(words, constant(16)), FLOATS)


def _columns(builder, at, stride, n_columns):
    positions = [at]
    for _ in range(n_columns - 1):
        positions.append(builder.add(positions[-1], stride))
    return positions


def _figure(builder, figures, first, which):
    index = builder.add(first, ir.Constant(_I64, which))
    return splat(builder, builder.load(builder.gep(figures, [index])), FLOATS)


def _reached(builder, entry, positions, n, figures, first, text):
    """The lanes whose floor is reached with this much text; columns as `near_lanes` has them."""
    place, rest, words = (load(builder, entry, position, INTS) for position in positions[:3])
    squared = _ZERO
    for which, value in ((plain.X, _low(builder, place)), (plain.Y, _high(builder, place)), (plain.Z, _low(builder, rest))):
        gap = builder.fsub(value, _figure(builder, figures, first, which))
        squared = builder.fadd(squared, builder.fmul(gap, gap))
    loss = builder.fmul(squared, _figure(builder, figures, first, plain.LOSS))
    most = _figure(builder, figures, first, plain.MOST)
    loss = builder.select(builder.fcmp_ordered("<", loss, most), loss, most)
    lacking = builder.fsub(builder.fmul(_low(builder, words), _floats(plain.FLOOR_STEP)), _floats(1.0))
    left = builder.fsub(text, lacking)
    weight = _high(builder, rest)
    is_reached = builder.and_(
        builder.fcmp_ordered(">=", left, _ZERO),
        builder.fcmp_ordered(">=", builder.fmul(left, left), builder.fmul(builder.fmul(weight, weight), loss)),
    )
    return bits_of(builder, first_lanes(builder, is_reached, n))


def _own_text(builder, entry, positions, figures, first):
    return builder.fmul(_high(builder, load(builder, entry, positions[2], INTS)), _figure(builder, figures, first, plain.OWN))


@declare(types.int64, None, types.int64, types.int64, types.int64, None, types.int64)
def _fast_near_lanes(builder, entry, at, stride, n, figures, first):
    positions = _columns(builder, at, stride, 3)
    return _reached(builder, entry, positions, n, figures, first, _own_text(builder, entry, positions, figures, first))


@declare(types.int64, None, types.int64, types.int64, types.int64, None, types.int64)
def _fast_near_lanes_of_more(builder, entry, at, stride, n, figures, first):
    positions = _columns(builder, at, stride, 6)
    kind = ir.FunctionType(FLOATS, [FLOATS, INTS, FLOATS])
    name = "llvm.x86.avx512.vpermi2var.ps.512"
    permute = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    table = [
        load(builder, figures, builder.add(first, ir.Constant(_I64, plain.TABLE + LANES * i)), FLOATS)
        for i in range(plain.N_SLOTS // LANES)
    ]
    slots = load(builder, entry, positions[5], INTS)

    def value_of(which):
        own = builder.lshr(slots, constant(plain.SLOT_BITS * which)) if which else slots
        low, high = (builder.call(permute, [table[i], own, table[i + 1]]) for i in (0, 2))
        is_high = builder.icmp_signed("!=", builder.and_(own, constant(2 * LANES)), constant(0))
        return builder.select(is_high, high, low)

    text = _own_text(builder, entry, positions, figures, first)
    for which, (position, half) in enumerate(((3, _low), (3, _high), (4, _low), (4, _high))):
        share = half(builder, load(builder, entry, positions[position], INTS))
        text = builder.fadd(text, builder.fmul(share, value_of(which)))
    return _reached(builder, entry, positions, n, figures, first, text)


if IS_PLAIN:
    near_lanes, near_lanes_of_more = plain.near_lanes, plain.near_lanes_of_more
elif LEVEL == "avx512":
    near_lanes, near_lanes_of_more = _fast_near_lanes, _fast_near_lanes_of_more
else:
    for helper in (plain.own_text, plain.is_reached):
        register_jitable(helper)
    near_lanes, near_lanes_of_more = register_jitable(plain.near_lanes), register_jitable(plain.near_lanes_of_more)
