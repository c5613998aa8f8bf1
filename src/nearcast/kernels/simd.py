"""Machine operations Numba does not offer, each with a twin in `simd_plain` for the run without the JIT.

Bits travel as signed int64 in both modes; the twins wrap around exactly as the machine does. The operations on sixteen, on
eight and on four lanes come in three levels, chosen once at import from what Numba compiles for: AVX-512, AVX2, and the twins,
compiled.
"""

from __future__ import annotations

from llvmlite import binding, ir
from numba.core import cgutils as cgutils
from numba.core import config as numba_config
from numba.core import types as types
from numba.extending import intrinsic
from numba.extending import register_jitable as register_jitable

from nearcast.kernels import simd_plain as plain

LANES = plain.LANES
_AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq")
_LEVELS = ("avx512", "avx2", "plain")


def _target_features() -> set[str]:
    """The features Numba compiles for: NUMBA_CPU_FEATURES if set, else those of this processor."""
    given = numba_config.CPU_FEATURES
    if given is not None:
        return {feature[1:] for feature in given.split(",") if feature.startswith("+")}
    return {name for name, has in binding.get_host_cpu_features().items() if has}


def level_of(features: set[str], is_checked: bool) -> str:
    """ "avx512", "avx2" or "plain". Intrinsics bypass the bounds check, so a checked run uses the plain twins."""
    if is_checked:
        return "plain"
    if features.issuperset(_AVX512):
        return "avx512"
    return "avx2" if "avx2" in features else "plain"


LEVEL = level_of(_target_features(), bool(numba_config.BOUNDSCHECK))
IS_PLAIN = bool(numba_config.DISABLE_JIT)
"""Whether kernels are not compiled at all."""


# --- intrinsics: one number at a time ----------------------------------------------------------------------------


@intrinsic
def _fast_load8(typingctx, data, position):
    def codegen(context, builder, signature, arguments):
        array_type, position_type = signature.args
        array = context.make_array(array_type)(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], position_type, types.intp)
        pointer = builder.bitcast(builder.gep(array.data, [index]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.int64(data, position), codegen


def _binary(emit):
    @intrinsic
    def operation(typingctx, a, b):
        def codegen(context, builder, signature, arguments):
            left = context.cast(builder, arguments[0], signature.args[0], types.int64)
            right = context.cast(builder, arguments[1], signature.args[1], types.int64)
            return emit(builder, left, right)

        return types.int64(a, b), codegen

    return operation


_fast_multiply = _binary(lambda builder, a, b: builder.mul(a, b))
_fast_add = _binary(lambda builder, a, b: builder.add(a, b))
_fast_shift_right = _binary(lambda builder, a, b: builder.lshr(a, b))


@intrinsic
def _fast_prefetch(typingctx, array, position):
    def codegen(context, builder, signature, arguments):
        array_type, position_type = signature.args
        data = context.make_array(array_type)(context, builder, arguments[0]).data
        index = context.cast(builder, arguments[1], position_type, types.intp)
        pointer = builder.bitcast(builder.gep(data, [index]), cgutils.voidptr_t)
        int32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, int32, int32, int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # read, keep in all cache levels, data
        builder.call(function, [pointer, ir.Constant(int32, 0), ir.Constant(int32, 3), ir.Constant(int32, 1)])
        return context.get_dummy_value()

    return types.void(array, position), codegen


@intrinsic
def _fast_move_within(typingctx, array, start, end, by):
    def codegen(context, builder, signature, arguments):
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, arguments[0]).data
        first, last, shift = (
            context.cast(builder, value, given, types.intp)
            for value, given in zip(arguments[1:], signature.args[1:], strict=True)
        )
        target = builder.gep(data, [builder.add(first, shift)])
        itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        cgutils.raw_memmove(builder, target, builder.gep(data, [first]), builder.sub(last, first), itemsize)
        return context.get_dummy_value()

    return types.void(array, start, end, by), codegen


@intrinsic
def _fast_lowest_lane(typingctx, lanes):
    def codegen(context, builder, signature, arguments):
        value = context.cast(builder, arguments[0], signature.args[0], types.int64)
        return builder.cttz(value, ir.Constant(ir.IntType(1), 1))

    return types.int64(lanes), codegen


# --- intrinsics: sixteen lanes -----------------------------------------------------------------------------------

_I1, _I16, _I32, _I64, _F32 = ir.IntType(1), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
INTS, FLOATS = ir.VectorType(_I32, LANES), ir.VectorType(_F32, LANES)
_FLAGS = ir.VectorType(_I1, LANES)
_HALF = ir.VectorType(_I32, LANES // 2)


def constant(value: int) -> ir.Constant:
    return ir.Constant(INTS, [value] * LANES)


def splat(builder, value, kind):
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), constant(0))


