"""The machine operations give what is computed by hand, and what the plain twins give, on every level this processor has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from nearcast.kernels import simd, simd_plain
from nearcast.kernels.compile import kernel
from nearcast.testing.budget import current_budget

AVX2 = "+sse4.2,+avx,+avx2,+bmi,+popcnt,+fma"
# All tests of the run with bounds checks are at the plain level; here it is checked on its own only when there is time.
LEVELS = [
    ("avx2", AVX2),
    pytest.param("plain", "+sse2", marks=pytest.mark.skipif(not current_budget().is_soak, reason="test-bounds")),
]


@kernel
def _box_lanes(box, at, stride, n, x, y):  # type: ignore[no-untyped-def]
    return simd.box_lanes(box, at, stride, n, x, y)


@kernel
def _signature_lanes(signature, at, n, filters, first):  # type: ignore[no-untyped-def]
    return simd.signature_lanes(signature, at, n, filters, first)


@kernel
def _append_lanes(source, at, lanes, target, to):  # type: ignore[no-untyped-def]
    return simd.append_lanes(source, at, lanes, target, to)


@kernel
def _copy_lanes(source, at, n, target, to):  # type: ignore[no-untyped-def]
    simd.copy_lanes(source, at, n, target, to)


@kernel
def _equal_lanes(values, at, n, wanted):  # type: ignore[no-untyped-def]
    return simd.equal_lanes(values, at, n, wanted)


@kernel
def _count_below(values, at, n, border):  # type: ignore[no-untyped-def]
    return simd.count_below(values, at, n, border)


@kernel
def _lowest_lane(lanes):  # type: ignore[no-untyped-def]
    return simd.lowest_lane(lanes)


@kernel
def _four_boxes(box, at, x, y):  # type: ignore[no-untyped-def]
    return simd.four_boxes(box, at, x, y)


@kernel
def _four_signatures(signature, at, filters, first):  # type: ignore[no-untyped-def]
    return simd.four_signatures(signature, at, filters, first)


@kernel
def _append_four(source, at, lanes, target, to):  # type: ignore[no-untyped-def]
    return simd.append_four(source, at, lanes, target, to)


@kernel
def _eight_points(points, at, low, high):  # type: ignore[no-untyped-def]
    return simd.eight_points(points, at, low, high)


@kernel
def _append_eight(source, at, lanes, target, to):  # type: ignore[no-untyped-def]
    return simd.append_eight(source, at, lanes, target, to)


@kernel
def _load8(data, position):  # type: ignore[no-untyped-def]
    return simd.load8(data, position)


@kernel
def _multiply(a, b):  # type: ignore[no-untyped-def]
    return simd.multiply(a, b)


@kernel
def _add(a, b):  # type: ignore[no-untyped-def]
    return simd.add(a, b)


@kernel
def _shift_right(a, n):  # type: ignore[no-untyped-def]
    return simd.shift_right(a, n)


@kernel
def _prefetch(array, position):  # type: ignore[no-untyped-def]
    simd.prefetch(array, position)


@kernel
def _move_within(array, start, end, by):  # type: ignore[no-untyped-def]
    simd.move_within(array, start, end, by)


# --- by hand ---------------------------------------------------------------------------------------------------------

Operations = Mapping[str, Callable[..., Any]]
COMPILED: Operations = {
    "load8": _load8,
    "multiply": _multiply,
    "add": _add,
    "shift_right": _shift_right,
    "prefetch": _prefetch,
    "move_within": _move_within,
    "lowest_lane": _lowest_lane,
    "copy_lanes": _copy_lanes,
    "box_lanes": _box_lanes,
    "signature_lanes": _signature_lanes,
    "equal_lanes": _equal_lanes,
    "count_below": _count_below,
    "append_lanes": _append_lanes,
    "four_boxes": _four_boxes,
    "four_signatures": _four_signatures,
    "append_four": _append_four,
    "eight_points": _eight_points,
    "append_eight": _append_eight,
}
PLAIN: Operations = {name: getattr(simd_plain, name) for name in COMPILED}
LARGEST = (1 << 63) - 1


def padded(values: list[Any], dtype: Any, at: int = 0, n: int = 80) -> Any:
    """An array with these values from `at` on, long enough for every operation that reads sixteen."""
    array = np.zeros(n, dtype)
    array[at : at + len(values)] = values
    return array


def signature(*bits: int) -> int:
    """Three numbers of nine bits, the first one lowest."""
    return bits[0] + bits[1] * 512 + bits[2] * 512 * 512


def packed_box(x0: int, y0: int, x1: int, y1: int) -> tuple[int, int]:
    """The two words of a box: x0 below y0, and 65535 - x1 below 65535 - y1."""
    return x0 + 65536 * y0, (65535 - x1) + 65536 * (65535 - y1)


def four_packed(*boxes: tuple[int, int]) -> Any:
    """Four boxes from place 2 on: their first words, then their second ones."""
    words = [low for low, _ in boxes] + [high for _, high in boxes]
    return padded(words, np.uint32, 2).view(np.int32)


# Four boxes from place 1 on, 20 apart: one of side 2, one of side 2 a step further, a point, and one that is not a number.
BOXES = padded([0, 1, 2, np.nan], np.float32, 1, 100)
BOXES[21:25], BOXES[41:45], BOXES[61:65] = [0, 1, 2, 0], [2, 3, 2, 9], [2, 3, 2, 9]
# From place 3 on: the bits 0, 33 and 511 are set.
FILTER = padded([1, 2, *[0] * 13, -(1 << 31)], np.int32, 3)
SIGNATURES = [0, signature(0, 33, 511), signature(33, 33, 34), signature(511, 511, 511), signature(1, 0, 0)]
FOUR = [0, signature(33, 33, 34), 1 << 27, (1 << 27) + signature(511, 0, 33)]
PACKED = four_packed(packed_box(0, 0, 4, 4), packed_box(2, 2, 6, 6), packed_box(4, 4, 4, 4), (0xFFFFFFFF, 0xFFFFFFFF))
# Eight points from place 2 on, first all x, then all y; the last one lies nowhere.
POINTS = np.zeros(48, np.uint16)
POINTS[4:12], POINTS[12:20] = [1, 2, 3, 4, 2, 4, 0, 65535], [1, 2, 3, 4, 4, 2, 0, 2]

# Operation, arguments, what comes out. Lanes are written with the last one first.
BY_HAND: list[tuple[str, tuple[Any, ...], int]] = [
    ("load8", (padded([9, 1, 2, 0, 0, 0, 0, 0, 0, 7], np.uint8), 1), 1 + 2 * 256),
    ("load8", (padded([0, *[255] * 8], np.uint8), 1), -1),
    ("load8", (padded([*[0] * 7, 128], np.uint8), 0), -(1 << 63)),
    ("multiply", (3, -4), -12),
    ("multiply", (1 << 62, 4), 0),
    ("multiply", (LARGEST, 2), -2),
    ("add", (3, -4), -1),
    ("add", (LARGEST, 1), -(1 << 63)),
    ("add", (-(1 << 63), -1), LARGEST),
    ("shift_right", (8, 3), 1),
    ("shift_right", (-1, 60), 15),
    ("shift_right", (-1, 0), -1),
    ("lowest_lane", (1,), 0),
    ("lowest_lane", (0b110,), 1),
    ("lowest_lane", (1 << 15,), 15),
    ("box_lanes", (BOXES, 1, 20, 4, np.float32(1), np.float32(1)), 0b0011 + (0b0001 << 16)),
    ("box_lanes", (BOXES, 1, 20, 4, np.float32(2), np.float32(2)), 0b0111 + (0b0010 << 16)),
    ("box_lanes", (BOXES, 1, 20, 1, np.float32(2), np.float32(2)), 0b0001),
    ("box_lanes", (BOXES, 1, 20, 4, np.float32(5), np.float32(2)), 0),
    ("signature_lanes", (padded(SIGNATURES, np.int32, 2), 2, 5, FILTER, 3), 0b01011),
    ("signature_lanes", (padded(SIGNATURES, np.int32, 2), 2, 1, FILTER, 3), 0b1),
    ("equal_lanes", (np.array([3, 3, 1, 3, 3], np.int32), 1, 4, np.int32(3)), 0b1101),
    ("equal_lanes", (np.array([3, 3, 1, 3, 3], np.int32), 1, 2, np.int32(3)), 0b01),
    ("equal_lanes", (np.array([3, 3, 1, 3, 3], np.int32), 1, 4, np.int32(7)), 0),
    *(("count_below", (np.array([-9, -5, 0, 1, 2], kind), 1, n, border), count) for kind in (np.int32, np.int64)
      for n, border, count in ((4, 1, 2), (4, -5, 0), (4, 3, 4), (1, 3, 1))),
    ("four_boxes", (PACKED, 2, 4, 4), 0b0010_0111),
    ("four_boxes", (PACKED, 2, 1, 3), 0b0001_0001),
    ("four_boxes", (PACKED, 2, 6, 2), 0b0000_0010),
    ("four_boxes", (PACKED, 2, 65534, 65534), 0),
    ("four_signatures", (padded(FOUR, np.int32, 2), 2, FILTER, 3), 0b1100_1101),
    # The boxes (1, 1) to (3, 3) and (2, 2) to (4, 4).
    (
        "eight_points",
        (POINTS.view(np.int32), 2, 0x0002_0002_0001_0001, 0x0004_0004_0003_0003),
        0b00000111 + (0b00111110 << 8) + (0b00000010 << 16) + (0b00000100 << 24),
    ),
]  # fmt: skip
# Operation, lanes, what is appended of the numbers from 10 on.
APPENDED: list[tuple[str, int, list[int]]] = [
    ("append_lanes", 0, []),
    ("append_lanes", 0b101, [10, 12]),
    ("append_lanes", 0b1000_0000_0000_0001, [10, 25]),
    ("append_lanes", (1 << 16) - 1, list(range(10, 26))),
    ("append_four", 0, []),
    ("append_four", 0b1010, [11, 13]),
    ("append_four", 0b1111, [10, 11, 12, 13]),
    ("append_eight", 0b1000_0001, [10, 17]),
    ("append_eight", 0b0111_0000, [14, 15, 16]),
]
# First and last place, by how much they move, what comes of 0, 1, 2, 3, 4, 5.
MOVED: list[tuple[int, int, int, list[int]]] = [
    (1, 4, 2, [0, 1, 2, 1, 2, 3]),
    (2, 5, -1, [0, 2, 3, 4, 4, 5]),
    (3, 3, 1, [0, 1, 2, 3, 4, 5]),
    (0, 1, 5, [0, 1, 2, 3, 4, 0]),
]


def check_by_hand(operations: Operations) -> None:
    """Compare every operation with what was computed by hand."""
    for name, arguments, expected in BY_HAND:
        assert operations[name](*arguments) == expected, (name, arguments)
    for name, lanes, expected_numbers in APPENDED:
        target = np.zeros(40, np.int32)
        end = operations[name](np.arange(7, 60, dtype=np.int32), 3, lanes, target, 2)
        assert target[2:end].tolist() == expected_numbers, (name, lanes)
    for kind in (np.int32, np.float64):
        for start, stop, by, expected_numbers in MOVED:
            numbers = np.arange(6).astype(kind)
            operations["move_within"](numbers, start, stop, by)
            assert numbers.tolist() == expected_numbers, (start, stop, by)
    target = np.zeros(40, np.int32)
    operations["copy_lanes"](np.arange(7, 60, dtype=np.int32), 3, 4, target, 2)
    assert target[:6].tolist() == [0, 0, 10, 11, 12, 13]
    assert operations["prefetch"](target, 3) is None


@pytest.mark.parametrize("operations", [COMPILED, PLAIN], ids=["compiled", "plain"])
def test_every_operation_gives_what_is_computed_by_hand(operations: Operations) -> None:
    check_by_hand(operations)


# --- by the twins ----------------------------------------------------------------------------------------------------


def check_fours(n_trials: int) -> None:
    """The operations on four things at once."""
    rng = np.random.default_rng(2)
    for _ in range(n_trials):
        sides = rng.choice([1, 2, 3, 65533, 65534], (2, 6)) | (rng.choice([1, 2, 3, 65533, 65534], (2, 6)) << 16)
        corners = np.concatenate([sides[0, :6], ~sides[1, :4], [-1, -1]]).astype(np.uint32).astype(np.int32)
        point = rng.choice([1, 2, 3, 65533, 65534], 2).tolist()
        for at in range(4):
            assert _four_boxes(corners, at, *point) == simd_plain.four_boxes(corners, at, *point)
        signature = rng.integers(0, 1 << 28, 9).astype(np.int32)
        filters = (rng.integers(-(1 << 31), 1 << 31, 40) | rng.integers(-(1 << 31), 1 << 31, 40)).astype(np.int32)
        assert _four_signatures(signature, 3, filters, 5) == simd_plain.four_signatures(signature, 3, filters, 5)
        lanes = int(rng.integers(16))
        given, twin = np.zeros(9, np.int32), np.zeros(9, np.int32)
        end = simd_plain.append_four(signature, 3, lanes, twin, 2)
        assert _append_four(signature, 3, lanes, given, 2) == end
        assert np.array_equal(given[:end], twin[:end])


def check_eights(n_trials: int) -> None:
    """The operations on eight things at once."""
    rng = np.random.default_rng(3)
    for _ in range(n_trials):
        coordinates = rng.choice([1, 2, 3, 65533, 65534, 65535], 24).astype(np.uint16).view(np.int32)
        low, high = (rng.choice([1, 2, 3, 65533, 65534], 4).astype(np.uint16).view(np.int64).item() for _ in range(2))
        for at in range(4):
            assert _eight_points(coordinates, at, low, high) == simd_plain.eight_points(coordinates, at, low, high)
        numbers, lanes = rng.integers(0, 1 << 31, 11).astype(np.int32), int(rng.integers(256))
        given, twin = np.zeros(18, np.int32), np.zeros(18, np.int32)
        end = simd_plain.append_eight(numbers, 3, lanes, twin, 2)
        assert _append_eight(numbers, 3, lanes, given, 2) == end
        assert np.array_equal(given[:end], twin[:end])


def test_every_operation_on_four_equals_its_twin() -> None:
    check_fours(400)
    check_eights(400)


def check_lanes(n_trials: int) -> None:
    """Compare with the twins; small whole numbers make borders meet all the time."""
    rng = np.random.default_rng(1)
    for _ in range(n_trials):
        n = int(rng.integers(1, simd.LANES + 1))
        stride = int(rng.integers(n, 40))
        box = rng.integers(0, 4, 200).astype(np.float32)
        box[: 2 * stride] -= 1
        box[rng.integers(0, 200, 5)] = np.float32(np.nan)
        x, y = np.float32(rng.integers(0, 4)), np.float32(rng.integers(0, 4))
        assert _box_lanes(box, 3, stride, n, x, y) == simd_plain.box_lanes(box, 3, stride, n, x, y)
        signature = rng.integers(0, 1 << 27, 40).astype(np.int32)
        filters = (rng.integers(-(1 << 31), 1 << 31, 40) | rng.integers(-(1 << 31), 1 << 31, 40)).astype(np.int32)
        wanted = simd_plain.signature_lanes(signature, 3, n, filters, 5)
        assert _signature_lanes(signature, 3, n, filters, 5) == wanted
        # The last values of an array: nothing behind them may be read.
        values = rng.integers(0, 4, n + 2).astype(np.int32)
        assert _equal_lanes(values, 2, n, np.int32(3)) == simd_plain.equal_lanes(values, 2, n, 3)
        for kind in (np.int32, np.int64):
            numbers = (values - 1).astype(kind)
            assert _count_below(numbers, 2, n, 1) == simd_plain.count_below(numbers, 2, n, 1)
        lanes = int(rng.integers(0, 1 << simd.LANES))
        given, twin = np.zeros(40, np.int32), np.zeros(40, np.int32)
        end = simd_plain.append_lanes(signature, 3, lanes, twin, 2)
        assert _append_lanes(signature, 3, lanes, given, 2) == end
        assert np.array_equal(given[:end], twin[:end])
        _copy_lanes(signature, 7, n, given, 0)
        assert np.array_equal(given[:n], signature[7 : 7 + n])
        if lanes:
            assert _lowest_lane(lanes) == simd_plain.lowest_lane(lanes) == f"{lanes:b}"[::-1].index("1")


def test_every_operation_equals_its_twin() -> None:
    check_lanes(400)


def test_a_signature_of_no_keywords_names_the_bit_every_message_has() -> None:
    filters = np.zeros(simd.LANES, np.int32)
    assert _signature_lanes(np.zeros(16, np.int32), 0, 16, filters, 0) == 0
    filters[0] = 1
    assert _signature_lanes(np.zeros(16, np.int32), 0, 16, filters, 0) == (1 << 16) - 1


@pytest.mark.parametrize(
    ("features", "is_checked", "level"),
    [
        ({"avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq"}, False, "avx512"),
        ({"avx2", "avx512f"}, False, "avx2"),
        ({"neon"}, False, "plain"),
        ({"avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq"}, True, "plain"),
    ],
)
def test_the_level_is_the_best_that_is_whole(features: set[str], is_checked: bool, level: str) -> None:
    assert simd.level_of(features, is_checked) == level


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="there are no levels without the compiler")
@pytest.mark.skipif(bool(os.environ.get("NUMBA_BOUNDSCHECK")), reason="a checked run has one level")
@pytest.mark.parametrize(("level", "features"), LEVELS)
def test_a_lower_level_gives_the_same_answers(level: str, features: str) -> None:
    if level == "avx2" and not binding.get_host_cpu_features().get("avx2"):
        pytest.skip("this processor has no AVX2")
    code = (
        "from nearcast.kernels import simd\n"
        f"assert simd.LEVEL == {level!r}, simd.LEVEL\n"
        "from unit.kernels.test_simd import check_lanes\n"
        "check_lanes(200)\n"
        "from unit.kernels.test_simd import COMPILED, check_by_hand\n"
        "check_by_hand(COMPILED)\n"
        "from unit.kernels.test_simd import check_eights, check_fours\n"
        "check_fours(200)\n"
        "check_eights(200)\n"
        "from unit.ranked.impact_grid.test_simd_near import check_near, check_near_by_hand\n"
        "check_near_by_hand()\n"
        "check_near(13)\n"
        "from unit.ranked.kernels.test_simd_keys import check_keys, check_keys_by_hand\n"
        "check_keys_by_hand()\n"
        "check_keys(13)\n"
        "check_keys(57)\n"
        "from unit.moving.moving_grid.test_simd_alive import check_alive, check_alive_by_hand\n"
        "check_alive_by_hand()\n"
        "check_alive(13)\n"
        "from unit.boolean.frequency_grid.worlds import RandomWorld, built, expected_pairs, filed, matched_pairs\n"
        "for seed in range(8):\n"
        "    world = RandomWorld(seed)\n"
        "    store, batch = filed(world.clauses(400)), world.messages(60, 0.0)\n"
        "    assert matched_pairs(built(store), store, batch) == expected_pairs(store, batch), seed\n"
    )
    environment = {**os.environ, "NUMBA_CPU_FEATURES": features, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
