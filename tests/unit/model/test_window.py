"""Windows: what is still alive."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nearcast.errors import NearcastError
from nearcast.model.window import CountWindow, TimeWindow


def test_a_count_window_holds_the_last_n() -> None:
    assert [CountWindow(2).is_alive(tick, 5) for tick in (3, 4, 5, 6)] == [False, True, True, False]


def test_a_time_window_is_open_at_its_old_end() -> None:
    window = TimeWindow(10)
    assert not window.is_alive(90, 100)
    assert window.is_alive(90.001, 100)
    assert window.is_alive(100, 100)
    assert window == TimeWindow(10.0)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "5", None])
def test_an_unusable_count_is_refused(n: Any) -> None:
    with pytest.raises(NearcastError, match="CountWindow"):
        CountWindow(n)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True, "5", None])
def test_an_unusable_duration_is_refused(seconds: Any) -> None:
    with pytest.raises(NearcastError, match="TimeWindow"):
        TimeWindow(seconds)