def load(builder, data, index, kind):
    pointer = builder.bitcast(builder.gep(data, [index]), kind.as_pointer())
    return builder.load(pointer, align=4)


def _store(builder, value, data, index):
    builder.store(value, builder.bitcast(builder.gep(data, [index]), value.type.as_pointer()), align=4)


def bits_of(builder, flags):
    return builder.zext(builder.bitcast(flags, _I16), _I64)


def first_lanes(builder, flags, n):
    """The flags of the lanes below `n`."""
    numbered = ir.Constant(INTS, list(range(LANES)))
    return builder.and_(flags, builder.icmp_signed("<", numbered, splat(builder, builder.trunc(n, _I32), INTS)))


def loaded_lanes(builder, values, at, is_there):
    """Sixteen ints of 32 or 64 bits from a position on; only those with a flag are read, the others are 0."""
    lanes = ir.VectorType(values.type.pointee, LANES)
    kind = ir.FunctionType(lanes, [cgutils.voidptr_t, _I32, _FLAGS, lanes])
    masked = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.load.v16i{lanes.element.width}.p0")
    pointer = builder.bitcast(builder.gep(values, [at]), cgutils.voidptr_t)
    return builder.call(masked, [pointer, ir.Constant(_I32, 4), is_there, ir.Constant(lanes, [0] * LANES)])


def declare(result, *arguments):
    """An intrinsic that gets its array arguments as pointers and its numbers as int64 or float32."""

    def decorate(emit):
        def codegen(context, builder, signature, given):
            values = []
            for kind, value in zip(signature.args, given, strict=True):
                if isinstance(kind, types.Array):
                    values.append(context.make_array(kind)(context, builder, value).data)
                else:
                    values.append(value)
            answer = emit(builder, *values)
            return context.get_dummy_value() if answer is None else answer

        def typed(kinds):
            return result(*(kind if wanted is None else wanted for kind, wanted in zip(kinds, arguments, strict=True)))

        # Numba needs a fixed number of parameters, so each arity is spelled out.
        if len(arguments) == 3:

            @intrinsic
            def operation3(typingctx, a, b, c):
                return typed((a, b, c)), codegen

            return operation3

        if len(arguments) == 4:

            @intrinsic
            def operation4(typingctx, a, b, c, d):
                return typed((a, b, c, d)), codegen

            return operation4

        if len(arguments) == 5:

            @intrinsic
            def operation5(typingctx, a, b, c, d, e):
                return typed((a, b, c, d, e)), codegen

            return operation5

        if len(arguments) == 6:

            @intrinsic
            def operation6(typingctx, a, b, c, d, e, f):
                return typed((a, b, c, d, e, f)), codegen

            return operation6

        @intrinsic
        def operation7(typingctx, a, b, c, d, e, f, g):
            return typed((a, b, c, d, e, f, g)), codegen

        return operation7

    return decorate


@declare(types.void, None, types.int64, types.int64, None, types.int64)
def _fast_copy_lanes(builder, source, at, n, target, to):
    _store(builder, load(builder, source, at, INTS), target, to)


@declare(types.int64, None, types.int64, types.int64, types.int64, types.float32, types.float32)
def _fast_box_lanes(builder, box, at, stride, n, x, y):
    position, sides = at, []
    for _ in range(4):
        sides.append(load(builder, box, position, FLOATS))
        position = builder.add(position, stride)
    xs, ys = splat(builder, x, FLOATS), splat(builder, y, FLOATS)
    answers = []
    for operation in ("<=", "<"):
        flags = builder.fcmp_ordered(operation, sides[0], xs)
        flags = builder.and_(flags, builder.fcmp_ordered(operation, sides[1], ys))
        flags = builder.and_(flags, builder.fcmp_ordered(operation, xs, sides[2]))
        flags = builder.and_(flags, builder.fcmp_ordered(operation, ys, sides[3]))
        answers.append(bits_of(builder, first_lanes(builder, flags, n)))
    return builder.or_(answers[0], builder.shl(answers[1], ir.Constant(_I64, LANES)))


