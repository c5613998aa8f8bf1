"""Up to sixty-four messages of a list at once: which of them live and have a key, and which key is next; see `simd_keys_plain`.

Four times sixteen: all that is found is put together before the lanes are.
"""

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
from nearcast.kernels.simd_keys_plain import GROUP
from nearcast.kernels.simd_plain import LANES

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLAGS, _SHORTS = ir.VectorType(ir.IntType(1), LANES), ir.VectorType(_I16, LANES)
_OF_KEYS = (types.int64, None, types.int64, types.int64, types.int64)
_PARTS = range(0, GROUP, LANES)


def _number(value):
    return ir.Constant(_I64, value)


def _spread(builder, value):
    return splat(builder, builder.trunc(value, _I32), INTS)


def _keys(builder, keys, key_at, n, part):
    """Sixteen keys; of a part where there are none, the first ones again. Behind the keys of a list there is more of it."""
    at = builder.add(key_at, builder.select(builder.icmp_signed(">", n, _number(part)), _number(part), _number(0)))
    shorts = builder.load(builder.bitcast(builder.gep(keys, [at]), _SHORTS.as_pointer()), align=2)
    return builder.zext(shorts, INTS)


def _ahead(builder, lows, low_at, n, oldest, part):
    """How far sixteen numbers are ahead, and which of them there are."""
    is_there = first_lanes(builder, ir.Constant(_FLAGS, [1] * LANES), builder.sub(n, _number(part)))
    found = loaded_lanes(builder, lows, builder.add(low_at, _number(part)), is_there)
    return builder.sub(found, _spread(builder, oldest)), is_there


def _joined(builder, flags):
    """The flags of all parts as bits."""
    lanes = _number(0)
    for part, own in zip(_PARTS, flags, strict=True):
        lanes = builder.or_(lanes, builder.shl(bits_of(builder, own), _number(part)))
    return lanes


def _flags(builder, lanes, part):
    return builder.bitcast(builder.trunc(builder.lshr(lanes, _number(part)), _I16), _FLAGS)


def _reduced(builder, which, values):
    """The least or largest number of all."""
    both = ir.FunctionType(INTS, [INTS, INTS])
    combine = cgutils.get_or_insert_function(builder.module, both, f"llvm.{which}.v16i32")
    first, *others = values
    for other in others:
        first = builder.call(combine, [first, other])
    kind = ir.FunctionType(_I32, [INTS])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.{which}.v16i32")
    return builder.sext(builder.call(function, [first]), _I64)


@declare(types.int64, None, types.int64, types.int64, types.int64)
def _fast_living(builder, lows, low_at, n, oldest):
    flags = []
    for part in _PARTS:
        ahead, is_there = _ahead(builder, lows, low_at, n, oldest, part)
        flags.append(builder.and_(is_there, builder.icmp_signed(">=", ahead, constant(0))))
    return _joined(builder, flags)


def _compared(how):
    @declare(*_OF_KEYS)
    def operation(builder, keys, key_at, n, border):
        wanted = _spread(builder, border)
        return _joined(builder, [builder.icmp_signed(how, _keys(builder, keys, key_at, n, part), wanted) for part in _PARTS])

    return operation


def _chosen(which, nothing):
    @declare(*_OF_KEYS)
    def operation(builder, keys, key_at, n, lanes):
        found = [
            builder.select(_flags(builder, lanes, part), _keys(builder, keys, key_at, n, part), constant(nothing))
            for part in _PARTS
        ]
        return _reduced(builder, which, found)

    return operation


@declare(types.int64, None, types.int64, types.int64, types.int64, types.int64)
def _fast_least_ahead(builder, lows, low_at, n, oldest, lanes):
    found = []
    for part in _PARTS:
        ahead, _ = _ahead(builder, lows, low_at, n, oldest, part)
        found.append(builder.select(_flags(builder, lanes, part), ahead, constant(plain.NOTHING_ABOVE)))
    return _reduced(builder, "smin", found)


_OPERATIONS = (plain.living, plain.high_lanes, plain.key_lanes, plain.smallest, plain.largest, plain.least_ahead)
if IS_PLAIN:
    living, high_lanes, key_lanes, smallest, largest, least_ahead = _OPERATIONS
elif LEVEL == "plain":
    register_jitable(plain.ahead_of)
    living, high_lanes, key_lanes, smallest, largest, least_ahead = map(register_jitable, _OPERATIONS)
else:
    living, least_ahead = _fast_living, _fast_least_ahead
    high_lanes, key_lanes = _compared(">="), _compared("==")
    smallest, largest = _chosen("smin", plain.NOTHING_ABOVE), _chosen("smax", plain.NOTHING_BELOW)
