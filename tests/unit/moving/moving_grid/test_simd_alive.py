"""Sixteen messages that live or not, at once, give what the plain twin gives."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.compile import kernel
from nearcast.moving.moving_grid.kernels import simd_alive, simd_alive_plain


@kernel
def _alive_lanes(slots, at, n, alive):  # type: ignore[no-untyped-def]
    return simd_alive.alive_lanes(slots, at, n, alive)


@kernel
def _fitting_lanes(slots, at, n, alive, masks, mask):  # type: ignore[no-untyped-def]
    return simd_alive.fitting_lanes(slots, at, n, alive, masks, mask)


@pytest.mark.parametrize("n", [0, 1, 9, 16])
def test_answers_are_those_of_the_twin(n: int) -> None:
    check_alive(n)


def check_alive(n: int) -> None:
    """Compare the operations of this level with their twins on `n` messages."""
    rng = np.random.default_rng(n)
    told = set()
    for _ in range(50):
        n_slots = int(rng.integers(1, 200))
        # The last of all: nothing behind is read. The highest bit of a word is that of a message like any other.
        slots = np.concatenate([[0], rng.integers(0, n_slots, n)]).astype(np.int32)
        slots[1:2] = n_slots - 1
        alive = rng.integers(0, 1 << 32, (n_slots + 31) // 32, dtype=np.uint32)
        masks = rng.integers(0, 1 << 27, n_slots).astype(np.int32)
        answer = _alive_lanes(slots, 1, n, alive)
        assert answer == simd_alive_plain.alive_lanes(slots, 1, n, alive)
        told.add(answer)
        for mask in (0, 1, 5, 1 << 26):
            answer = _fitting_lanes(slots, 1, n, alive, masks, mask)
            assert answer == simd_alive_plain.fitting_lanes(slots, 1, n, alive, masks, mask)
            told.add(answer)
    assert told == {0} if n == 0 else len(told) > 1
