"""Sixteen lanes at once give what the plain twins give, on every level this processor has."""

from __future__ import annotations

import os
import subprocess
import sys

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
        "from unit.kernels.test_simd import check_eights, check_fours\n"
        "check_fours(200)\n"
        "check_eights(200)\n"
        "from unit.ranked.impact_grid.test_simd_near import check_near\n"
        "check_near(13)\n"
        "from unit.ranked.kernels.test_simd_keys import check_keys\n"
        "check_keys(13)\n"
        "check_keys(57)\n"
        "from unit.moving.moving_grid.test_simd_alive import check_alive\n"
        "check_alive(13)\n"
        "from unit.boolean.frequency_grid.worlds import RandomWorld, built, expected, filed, found\n"
        "for seed in range(8):\n"
        "    world = RandomWorld(seed)\n"
        "    store, batch = filed(world.clauses(400)), world.messages(60, 0.0)\n"
        "    assert found(built(store), store, batch) == expected(store, batch), seed\n"
    )
    environment = {**os.environ, "NUMBA_CPU_FEATURES": features, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
