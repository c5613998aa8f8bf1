"""Up to sixty-four messages of a list at once give what the plain twin gives."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.compile import kernel
from nearcast.ranked.kernels import simd_keys, simd_keys_plain
from nearcast.ranked.kernels.simd_keys_plain import GROUP, KEY_LANES, MOST_KEY

BITS = (1 << GROUP) - 1
# Also where a sign would be.
SOME_KEYS = (0, 1, 3, (1 << 15) - 1, 1 << 15, MOST_KEY - 1, MOST_KEY)


@kernel
def _living(numbers32, numbers32_start, n, oldest):  # type: ignore[no-untyped-def]
    return simd_keys.living(numbers32, numbers32_start, n, oldest)


@kernel
def _high_lanes(keys, key_at, n, border):  # type: ignore[no-untyped-def]
    return simd_keys.high_lanes(keys, key_at, n, border)


@kernel
def _key_lanes(keys, key_at, n, key):  # type: ignore[no-untyped-def]
    return simd_keys.key_lanes(keys, key_at, n, key)


@kernel
def _smallest(keys, key_at, n, lanes):  # type: ignore[no-untyped-def]
    return simd_keys.smallest(keys, key_at, n, lanes)


@kernel
def _largest(keys, key_at, n, lanes):  # type: ignore[no-untyped-def]
    return simd_keys.largest(keys, key_at, n, lanes)


@kernel
def _least_ahead(numbers32, numbers32_start, n, oldest, lanes):  # type: ignore[no-untyped-def]
    return simd_keys.least_ahead(numbers32, numbers32_start, n, oldest, lanes)


@pytest.mark.parametrize("n", [0, 1, 9, 16, 17, 32, 33, 47, 63, 64])
def test_answers_are_those_of_the_twin(n: int) -> None:
    check_keys(n)


def check_keys(n: int) -> None:
    """Compare the operations of this level with their twins on `n` messages."""
    rng, plain = np.random.default_rng(n), simd_keys_plain
    changes = set()
    for oldest in (0, 5, (1 << 31) - 3, -(1 << 31) + 2):
        for _ in range(20):
            numbers32 = (oldest + rng.integers(-8, 8, n) + (1 << 31)) % (1 << 32) - (1 << 31)
            # The last numbers in memory: none behind is read. Keys are read in blocks of thirty-two; those behind do not count.
            keys = rng.choice(SOME_KEYS, 1 + -(-max(1, n) // KEY_LANES) * KEY_LANES).astype(np.uint16)
            numbers32 = np.concatenate([[7], numbers32]).astype(np.int32)
            alive, there = plain.living(numbers32, 1, n, oldest), (1 << n) - 1
            assert _living(numbers32, 1, n, oldest) & BITS == alive
            for fast, twin in ((_high_lanes, plain.high_lanes), (_key_lanes, plain.key_lanes)):
                for border in SOME_KEYS:
                    assert fast(keys, 1, n, border) & there == twin(keys, 1, n, border)
            for some in (alive, alive & plain.high_lanes(keys, 1, n, 3), alive & ~plain.high_lanes(keys, 1, n, MOST_KEY), 0):
                lanes = np.uint64(some).astype(np.int64)
                answers = [
                    _smallest(keys, 1, n, lanes),
                    _largest(keys, 1, n, lanes),
                    _least_ahead(numbers32, 1, n, oldest, lanes),
                ]
                changes.update(answers)
                expected = [plain.smallest(keys, 1, n, some), plain.largest(keys, 1, n, some)]
                assert answers == [*expected, plain.least_ahead(numbers32, 1, n, oldest, some)]
    assert n == 0 or len(changes) > 5
