"""Arrays that are lent to a kernel are the same arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, kernel


class _Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@kernel
def _add_lent(pair, numbers, step):  # type: ignore[no-untyped-def]
    pair, numbers, step = borrow(pair), borrow(numbers), borrow(step)
    for i in range(numbers.size):
        pair.first[i] += numbers[i] * step
    return pair.second[1:].sum()


def test_what_is_lent_is_read_and_written_in_place() -> None:
    pair, numbers = _Pair(np.zeros(3), np.arange(3)), np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        assert _add_lent(pair, numbers, 2) == 3
    assert pair.first.tolist() == [6.0, 12.0, 18.0]
    assert numbers.tolist() == [1.0, 2.0, 3.0]
