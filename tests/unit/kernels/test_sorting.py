"""Runs of numbers in order."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.compile import kernel
from nearcast.kernels.sorting import sort_into, sort_run


@kernel
def into(values, begin, n, target, to):  # type: ignore[no-untyped-def]
    sort_into(values, begin, n, target, to)


@kernel
def in_place(values, begin, end):  # type: ignore[no-untyped-def]
    sort_run(values, begin, end)


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 24, 25, 40, 128, 129, 500])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_run_is_sorted_and_what_is_around_it_stays(n: int, kind: type[np.signedinteger]) -> None:
    draw = np.random.default_rng(n)
    for most in (1, 5, np.iinfo(kind).max):
        values = draw.integers(0, most, n + 5, endpoint=True).astype(kind)
        expected = np.concatenate([values[:2], np.sort(values[2 : 2 + n]), values[2 + n :]])
        target = np.full(n + 5, -7, kind)
        into(values, 2, n, target, 3)
        assert target.tolist() == [-7] * 3 + expected[2 : 2 + n].tolist() + [-7] * 2
        in_place(values, 2, 2 + n)
        assert values.tolist() == expected.tolist()
