"""Cells that cover the plane for each subscription, and the lists in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.kernels.quadtree import cell_code
from nearcast.papers.ranked.covering_quadtree.index import CoveringQuadtree
from nearcast.papers.ranked.covering_quadtree.kernels import Cover, column_at, nearness_of_cell
from nearcast.ranked.kernels.scoring import proximity


def ranker(space: str = "plane", **options: Any) -> nc.Ranker:
    return nc.Ranker(nc.CountWindow(12), "covering_quadtree", "kmax", space, max_distance=1e6, **options)


def codes_of(index: CoveringQuadtree, r: nc.Ranker, number: int) -> list[int]:
    return [int(key) >> 32 for key in index._keys(r._engine.shards[0].subscriptions, np.array([number], np.int32))]


@pytest.mark.parametrize("levels", [1, 3])
def test_every_place_is_in_one_cell_of_every_subscription(levels: int) -> None:
    rng = np.random.default_rng(2)
    r = ranker(levels=levels)
    r.subscribe(nc.RankedSubscription(i, ["a"], tuple(place)) for i, place in enumerate(rng.random((20, 2))))
    index = r._engine.shards[0].index
    assert isinstance(index, CoveringQuadtree)
    cover = index._cover
    for place in [*rng.random((30, 2)) * 3 - 1, *rng.random((3, 2)) * 1e300]:
        column, row = column_at(place[0], cover.x0, cover.x1, levels), column_at(place[1], cover.y0, cover.y1, levels)
        around = {cell_code(depth, column >> (levels - depth), row >> (levels - depth)) for depth in range(1, levels + 1)}
        for number in range(20):
            codes = codes_of(index, r, number)
            assert len(codes) == 3 * levels + 1
            assert len(around & set(codes)) == 1


@pytest.mark.parametrize(("is_lonlat", "reach"), [(False, 2.0), (True, 1e6)])
def test_nothing_in_a_cell_is_nearer_than_the_cell(is_lonlat: bool, reach: float) -> None:
    rng = np.random.default_rng(4)
    box = (-180.0, -90.0, 180.0, 90.0) if is_lonlat else (100.0, 100.0, 101.0, 102.0)
    cover = Cover(is_lonlat, reach, *box, 3)
    low, high = np.array(box[:2]), np.array(box[2:])
    for _ in range(200):
        (x, y), (other_x, other_y) = (low + rng.integers(0, 17, 2) / 16 * (high - low) for _ in range(2))
        column, row = column_at(other_x, cover.x0, cover.x1, 3), column_at(other_y, cover.y0, cover.y1, 3)
        bound = nearness_of_cell(cover, x, y, 3, column, row)
        assert bound >= proximity(is_lonlat, reach, x, y, other_x, other_y) - 1e-12


def test_the_frame_is_chosen_anew_when_many_more_have_come() -> None:
    r = ranker()
    r.subscribe([nc.RankedSubscription(0, ["a"], (5, 5))])
    index = r._engine.shards[0].index
    assert isinstance(index, CoveringQuadtree)
    r.subscribe(nc.RankedSubscription(i, ["a"], (i, i)) for i in range(1, 100))
    assert index._cover[2:6] == (0.0, 0.0, 99.0, 99.0) or index._cover[2:6] == (1.0, 1.0, 99.0, 99.0)
    r.publish([nc.Message(1, ["a"], (50, 50))])
    assert r.stats()["met"] == 100
    r.unsubscribe(range(1, 100))
    assert r.stats()["postings"] == 13


def test_what_index_and_ranker_tell(tmp_path: Path) -> None:
    r = ranker("lonlat", levels=2)
    r.subscribe([nc.RankedSubscription(1, ["a", "b"], (10, 10))])
    changes = r.explain(nc.Message(1, ["a"], (0, 0)), 1)
    assert changes.path[0].startswith("7 cells cover the plane; 2 keywords: 14 lists of 1.0")
    r.save(tmp_path / "saved")
    again = nc.Ranker.open(tmp_path / "saved")
    again.publish([nc.Message(1, ["a"], (10, 10))])
    assert [score for _, score in again.top(1)] == [pytest.approx(0.853553)]
    assert again.stats()["lists"] == 14


def test_parameters_are_checked() -> None:
    with pytest.raises(IndexParameterError, match="levels=0 is not possible"):
        ranker(levels=0)
