"""The names of the moving indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.engine.registry import IndexNames

if TYPE_CHECKING:
    from nearcast.moving.index import MovingIndex

MOVING_INDEXES: IndexNames[MovingIndex] = IndexNames(
    what="moving index",
    auto="moving_grid",
    classes={
        "moving_scan": "nearcast.moving.moving_scan.index:MovingScan",
        "grid_space_first": "nearcast.papers.moving.grid_lists.index:GridSpaceFirst",
        "grid_keyword_first": "nearcast.papers.moving.grid_lists.index:GridKeywordFirst",
        "moving_space_first_quadtree": "nearcast.papers.moving.quadtrees.index:MovingSpaceFirstQuadtree",
        "moving_keyword_first_quadtree": "nearcast.papers.moving.quadtrees.index:MovingKeywordFirstQuadtree",
        "moving_adaptive_tree": "nearcast.papers.moving.moving_adaptive_tree.index:MovingAdaptiveTree",
        "moving_grid": "nearcast.moving.moving_grid.index:MovingGrid",
    },
)
# Where subscribers may be silent: an index that finds messages around a clause too.
MOVING_SAFE_AUTO = "moving_adaptive_tree"
