"""Grids that outgrow what they were built for."""

from __future__ import annotations

import pytest

import nearcast as nc


@pytest.mark.parametrize("index", ["grid_space_first", "grid_keyword_first"])
def test_what_is_filed_long_after_the_build_is_built_in(index: str) -> None:
    matcher = nc.MovingMatcher(index, "plane", side=8)
    matcher.subscribe([nc.Subscription(i, ["a"], nc.Box(i % 5, 0, i % 5 + 1, 1)) for i in range(400)])
    for first in range(1000, 2000, 250):
        matcher.subscribe([nc.Subscription(first + i, ["ab"[i % 2]], nc.Box(i % 50, 0, i % 50 + 1, 1)) for i in range(250)])
    found = {change.subscription_id for change in matcher.publish([nc.Message(1, ["b"], (20.5, 0.5))])}
    assert found == {first + i for first in range(1000, 2000, 250) for i in range(250) if i % 2 == 1 and i % 50 in (19, 20)} - {
        first + i for first in range(1000, 2000, 250) for i in range(250) if i % 50 == 19
    }
