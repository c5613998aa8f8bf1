"""Sixteen messages of a list at once give what the plain twin gives."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels import simd_keys, simd_keys_plain
from nearcast.kernels.compile import kernel
from nearcast.kernels.simd_plain import LANES


@kernel
def _least_above(keys, key_at, lows, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.least_above(keys, key_at, lows, low_at, n, oldest, border)


@kernel
def _most_below(keys, key_at, lows, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.most_below(keys, key_at, lows, low_at, n, oldest, border)


@kernel
def _living_lanes(keys, key_at, lows, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.living_lanes(keys, key_at, lows, low_at, n, oldest, border)


@kernel
def _least_ahead(keys, key_at, lows, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.least_ahead(keys, key_at, lows, low_at, n, oldest, border)


@kernel
def _high_lanes(keys, key_at, lows, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.high_lanes(keys, key_at, lows, low_at, n, oldest, border)


@pytest.mark.parametrize("n", [0, 1, 9, 16])
def test_answers_are_those_of_the_twin(n: int) -> None:
    check_keys(n)


def check_keys(n: int) -> None:
    """Compare the operations of this level with their twins on `n` messages."""
    rng = np.random.default_rng(n)
    told = set()
    for oldest in (0, 5, (1 << 31) - 3, -(1 << 31) + 2):
        for _ in range(20):
            lows = (oldest + rng.integers(-8, 8, n) + (1 << 31)) % (1 << 32) - (1 << 31)
            # The last of all: no number behind is read. Keys are, and do not count.
            keys = np.concatenate([[7], rng.integers(0, 6, n + LANES)]).astype(np.uint16)
            lows = np.concatenate([[7], lows]).astype(np.int32)
            for fast, plain in (
                (_least_above, simd_keys_plain.least_above),
                (_most_below, simd_keys_plain.most_below),
                (_living_lanes, simd_keys_plain.living_lanes),
                (_least_ahead, simd_keys_plain.least_ahead),
                (_high_lanes, simd_keys_plain.high_lanes),
            ):
                answer = fast(keys, 1, lows, 1, n, oldest, 3)
                assert answer == plain(keys, 1, lows, 1, n, oldest, 3)
                told.add(answer)
    assert n == 0 or len(told) > 5