def _look_up_512(builder, filters, first, place):
    """The word of the filter that each lane names, by one permutation of its sixteen words."""
    words = load(builder, filters, first, INTS)
    kind = ir.FunctionType(INTS, [INTS, INTS])
    permute = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.permvar.si.512")
    return builder.call(permute, [words, place])


def _look_up_256(builder, filters, first, place):
    """The same with registers of eight words: both halves of the filter are permuted and one is chosen."""
    kind = ir.FunctionType(_HALF, [_HALF, _HALF])
    permute = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.permd")
    eight = ir.Constant(_I64, LANES // 2)
    halves = [load(builder, filters, index, _HALF) for index in (first, builder.add(first, eight))]
    undefined = ir.Constant(INTS, ir.Undefined)
    found = []
    for begin in (0, LANES // 2):
        chosen = ir.Constant(_HALF, list(range(begin, begin + LANES // 2)))
        own = builder.shuffle_vector(place, undefined, chosen)
        low, high = (builder.call(permute, [half, own]) for half in halves)
        is_high = builder.icmp_signed("!=", builder.and_(own, ir.Constant(_HALF, [8] * 8)), ir.Constant(_HALF, [0] * 8))
        found.append(builder.select(is_high, high, low))
    return builder.shuffle_vector(found[0], found[1], ir.Constant(INTS, list(range(LANES))))


def _signature_lanes(look_up):
    @declare(types.int64, None, types.int64, types.int64, None, types.int64)
    def operation(builder, signature, at, n, filters, first):
        named = load(builder, signature, at, INTS)
        has_all = constant(1)
        for _ in range(3):
            place = builder.and_(builder.lshr(named, constant(5)), constant(15))
            word = look_up(builder, filters, first, place)
            has_all = builder.and_(has_all, builder.lshr(word, builder.and_(named, constant(31))))
            named = builder.lshr(named, constant(9))
        return bits_of(builder, first_lanes(builder, builder.icmp_signed("!=", has_all, constant(0)), n))

    return operation


@declare(types.int64, None, types.int64, types.int64, types.int32)
def _fast_equal_lanes(builder, values, at, n, wanted):
    is_there = first_lanes(builder, ir.Constant(_FLAGS, [1] * LANES), n)
    found = loaded_lanes(builder, values, at, is_there)
    return bits_of(builder, builder.and_(is_there, builder.icmp_signed("==", found, splat(builder, wanted, INTS))))


@declare(types.int64, None, types.int64, types.int64, types.int64)
def _fast_count_below(builder, values, at, n, border):
    is_there = first_lanes(builder, ir.Constant(_FLAGS, [1] * LANES), n)
    found = loaded_lanes(builder, values, at, is_there)
    own = border if found.type.element == _I64 else builder.trunc(border, found.type.element)
    is_below = builder.icmp_signed("<", found, splat(builder, own, found.type))
    return builder.ctpop(bits_of(builder, builder.and_(is_there, is_below)))


@declare(types.int64, None, types.int64, types.int64, None, types.int64)
def _fast_append_lanes(builder, source, at, lanes, target, to):
    flags = builder.bitcast(builder.trunc(lanes, _I16), _FLAGS)
    kind = ir.FunctionType(INTS, [INTS, INTS, _FLAGS])
    compress = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.mask.compress.v16i32")
    # Compressed in a register and stored as a whole: compressing into memory is slow on some processors.
    _store(builder, builder.call(compress, [load(builder, source, at, INTS), constant(0), flags]), target, to)
    return builder.add(to, builder.ctpop(builder.and_(lanes, ir.Constant(_I64, (1 << LANES) - 1))))


# --- intrinsics: four things at once -------------------------------------------------------------------------------

_FOUR, _FOUR_FLAGS = ir.VectorType(_I32, 4), ir.VectorType(_I1, 4)


def _both(builder, bits, shift):
    """Bits that are set both here and `shift` positions higher."""
    return builder.and_(bits, builder.lshr(bits, ir.Constant(_I64, shift)))


def _masked(builder, bits, mask):
    return builder.and_(bits, ir.Constant(_I64, mask))


@declare(types.int64, None, types.int64, types.int64, types.int64)
def _fast_four_boxes(builder, box, at, x, y):
    shorts = ir.VectorType(_I16, LANES)
    sides = builder.bitcast(load(builder, box, at, _HALF), shorts)
    corner = builder.trunc(builder.or_(x, builder.shl(y, ir.Constant(_I64, 16))), _I32)
    one = builder.insert_element(ir.Constant(_HALF, ir.Undefined), corner, ir.Constant(_I32, 0))
    # Four times the point, then four times its complement.
    corners = builder.shuffle_vector(one, ir.Constant(_HALF, ir.Undefined), ir.Constant(_HALF, [0] * 8))
    point = builder.bitcast(builder.xor(corners, ir.Constant(_HALF, [0] * 4 + [-1] * 4)), shorts)
    answers = []
    for operation in ("<=", "<"):
        halves = builder.sext(builder.icmp_unsigned(operation, sides, point), shorts)
        is_below = builder.icmp_signed("==", builder.bitcast(halves, _HALF), ir.Constant(_HALF, [-1] * 8))
        bits = builder.zext(builder.bitcast(is_below, ir.IntType(8)), _I64)
        answers.append(_masked(builder, _both(builder, bits, 4), 15))
    return builder.or_(answers[0], builder.shl(answers[1], ir.Constant(_I64, 4)))


def _four_signatures(look_up):
    @declare(types.int64, None, types.int64, None, types.int64)
    def operation(builder, signature, at, filters, first):
        four = load(builder, signature, at, _FOUR)
        named = builder.shuffle_vector(four, four, ir.Constant(INTS, [0, 1, 2, 3] * 4))
        is_more = builder.icmp_signed("!=", builder.and_(named, constant(1 << 27)), constant(0))
        has_all = constant(1)
        for _ in range(3):
            place = builder.and_(builder.lshr(named, constant(5)), constant(15))
            word = look_up(builder, filters, first, place)
            has_all = builder.and_(has_all, builder.lshr(word, builder.and_(named, constant(31))))
            named = builder.lshr(named, constant(9))
        fitting = bits_of(builder, builder.icmp_signed("!=", has_all, constant(0)))
        return builder.or_(_masked(builder, fitting, 15), _masked(builder, bits_of(builder, is_more), 15 << 4))

    return operation


@declare(types.int64, None, types.int64, types.int64, None, types.int64)
def _fast_append_four(builder, source, at, lanes, target, to):
    lanes = _masked(builder, lanes, 15)
    flags = builder.bitcast(builder.trunc(lanes, ir.IntType(4)), _FOUR_FLAGS)
    kind = ir.FunctionType(_FOUR, [_FOUR, _FOUR, _FOUR_FLAGS])
    compress = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.mask.compress.v4i32")
    four = builder.call(compress, [load(builder, source, at, _FOUR), ir.Constant(_FOUR, [0] * 4), flags])
    _store(builder, four, target, to)
    return builder.add(to, builder.ctpop(lanes))


# --- intrinsics: eight things at once ------------------------------------------------------------------------------

_FOUR_SHORTS, _POINTS = ir.VectorType(_I16, 4), ir.VectorType(_I16, 32)
_EIGHT_FLAGS = ir.VectorType(_I1, 8)


@declare(types.int64, None, types.int64, types.int64, types.int64)
def _fast_eight_points(builder, points, at, low, high):
    once = builder.bitcast(load(builder, points, at, _HALF), ir.VectorType(_I16, LANES))
    # Eight x and eight y, for one box and for the other.
    coordinates = builder.shuffle_vector(once, once, ir.Constant(ir.VectorType(_I32, 32), [*range(LANES)] * 2))
    eight_times = ir.Constant(ir.VectorType(_I32, 32), [i // 8 for i in range(32)])
    corners = [builder.bitcast(corner, _FOUR_SHORTS) for corner in (low, high)]
    lows, highs = (builder.shuffle_vector(corner, corner, eight_times) for corner in corners)
    answers = []
    for operation in ("<=", "<"):
        is_above = builder.icmp_unsigned(operation, lows, coordinates)
        is_inside = builder.and_(is_above, builder.icmp_unsigned(operation, coordinates, highs))
        bits = _both(builder, builder.zext(builder.bitcast(is_inside, _I32), _I64), 8)
        second = _masked(builder, builder.lshr(bits, ir.Constant(_I64, 8)), 255 << 8)
        answers.append(builder.or_(_masked(builder, bits, 255), second))
    return builder.or_(answers[0], builder.shl(answers[1], ir.Constant(_I64, 16)))


@declare(types.int64, None, types.int64, types.int64, None, types.int64)
def _fast_append_eight(builder, source, at, lanes, target, to):
    lanes = _masked(builder, lanes, 255)
    flags = builder.bitcast(builder.trunc(lanes, ir.IntType(8)), _EIGHT_FLAGS)
    kind = ir.FunctionType(_HALF, [_HALF, _HALF, _EIGHT_FLAGS])
    compress = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.mask.compress.v8i32")
    eight = builder.call(compress, [load(builder, source, at, _HALF), ir.Constant(_HALF, [0] * 8), flags])
    _store(builder, eight, target, to)
    return builder.add(to, builder.ctpop(lanes))


_EIGHTS = {
    "avx512": (_fast_eight_points, _fast_append_eight),
    "avx2": (_fast_eight_points, plain.append_eight),
    "plain": (plain.eight_points, plain.append_eight),
}
_FOURS = {
    "avx512": (_fast_four_boxes, _four_signatures(_look_up_512), _fast_append_four),
    "avx2": (_fast_four_boxes, _four_signatures(_look_up_256), plain.append_four),
    "plain": (plain.four_boxes, plain.four_signatures, plain.append_four),
}
_SIXTEEN = {
    "avx512": (_fast_copy_lanes, _fast_box_lanes, _signature_lanes(_look_up_512), _fast_equal_lanes, _fast_append_lanes),
    # There is no compression below AVX-512: go through the few lanes that are set.
    "avx2": (_fast_copy_lanes, _fast_box_lanes, _signature_lanes(_look_up_256), _fast_equal_lanes, plain.append_lanes),
    "plain": (plain.copy_lanes, plain.box_lanes, plain.signature_lanes, plain.equal_lanes, plain.append_lanes),
}
_COUNT_BELOW = {"avx512": _fast_count_below, "avx2": _fast_count_below, "plain": plain.count_below}

if numba_config.DISABLE_JIT:
    load8, multiply, add = plain.load8, plain.multiply, plain.add
    shift_right, prefetch, lowest_lane = plain.shift_right, plain.prefetch, plain.lowest_lane
    move_within = plain.move_within
    copy_lanes, box_lanes, signature_lanes, equal_lanes, append_lanes = _SIXTEEN["plain"]
    four_boxes, four_signatures, append_four = _FOURS["plain"]
    eight_points, append_eight = _EIGHTS["plain"]
    count_below = plain.count_below
else:
    load8, multiply, add, shift_right, prefetch = _fast_load8, _fast_multiply, _fast_add, _fast_shift_right, _fast_prefetch
    lowest_lane, move_within = _fast_lowest_lane, _fast_move_within
    copy_lanes, box_lanes, signature_lanes, equal_lanes, append_lanes = (
        register_jitable(operation) if operation.__module__ == plain.__name__ else operation for operation in _SIXTEEN[LEVEL]
    )
    four_boxes, four_signatures, append_four = (
        register_jitable(operation) if operation.__module__ == plain.__name__ else operation for operation in _FOURS[LEVEL]
    )
    eight_points, append_eight = (
        register_jitable(operation) if operation.__module__ == plain.__name__ else operation for operation in _EIGHTS[LEVEL]
    )
    count_below = register_jitable(_COUNT_BELOW[LEVEL]) if LEVEL == "plain" else _COUNT_BELOW[LEVEL]
