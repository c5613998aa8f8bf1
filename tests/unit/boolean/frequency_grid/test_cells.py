"""Cells for people to look at: where they lie, what is in them."""

from __future__ import annotations

import numpy as np

import nearcast as nc

WHOLE = nc.Box(0.0, 0.0, 100.0, 100.0)


def two_crowds() -> nc.Matcher:
    """Two thousand subscriptions in one corner, a hundred in the other."""
    places = np.random.default_rng(3).uniform(0.0, 10.0, (2100, 2))
    places[2000:] += 90.0
    matcher = nc.Matcher(space="plane")
    matcher.subscribe(
        [nc.Subscription(number, ["jazz"], nc.Box(x, y, x + 0.01, y + 0.01)) for number, (x, y) in enumerate(places.tolist())]
    )
    return matcher


def test_every_clause_is_in_the_cells_that_it_meets() -> None:
    cells = two_crowds().cells(WHOLE, most=100_000).to_pydict()
    near = [x1 <= 50.0 for x1 in cells["x1"]]
    loads = {
        side: sum(load for load, is_near in zip(cells["load"], near, strict=True) if is_near is side) for side in (True, False)
    }
    assert loads[True] >= 2000
    assert loads[False] >= 100
    # A few lie over a border.
    assert sum(loads.values()) < 2 * 2100
    assert all(x0 < x1 and y0 < y1 for x0, y0, x1, y1 in zip(*(cells[side] for side in ("x0", "y0", "x1", "y1")), strict=True))


def test_only_cells_under_the_box_are_shown_and_the_fullest_first() -> None:
    matcher = two_crowds()
    corner = matcher.cells(nc.Box(90.0, 90.0, 100.0, 100.0)).to_pydict()
    assert sum(corner["load"]) >= 100
    assert min(corner["x1"]) >= 90.0
    few = matcher.cells(WHOLE, most=3).to_pydict()["load"]
    assert len(few) == 3
    assert few == sorted(matcher.cells(WHOLE).to_pydict()["load"], reverse=True)[:3]


def test_an_index_without_cells_shows_none() -> None:
    matcher = nc.Matcher(index="scan", space="plane")
    matcher.subscribe([nc.Subscription(1, ["jazz"], WHOLE)])
    assert matcher.cells(WHOLE).num_rows == 0
    assert nc.Matcher(space="plane").cells(WHOLE).num_rows == 0
