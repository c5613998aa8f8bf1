"""Sixteen subscriptions at once: can the message reach their thresholds?

Entries are integers of few bits, packed in columns of int32; see `simd_near_plain`.
"""

from __future__ import annotations

from llvmlite import ir

from nearcast.kernels.simd import (
    FLOATS,
    INTS,
    IS_PLAIN,
    LEVEL,
    bits_of,
    cgutils,
    constant,
    declare,
    first_lanes,
    load,
    register_jitable,
    splat,
    types,
)
from nearcast.kernels.simd_plain import LANES
from nearcast.ranked.impact_grid.kernels import simd_near_plain as plain

_I64 = ir.IntType(64)
_ZERO = ir.Constant(FLOATS, [0.0] * LANES)
# Each of the two other words of a column has half of it.
_HALVES = ir.VectorType(ir.IntType(16), 2 * LANES)
# Columns before those of other words: location, rest, and on the sphere depth; as many as there are axes.
_IN_PLANE, _ON_SPHERE = 2, 3


def _floats(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [value] * LANES)


def _halves(value: int) -> ir.Constant:
    return ir.Constant(_HALVES, [value] * 2 * LANES)


def _bits(builder, words, shift, most):
    """Some bits of every number, as floats."""
    shifted = builder.lshr(words, constant(shift)) if shift else words
    # The uppermost bits need no mask.
    own = builder.and_(shifted, constant(most)) if most << shift < 1 << 31 else shifted
    return builder.uitofp(own, FLOATS)


def _columns(builder, entry, at, stride, n_columns):
    columns = []
    for _ in range(n_columns):
        columns.append(load(builder, entry, at, INTS))
        at = builder.add(at, stride)
    return columns


def _figure(builder, figures, which):
    return splat(builder, builder.load(builder.gep(figures, [which])), FLOATS)


def _figure_at(builder, figures, which):
    return _figure(builder, figures, ir.Constant(_I64, which))


def _reached(builder, columns, n_axes, n, figures, text):
    """The lanes whose threshold is reached with this similarity."""
    position, rest = columns[plain.LOCATION], columns[plain.REST]
    axes = [(plain.X, _bits(builder, position, 0, plain.FULL)), (plain.Y, _bits(builder, position, 16, plain.FULL))]
    if n_axes == _ON_SPHERE:
        axes.append((plain.Z, _bits(builder, columns[plain.DEPTH], 0, plain.FULL)))
    squared = _ZERO
    for which, value in axes:
        gap = builder.fsub(value, _figure_at(builder, figures, which))
        squared = builder.fadd(squared, builder.fmul(gap, gap))
    loss = builder.fmul(squared, _figure_at(builder, figures, plain.LOSS))
    most = _figure_at(builder, figures, plain.MOST)
    loss = builder.select(builder.fcmp_ordered("<", loss, most), loss, most)
    score_gap = builder.fmul(_bits(builder, rest, 0, plain.MAX_GAP), _floats(plain.GAP_STEP))
    left = builder.fsub(text, builder.fsub(score_gap, _floats(1.0)))
    weight = _bits(builder, rest, plain.GAP_BITS + plain.OWN_BITS, plain.MOST_WEIGHT)
    is_reached = builder.and_(
        builder.fcmp_ordered(">=", left, _ZERO),
        builder.fcmp_ordered(">=", builder.fmul(left, left), builder.fmul(builder.fmul(weight, weight), loss)),
    )
    return bits_of(builder, first_lanes(builder, is_reached, n))


def _own_text(builder, rest, figures, word):
    own = _bits(builder, rest, plain.GAP_BITS, plain.MOST_OWN)
    return builder.fmul(own, _figure(builder, figures, builder.add(word, ir.Constant(_I64, plain.OWN))))


def _shared_text(builder, pairs, relative_weight, word):
    """What the other words of two columns add: both of a column are looked up at once, and multiplied and added in one step."""
    permute = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_HALVES, [_HALVES] * 3), "llvm.x86.avx512.vpermi2var.hi.512"
    )
    combine = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(INTS, [_HALVES] * 2), "llvm.x86.avx512.pmaddw.d.512"
    )
    first = builder.mul(word, ir.Constant(_I64, plain.N_SLOTS))
    second = builder.add(first, ir.Constant(_I64, 2 * LANES))
    low, high = (load(builder, relative_weight, at, _HALVES) for at in (first, second))
    shared = constant(0)
    for pair in pairs:
        both = builder.bitcast(pair, _HALVES)
        worths = builder.call(permute, [low, builder.lshr(both, _halves(plain.SHARE_BITS)), high])
        shares = builder.and_(both, _halves(plain.MOST_SHARE))
        shared = builder.add(shared, builder.call(combine, [shares, worths]))
    return builder.fmul(builder.sitofp(shared, FLOATS), _floats(plain.SHARED_STEP))


def _near(n_axes):
    @declare(types.int64, None, types.int64, types.int64, None, None, types.int64)
    def operation(builder, entry, at, n, figures, relative_weight, word):
        columns = _columns(builder, entry, at, n, n_axes + 2)
        own = _own_text(builder, columns[plain.REST], figures, word)
        text = builder.fadd(own, _shared_text(builder, columns[n_axes:], relative_weight, word))
        return _reached(builder, columns, n_axes, n, figures, text)

    return operation


_OPERATIONS = (plain.near_in_plane, plain.near_on_sphere)
if IS_PLAIN:
    near_in_plane, near_on_sphere = _OPERATIONS
elif LEVEL == "avx512":
    near_in_plane, near_on_sphere = _near(_IN_PLANE), _near(_ON_SPHERE)
else:
    for helper in (plain.text_of, plain.flat_square, plain.deep_square, plain.is_reached):
        register_jitable(helper)
    near_in_plane, near_on_sphere = map(register_jitable, _OPERATIONS)
