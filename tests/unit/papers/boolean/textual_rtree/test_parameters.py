"""Options that are not possible are refused with what was given and what was expected."""

from __future__ import annotations

from typing import Any

import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"representatives": "few"}, "representatives='few' is not possible; expected one of all, one, many"),
        ({"selection": "tf"}, "selection='tf' is not possible; expected one of random, df, idf, local"),
        ({"node_capacity": 3}, "node_capacity=3 is not possible; expected 4 to 1024"),
        ({"root": "tall"}, "root='tall' is not possible; expected one of wide, packed"),
        ({"seed": -1}, "seed=-1 is not possible; expected 0 or more"),
    ],
)
def test_an_impossible_option_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IndexParameterError, match=said):
        nc.Matcher(index="textual_rtree", **given)
