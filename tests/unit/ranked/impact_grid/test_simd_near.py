"""Which of sixteen entries a message may reach: as computed by hand, and as the plain twin says."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.compile import kernel
from nearcast.ranked.impact_grid.kernels import simd_near, simd_near_plain
from nearcast.ranked.impact_grid.kernels.simd_near_plain import (
    LOSS,
    MAX_RELATIVE_WEIGHT,
    MOST,
    MOST_OWN,
    MOST_WEIGHT,
    N_SLOTS,
    OWN,
)


@kernel
def _near_in_plane(entry, at, n, figures, relative_weight, word):  # type: ignore[no-untyped-def]
    return simd_near.near_in_plane(entry, at, n, figures, relative_weight, word)


@kernel
def _near_on_sphere(entry, at, n, figures, relative_weight, word):  # type: ignore[no-untyped-def]
    return simd_near.near_on_sphere(entry, at, n, figures, relative_weight, word)


OPERATIONS = ((_near_in_plane, simd_near_plain.near_in_plane), (_near_on_sphere, simd_near_plain.near_on_sphere))


def packed(x: int, y: int, z: int, lacking: int, own: int, weight: int, other: int = 0, slot: int = 0) -> list[int]:
    """The words of an entry: location; lacking (2047 is 0, a step is 1/2047), share of its own word, weight; z; other words."""
    return [x + 65536 * y, lacking + 4096 * (own + 2048 * weight), z, other + 1024 * slot, 0]


# A message at (100, 100, 100). A step away costs 1/100 of a weight of 511, and the cost is at most 1. Its rarest common word
# is worth 1 to an entry with the share 2047; of its other words the one of slot 3 is worth 1 to an entry with the share 1023.
BY_HAND: list[tuple[list[int], bool]] = [
    (packed(100, 100, 100, 3071, 2047, 511), True),  # lacks 1/2, gets 1, costs nothing
    (packed(140, 100, 100, 3071, 2047, 511), True),  # costs 0.4
    (packed(160, 100, 100, 3071, 2047, 511), False),  # costs 0.6
    (packed(160, 100, 100, 3071, 2047, 0), True),  # its distance does not count
    (packed(130, 130, 100, 3071, 2047, 511), True),  # costs 0.42
    (packed(140, 140, 100, 3071, 2047, 511), False),  # costs 0.57
    (packed(65535, 65535, 100, 1024, 2047, 511), True),  # lacks -1/2, costs 1 and not more
    (packed(65535, 65535, 100, 2252, 2047, 511), False),  # lacks 0.1
    (packed(100, 100, 100, 3071, 0, 511), False),  # gets nothing
    (packed(100, 100, 100, 3071, 0, 511, 1023, 3), True),  # gets 1 for its other word
    (packed(100, 100, 100, 3071, 0, 511, 1023, 4), False),  # gets nothing for that one
    (packed(100, 100, 100, 4095, 2047, 511, 1023, 3), True),  # lacks 1, gets 2
]
# As seen on the sphere only.
HIGHER: list[tuple[list[int], bool]] = [
    (packed(100, 100, 140, 3071, 2047, 511), True),
    (packed(100, 100, 160, 3071, 2047, 511), False),
    (packed(130, 130, 140, 3071, 2047, 511), False),  # costs 0.58
]


def check_near_by_hand() -> None:
    """Compare both operations, compiled and plain, with what was computed by hand."""
    figures, worth = np.zeros(OWN + 2, np.float32), np.zeros(2 * N_SLOTS, np.int16)
    figures[:3], figures[LOSS], figures[MOST], figures[OWN + 1] = 100, (0.01 / 511) ** 2, (1 / 511) ** 2, 1 / 2047
    worth[N_SLOTS + 3] = 32767
    for which, operations in enumerate(OPERATIONS):
        examples = BY_HAND + HIGHER if which else BY_HAND
        n, columns = len(examples), [0, 1, 2, 3, 4] if which else [0, 1, 3, 4]
        words = np.array([[words[column] for words, _ in examples] for column in columns], np.int64).ravel()
        entry = np.zeros(3 + len(words) + 32, np.int32)
        entry[3 : 3 + len(words)] = words.astype(np.uint32).view(np.int32)
        for operation in operations:
            lanes = operation(entry, 3, n, figures, worth, 1)
            assert [bool(lanes >> i & 1) for i in range(16)] == [*(is_near for _, is_near in examples), *[False] * (16 - n)]


def test_lanes_are_those_computed_by_hand() -> None:
    check_near_by_hand()


@pytest.mark.parametrize("n", [1, 7, 16])
def test_lanes_are_those_of_the_twin(n: int) -> None:
    check_near(n)


def check_near(n: int) -> None:
    """Compare the operations of this level with their twins on `n` entries."""
    rng = np.random.default_rng(n)
    n_reached = [0] * len(OPERATIONS)
    for _ in range(60):
        entry = rng.integers(-(1 << 31), 1 << 31, 8 * n + 32).astype(np.int32)
        figures, word = np.zeros(OWN + 2, np.float32), 1
        figures[:3] = rng.uniform(0, 65535, 3)
        figures[OWN + word] = rng.random() / MOST_OWN
        figures[LOSS], figures[MOST] = (rng.random() * 2e-5 / MOST_WEIGHT) ** 2, (1 / MOST_WEIGHT) ** 2
        relative_weight = rng.integers(0, MAX_RELATIVE_WEIGHT + 1, 2 * N_SLOTS).astype(np.int16)
        for at, (fast, plain) in enumerate(OPERATIONS):
            lanes = fast(entry, 3, n, figures, relative_weight, word)
            assert lanes == plain(entry, 3, n, figures, relative_weight, word)
            n_reached[at] += bin(lanes).count("1")
    assert all(0 < reached < 60 * n for reached in n_reached)
