"""Sixteen subscriptions at once: may the message be near and similar enough to reach their floors?

Entries are whole numbers of few bits, packed in columns of int32; see `simd_near_plain`.
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
# As many columns as there are axes come before those of other words: x with y, the rest, and on the sphere z.
_IN_PLANE, _ON_SPHERE = 2, 3


def _floats(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [value] * LANES)


def _bits(builder, words, shift, most):
    """Some bits of every word, as floats."""
    shifted = builder.lshr(words, constant(shift)) if shift else words
    # Where they are the uppermost, nothing is above them.
    own = builder.and_(shifted, constant(most)) if most << shift < 1 << 31 else shifted
    return builder.uitofp(own, FLOATS)


def _columns(builder, entry, at, stride, n_columns):
    columns = []
    for _ in range(n_columns):
        columns.append(load(builder, entry, at, INTS))
        at = builder.add(at, stride)
    return columns


def _figure(builder, figures, first, which):
    index = builder.add(first, ir.Constant(_I64, which))
    return splat(builder, builder.load(builder.gep(figures, [index])), FLOATS)


def _reached(builder, columns, n_axes, n, figures, first, text):
    """The lanes whose floor is reached with this much text."""
    place, rest = columns[plain.PLACE], columns[plain.REST]
    axes = [(plain.X, _bits(builder, place, 0, plain.FULL)), (plain.Y, _bits(builder, place, 16, plain.FULL))]
    if n_axes == _ON_SPHERE:
        axes.append((plain.Z, _bits(builder, columns[plain.DEPTH], 0, plain.FULL)))
    squared = _ZERO
    for which, value in axes:
        gap = builder.fsub(value, _figure(builder, figures, first, which))
        squared = builder.fadd(squared, builder.fmul(gap, gap))
    loss = builder.fmul(squared, _figure(builder, figures, first, plain.LOSS))
    most = _figure(builder, figures, first, plain.MOST)
    loss = builder.select(builder.fcmp_ordered("<", loss, most), loss, most)
    lacking = builder.fmul(_bits(builder, rest, 0, plain.MOST_LACKING), _floats(plain.LACKING_STEP))
    left = builder.fsub(text, builder.fsub(lacking, _floats(1.0)))
    weight = _bits(builder, rest, plain.LACKING_BITS + plain.OWN_BITS, plain.MOST_WEIGHT)
    is_reached = builder.and_(
        builder.fcmp_ordered(">=", left, _ZERO),
        builder.fcmp_ordered(">=", builder.fmul(left, left), builder.fmul(builder.fmul(weight, weight), loss)),
    )
    return bits_of(builder, first_lanes(builder, is_reached, n))


def _own_text(builder, rest, figures, first):
    own = _bits(builder, rest, plain.LACKING_BITS, plain.MOST_OWN)
    return builder.fmul(own, _figure(builder, figures, first, plain.OWN))


def _with_others(builder, pairs, figures, first, text):
    """The text with what the other words of two columns add."""
    kind = ir.FunctionType(FLOATS, [FLOATS, INTS, FLOATS])
    name = "llvm.x86.avx512.vpermi2var.ps.512"
    permute = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    table = [
        load(builder, figures, builder.add(first, ir.Constant(_I64, plain.TABLE + LANES * i)), FLOATS)
        for i in range(plain.N_SLOTS // LANES)
    ]
    for pair in pairs:
        for shift in (0, 16):
            slot = builder.lshr(pair, constant(shift + plain.SHARE_BITS))
            low, high = (builder.call(permute, [table[i], slot, table[i + 1]]) for i in (0, 2))
            is_high = builder.icmp_signed("!=", builder.and_(slot, constant(2 * LANES)), constant(0))
            share = _bits(builder, pair, shift, plain.MOST_SHARE)
            text = builder.fadd(text, builder.fmul(share, builder.select(is_high, high, low)))
    return text


def _near(n_axes, has_more):
    @declare(types.int64, None, types.int64, types.int64, types.int64, None, types.int64)
    def operation(builder, entry, at, stride, n, figures, first):
        columns = _columns(builder, entry, at, stride, n_axes + 2 if has_more else n_axes)
        text = _own_text(builder, columns[plain.REST], figures, first)
        if has_more:
            text = _with_others(builder, columns[n_axes:], figures, first, text)
        return _reached(builder, columns, n_axes, n, figures, first, text)

    return operation


_OPERATIONS = (plain.near_in_plane, plain.near_in_plane_of_more, plain.near_on_sphere, plain.near_on_sphere_of_more)
if IS_PLAIN:
    near_in_plane, near_in_plane_of_more, near_on_sphere, near_on_sphere_of_more = _OPERATIONS
elif LEVEL == "avx512":
    near_in_plane, near_in_plane_of_more = _near(_IN_PLANE, has_more=False), _near(_IN_PLANE, has_more=True)
    near_on_sphere, near_on_sphere_of_more = _near(_ON_SPHERE, has_more=False), _near(_ON_SPHERE, has_more=True)
else:
    for helper in (plain.own_text, plain.with_others, plain.flat_square, plain.deep_square, plain.is_reached):
        register_jitable(helper)
    near_in_plane, near_in_plane_of_more, near_on_sphere, near_on_sphere_of_more = map(register_jitable, _OPERATIONS)
