"""Which of sixteen messages are alive: as computed by hand, and as the plain twin says."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.compile import kernel
from nearcast.moving.moving_grid.kernels import simd_alive


@kernel
def _alive_lanes(slots, at, n, alive):  # type: ignore[no-untyped-def]
    return simd_alive.alive_lanes(slots, at, n, alive)


@kernel
def _matching_lanes(slots, at, n, alive, masks, mask):  # type: ignore[no-untyped-def]
    return simd_alive.matching_lanes(slots, at, n, alive, masks, mask)


def check_alive_by_hand() -> None:
    """Six messages at places 1 to 6; those in slots 0, 5, 31 and 32 are alive."""
    alive = np.array([1 + (1 << 5) + (1 << 31), 1], np.uint32)
    slots = np.array([9, 5, 6, 31, 32, 33, 0, *[0] * 16], np.int32)
    masks = np.full(64, 0b111, np.int32)
    masks[[0, 5, 31]] = 0b001, 0b011, 0b010
    for lanes_of in (_alive_lanes, simd_alive.plain_alive_lanes):
        for n, lanes in ((6, 0b101101), (2, 0b01), (0, 0)):
            assert lanes_of(slots, 1, n, alive) == lanes, (lanes_of, n)
    for lanes_of in (_matching_lanes, simd_alive.plain_matching_lanes):
        for mask, lanes in ((0, 0b101101), (0b010, 0b001101), (0b101, 0b001000), (0b1000, 0)):
            assert lanes_of(slots, 1, 6, alive, masks, mask) == lanes, (lanes_of, mask)
        assert lanes_of(slots, 1, 3, alive, masks, 0b010) == 0b101


def test_answers_are_those_computed_by_hand() -> None:
    check_alive_by_hand()


@pytest.mark.parametrize("n", [0, 1, 9, 16])
def test_answers_are_those_of_the_twin(n: int) -> None:
    check_alive(n)


def check_alive(n: int) -> None:
    """Compare the operations of this level with their twins on `n` messages."""
    rng = np.random.default_rng(n)
    answers = set()
    for _ in range(50):
        n_slots = int(rng.integers(1, 200))
        # The last of all: nothing behind is read. The highest bit of a word is that of a message like any other.
        slots = np.concatenate([[0], rng.integers(0, n_slots, n)]).astype(np.int32)
        slots[1:2] = n_slots - 1
        alive = rng.integers(0, 1 << 32, (n_slots + 31) // 32, dtype=np.uint32)
        masks = rng.integers(0, 1 << 27, n_slots).astype(np.int32)
        answer = _alive_lanes(slots, 1, n, alive)
        assert answer == simd_alive.plain_alive_lanes(slots, 1, n, alive)
        answers.add(answer)
        for mask in (0, 1, 5, 1 << 26):
            answer = _matching_lanes(slots, 1, n, alive, masks, mask)
            assert answer == simd_alive.plain_matching_lanes(slots, 1, n, alive, masks, mask)
            answers.add(answer)
    assert answers == {0} if n == 0 else len(answers) > 1
