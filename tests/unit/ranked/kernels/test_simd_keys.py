"""Up to sixty-four messages of a list at once: as computed by hand, and as the plain twin says."""

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


# Numbers go around: the largest is before the smallest.
LAST = (1 << 31) - 1
# Numbers, the oldest that lives, and which of them live.
LIVING: list[tuple[list[int], int, int]] = [
    ([4, 5, 6, 90], 5, 0b1110),
    ([-1, 0, -7], -1, 0b011),
    ([LAST - 2, LAST, -LAST - 1, -LAST], LAST - 1, 0b1110),
    ([], 0, 0),
]
# Keys; a key, and which of them are at least that, or just that.
KEYS = [0, 3, MOST_KEY, 2, 1 << 15, 3]
AT_LEAST = {0: 0b111111, 3: 0b110110, 4: 0b010100, 1 << 15: 0b010100, MOST_KEY: 0b000100}
EQUAL = {0: 0b000001, 3: 0b100010, 4: 0, 1 << 15: 0b010000, MOST_KEY: 0b000100}
# Lanes; the smallest and the largest of their keys.
ENDS = {0b111111: (0, MOST_KEY), 0b011010: (2, 1 << 15), 0b100010: (3, 3), 0: ((1 << 31) - 1, -1)}
# Lanes; how far the first of these numbers is behind the oldest, 10.
NUMBERS = [15, 12, 10, 40]
BEHIND = {0b1001: 5, 0b0011: 2, 0b1111: 0, 0b1000: 30, 0: (1 << 31) - 1}


def check_keys_by_hand() -> None:
    """Compare every operation, compiled and plain, with what was computed by hand."""
    keys = np.zeros(1 + KEY_LANES, np.uint16)
    keys[1:7] = KEYS
    numbers, plain = np.array([7, *NUMBERS], np.int32), simd_keys_plain
    for living in (_living, plain.living):
        for numbers32, oldest, lanes in LIVING:
            assert living(np.array([7, *numbers32], np.int32), 1, len(numbers32), oldest) & BITS == lanes, (living, numbers32)
    for operation, answers in (
        (_high_lanes, AT_LEAST),
        (plain.high_lanes, AT_LEAST),
        (_key_lanes, EQUAL),
        (plain.key_lanes, EQUAL),
    ):
        for key, lanes in answers.items():
            assert operation(keys, 1, 6, key) & 0b111111 == lanes, (operation, key)
    for smallest, largest in ((_smallest, _largest), (plain.smallest, plain.largest)):
        for lanes, ends in ENDS.items():
            assert (smallest(keys, 1, 6, lanes), largest(keys, 1, 6, lanes)) == ends, (smallest, lanes)
    for least_ahead in (_least_ahead, plain.least_ahead):
        for lanes, distance in BEHIND.items():
            assert least_ahead(numbers, 1, 4, 10, lanes) == distance, (least_ahead, lanes)
        assert least_ahead(np.array([-LAST - 1], np.int32), 0, 1, LAST - 1, 1) == 2


def test_answers_are_those_computed_by_hand() -> None:
    check_keys_by_hand()


@pytest.mark.parametrize("n", [0, 1, 9, 16, 17, 32, 33, 47, 63, 64])
def test_answers_are_those_of_the_twin(n: int) -> None:
    check_keys(n)


def check_keys(n: int) -> None:
    """Compare the operations of this level with their twins on `n` messages."""
    rng, plain = np.random.default_rng(n), simd_keys_plain
    seen = set()
    for oldest in (0, 5, (1 << 31) - 3, -(1 << 31) + 2):
        for _ in range(20):
            numbers32 = (oldest + rng.integers(-8, 8, n) + (1 << 31)) % (1 << 32) - (1 << 31)
            # The last of all: no number behind is read. Keys are, up to thirty-two together, and do not count.
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
                seen.update(answers)
                expected = [plain.smallest(keys, 1, n, some), plain.largest(keys, 1, n, some)]
                assert answers == [*expected, plain.least_ahead(numbers32, 1, n, oldest, some)]
    assert n == 0 or len(seen) > 5
