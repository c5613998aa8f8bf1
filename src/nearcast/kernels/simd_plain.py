"""The operations of `simd` in plain Python: what they compute, for the run without the JIT and where nothing faster is there.

Bits travel as signed int64; results wrap around exactly as the machine's do.
"""

from __future__ import annotations

from typing import Any

_WORD = 1 << 64
_SIGN = 1 << 63

LANES = 16


def _signed(bits: int) -> int:
    bits &= _WORD - 1
    return bits - _WORD if bits & _SIGN else bits


def load8(data: Any, position: int) -> int:
    return int.from_bytes(bytes(data[position : position + 8]), "little", signed=True)


def multiply(a: int, b: int) -> int:
    return _signed(int(a) * int(b))


def add(a: int, b: int) -> int:
    return _signed(int(a) + int(b))


def shift_right(a: int, n: int) -> int:
    return _signed((int(a) & (_WORD - 1)) >> int(n))


def prefetch(array: Any, position: int) -> None:
    pass


def move_within(array: Any, start: int, end: int, by: int) -> None:
    """Move the elements from `start` to `end` up by `by` positions; none if `end` is not larger."""
    array[start + by : end + by] = array[start:end].copy()


def lowest_lane(lanes: int) -> int:
    """The number of the lowest set bit; there is one."""
    return (int(lanes) & -int(lanes)).bit_length() - 1


def copy_lanes(source: Any, at: int, n: int, target: Any, to: int) -> None:
    """Copy `n` of at most sixteen int32. The vector forms copy all sixteen: both arrays must be that long."""
    for i in range(n):
        target[to + i] = source[at + i]


def box_lanes(box: Any, at: int, stride: int, n: int, x: Any, y: Any) -> int:
    """Which of `n` boxes contain the point: bits 0 to 15 with the border, bits 16 to 31 without it.

    Box `i` has x0, y0, x1, y1 at `at + i`, `at + stride + i`, and so on.
    """
    lanes = 0
    for i in range(n):
        x0, y0, x1, y1 = box[at + i], box[at + stride + i], box[at + 2 * stride + i], box[at + 3 * stride + i]
        if x0 <= x and y0 <= y and x <= x1 and y <= y1:
            lanes |= 1 << i
            if x0 < x and y0 < y and x < x1 and y < y1:
                lanes |= 1 << (LANES + i)
    return lanes


def signature_lanes(signature: Any, at: int, n: int, filters: Any, first: int) -> int:
    """Which of `n` signatures name only bits of a filter of 512: a signature is three numbers of nine bits.

    The filter is the sixteen int32 from `filters[first]` on.
    """
    lanes = 0
    for i in range(n):
        named = int(signature[at + i])
        has_all = 1
        for _ in range(3):
            has_all &= int(filters[first + ((named >> 5) & 15)]) >> (named & 31)
            named >>= 9
        lanes |= (has_all & 1) << i
    return lanes


def equal_lanes(values: Any, at: int, n: int, wanted: int) -> int:
    """Which of `n` int32 are equal to a value. Nothing after them is read."""
    lanes = 0
    for i in range(n):
        if values[at + i] == wanted:
            lanes |= 1 << i
    return lanes


def count_below(values: Any, at: int, n: int, border: int) -> int:
    """How many of `n` int32 or int64 are below a limit. Nothing after them is read."""
    count = 0
    for i in range(n):
        count += values[at + i] < border
    return count


def append_lanes(source: Any, at: int, lanes: int, target: Any, to: int) -> int:
    """Append the elements of the lanes that are set; returns the new end. The vector form writes up to sixteen."""
    lane = 0
    while lanes >> lane:
        if (lanes >> lane) & 1:
            target[to] = source[at + lane]
            to += 1
        lane += 1
    return to


def four_boxes(box: Any, at: int, x: int, y: int) -> int:
    """Which of four boxes contain the point: bits 0 to 3 with the border, bits 4 to 7 without it.

    Coordinates have 16 bits, those of the point are below 65535. The int at `at + i` has x0 of box `i` below y0, that at
    `at + 4 + i` x1 below y1, both turned around (65535 - x1). A box of ones holds nothing.
    """
    lanes = 0
    for i in range(4):
        low, high = int(box[at + i]), ~int(box[at + 4 + i])
        x0, y0, x1, y1 = low & 65535, (low >> 16) & 65535, high & 65535, (high >> 16) & 65535
        if x0 <= x and y0 <= y and x <= x1 and y <= y1:
            lanes |= 1 << i
            if x0 < x and y0 < y and x < x1 and y < y1:
                lanes |= 1 << (4 + i)
    return lanes


def four_signatures(signature: Any, at: int, filters: Any, first: int) -> int:
    """As `signature_lanes` for four signatures in bits 0 to 3; bits 4 to 7: which of them have bit 27 set."""
    lanes = 0
    for i in range(4):
        named = int(signature[at + i])
        lanes |= ((named >> 27) & 1) << (4 + i)
        has_all = 1
        for _ in range(3):
            has_all &= int(filters[first + ((named >> 5) & 15)]) >> (named & 31)
            named >>= 9
        lanes |= (has_all & 1) << i
    return lanes


def eight_points(points: Any, at: int, low: int, high: int) -> int:
    """Which of eight points two boxes contain: bits 0 to 7 for one, 8 to 15 for the other, with the border; 16 to 31 without
    it.

    Coordinates have 16 bits, two in an int: those of x in the four ints from `at` on, those of y in the next four. `low` has x0
    and y0 of the one box, then of the other, `high` x1 and y1; all are below 65535, and a point with x = 65535 lies nowhere.
    """
    lanes = 0
    for i in range(8):
        shift = 16 * (i & 1)
        x, y = (int(points[at + (i >> 1)]) >> shift) & 65535, (int(points[at + 4 + (i >> 1)]) >> shift) & 65535
        for box in range(2):
            x0, y0 = (low >> (32 * box)) & 65535, (low >> (32 * box + 16)) & 65535
            x1, y1 = (high >> (32 * box)) & 65535, (high >> (32 * box + 16)) & 65535
            if x0 <= x and y0 <= y and x <= x1 and y <= y1:
                lanes |= 1 << (8 * box + i)
                if x0 < x and y0 < y and x < x1 and y < y1:
                    lanes |= 1 << (16 + 8 * box + i)
    return lanes


def append_four(source: Any, at: int, lanes: int, target: Any, to: int) -> int:
    """Append the elements of four whose lanes are set; returns the new end. The vector form writes four."""
    for i in range(4):
        if (lanes >> i) & 1:
            target[to] = source[at + i]
            to += 1
    return to


def append_eight(source: Any, at: int, lanes: int, target: Any, to: int) -> int:
    """Append the elements of eight whose lanes are set; returns the new end. The vector form writes eight."""
    for i in range(8):
        if (lanes >> i) & 1:
            target[to] = source[at + i]
            to += 1
    return to
