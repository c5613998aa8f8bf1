"""Up to sixty-four messages of a list at once: which live, which have a key, which key is next; see `simd_keys_plain`.

Numbers are read in four parts of sixteen, keys in two of thirty-two; flags of all parts are joined at the end.
"""

from __future__ import annotations

from llvmlite import ir

from nearcast.kernels.simd import (
    INTS,
    IS_PLAIN,
    LEVEL,
    cgutils,
    constant,
    declare,
    first_lanes,
    loaded_lanes,
    register_jitable,
    types,
)
from nearcast.kernels.simd_plain import LANES
from nearcast.ranked.kernels import simd_keys_plain as plain
from nearcast.ranked.kernels.simd_keys_plain import GROUP, KEY_LANES, MOST_KEY

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLAGS = ir.VectorType(ir.IntType(1), LANES)
_KEYS, _KEY_FLAGS = ir.VectorType(_I16, KEY_LANES), ir.VectorType(ir.IntType(1), KEY_LANES)
_OF_KEYS = (types.int64, None, types.int64, types.int64, types.int64)
_PARTS, _KEY_PARTS = range(0, GROUP, LANES), range(0, GROUP, KEY_LANES)


def _number(value):
    return ir.Constant(_I64, value)


def _spread(builder, value, kind):
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.trunc(value, kind.element), ir.Constant(_I32, 0))
    everywhere = ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), everywhere)


def _keys(builder, keys, key_at, n, part):
    """Thirty-two keys. For a part beyond the end, the first keys again: a list extends beyond its keys."""
    at = builder.add(key_at, builder.select(builder.icmp_signed(">", n, _number(part)), _number(part), _number(0)))
    return builder.load(builder.bitcast(builder.gep(keys, [at]), _KEYS.as_pointer()), align=2)


def _ahead(builder, numbers32, numbers32_start, n, oldest, part):
    """The distances of sixteen numbers from `oldest`, and which of them exist."""
    is_there = first_lanes(builder, ir.Constant(_FLAGS, [1] * LANES), builder.sub(n, _number(part)))
    numbers = loaded_lanes(builder, numbers32, builder.add(numbers32_start, _number(part)), is_there)
    return builder.sub(numbers, _spread(builder, oldest, INTS)), is_there


def _joined(builder, flags, parts):
    """The flags of all parts as bits."""
    lanes = _number(0)
    for part, flags_of_part in zip(parts, flags, strict=True):
        bits = builder.zext(builder.bitcast(flags_of_part, ir.IntType(flags_of_part.type.count)), _I64)
        lanes = builder.or_(lanes, builder.shl(bits, _number(part)))
    return lanes


def _flags(builder, lanes, part, kind):
    return builder.bitcast(builder.trunc(builder.lshr(lanes, _number(part)), ir.IntType(kind.count)), kind)


def _reduced(builder, which, values):
    """The least or largest of all numbers."""
    kind = values[0].type
    name = f"v{kind.count}i{kind.element.width}"
    both = ir.FunctionType(kind, [kind, kind])
    combine = cgutils.get_or_insert_function(builder.module, both, f"llvm.{which}.{name}")
    first, *others = values
    for other in others:
        first = builder.call(combine, [first, other])
    all_of = ir.FunctionType(kind.element, [kind])
    return builder.call(cgutils.get_or_insert_function(builder.module, all_of, f"llvm.vector.reduce.{which}.{name}"), [first])


@declare(types.int64, None, types.int64, types.int64, types.int64)
def _fast_living(builder, numbers32, numbers32_start, n, oldest):
    flags = []
    for part in _PARTS:
        ahead, is_there = _ahead(builder, numbers32, numbers32_start, n, oldest, part)
        flags.append(builder.and_(is_there, builder.icmp_signed(">=", ahead, constant(0))))
    return _joined(builder, flags, _PARTS)


def _compared(how):
    @declare(*_OF_KEYS)
    def operation(builder, keys, key_at, n, border):
        compared = _spread(builder, border, _KEYS)
        parts = [builder.icmp_unsigned(how, _keys(builder, keys, key_at, n, part), compared) for part in _KEY_PARTS]
        return _joined(builder, parts, _KEY_PARTS)

    return operation


def _extreme(which, neutral, nothing):
    @declare(*_OF_KEYS)
    def operation(builder, keys, key_at, n, lanes):
        left_out = ir.Constant(_KEYS, [neutral] * KEY_LANES)
        parts = [
            builder.select(_flags(builder, lanes, part, _KEY_FLAGS), _keys(builder, keys, key_at, n, part), left_out)
            for part in _KEY_PARTS
        ]
        is_none = builder.icmp_signed("==", lanes, _number(0))
        return builder.select(is_none, _number(nothing), builder.zext(_reduced(builder, which, parts), _I64))

    return operation


@declare(types.int64, None, types.int64, types.int64, types.int64, types.int64)
def _fast_least_ahead(builder, numbers32, numbers32_start, n, oldest, lanes):
    parts = []
    for part in _PARTS:
        ahead, _ = _ahead(builder, numbers32, numbers32_start, n, oldest, part)
        parts.append(builder.select(_flags(builder, lanes, part, _FLAGS), ahead, constant(plain.NOTHING_ABOVE)))
    return builder.sext(_reduced(builder, "smin", parts), _I64)


_OPERATIONS = (plain.living, plain.high_lanes, plain.key_lanes, plain.smallest, plain.largest, plain.least_ahead)
if IS_PLAIN:
    living, high_lanes, key_lanes, smallest, largest, least_ahead = _OPERATIONS
elif LEVEL == "plain":
    register_jitable(plain.ahead_of)
    living, high_lanes, key_lanes, smallest, largest, least_ahead = map(register_jitable, _OPERATIONS)
else:
    living, least_ahead = _fast_living, _fast_least_ahead
    high_lanes, key_lanes = _compared(">="), _compared("==")
    smallest = _extreme("umin", neutral=MOST_KEY, nothing=plain.NOTHING_ABOVE)
    largest = _extreme("umax", neutral=0, nothing=plain.NOTHING_BELOW)
