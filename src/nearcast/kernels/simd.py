"""Machine operations Numba does not offer, each with a plain-Python twin for the run without the JIT.

Bits travel as signed int64 in both modes; the twins wrap around exactly as the machine does.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core import config as numba_config
from numba.extending import intrinsic

_WORD = 1 << 64
_SIGN = 1 << 63


def _signed(bits: int) -> int:
    bits &= _WORD - 1
    return bits - _WORD if bits & _SIGN else bits


# --- plain twins -----------------------------------------------------------------------------------------------


def _plain_load8(data: Any, position: int) -> int:
    return int.from_bytes(bytes(data[position : position + 8]), "little", signed=True)


def _plain_multiply(a: int, b: int) -> int:
    return _signed(int(a) * int(b))


def _plain_add(a: int, b: int) -> int:
    return _signed(int(a) + int(b))


def _plain_shift_right(a: int, n: int) -> int:
    return _signed((int(a) & (_WORD - 1)) >> int(n))


def _plain_prefetch(array: Any, position: int) -> None:
    pass


# --- intrinsics ------------------------------------------------------------------------------------------------


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


if numba_config.DISABLE_JIT:
    load8, multiply, add, shift_right, prefetch = (
        _plain_load8,
        _plain_multiply,
        _plain_add,
        _plain_shift_right,
        _plain_prefetch,
    )
else:
    load8, multiply, add, shift_right, prefetch = _fast_load8, _fast_multiply, _fast_add, _fast_shift_right, _fast_prefetch
