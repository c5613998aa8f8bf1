"""Numbers as people give them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nearcast.errors import MessageError, RegionError
from nearcast.model.inputs import finite_number, read_point, whole_number


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", None, 10**400, [1.0], 1j])
def test_what_is_no_finite_number_is_refused_with_its_name(value: object) -> None:
    with pytest.raises(MessageError, match="the answer"):
        finite_number(value, "the answer", MessageError)


def test_numpy_numbers_become_plain_ones() -> None:
    assert type(finite_number(np.float32(0.5), "it")) is float
    assert type(whole_number(np.int64(7))) is int
    assert whole_number(7.0) is None
    assert whole_number(True) is None


def test_a_point_is_any_pair() -> None:
    assert read_point([1, 2.5], "it") == (1.0, 2.5)
    assert read_point(np.array([1.0, 2.0]), "it") == (1.0, 2.0)


@pytest.mark.parametrize("value", [(1,), (1, 2, 3), "12", {"x": 1, "y": 2}, 5, None, {1, 2}])
def test_what_is_no_pair_is_refused(value: object) -> None:
    with pytest.raises(RegionError, match=r"expected \(x, y\)"):
        read_point(value, "the location")
