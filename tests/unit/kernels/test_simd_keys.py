"""Sixteen messages of a list at once give what the plain twin gives."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels import simd_keys, simd_keys_plain
from nearcast.kernels.compile import kernel


@kernel
def _least_above(values, key_at, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.least_above(values, key_at, low_at, n, oldest, border)


@kernel
def _most_below(values, key_at, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.most_below(values, key_at, low_at, n, oldest, border)


@kernel
def _living_lanes(values, key_at, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.living_lanes(values, key_at, low_at, n, oldest, border)


@kernel
def _least_ahead(values, key_at, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.least_ahead(values, key_at, low_at, n, oldest, border)


@kernel
def _high_lanes(values, key_at, low_at, n, oldest, border):  # type: ignore[no-untyped-def]
    return simd_keys.high_lanes(values, key_at, low_at, n, oldest, border)


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
            # The last of all: nothing behind is read.
            values = np.concatenate([[7], rng.integers(0, 6, n), lows]).astype(np.int32)
            for fast, plain in (
                (_least_above, simd_keys_plain.least_above),
                (_most_below, simd_keys_plain.most_below),
                (_living_lanes, simd_keys_plain.living_lanes),
                (_least_ahead, simd_keys_plain.least_ahead),
                (_high_lanes, simd_keys_plain.high_lanes),
            ):
                answer = fast(values, 1, 1 + n, n, oldest, 3)
                assert answer == plain(values, 1, 1 + n, n, oldest, 3)
                told.add(answer)
    assert n == 0 or len(told) > 5
