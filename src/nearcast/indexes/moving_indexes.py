"""The names of the moving indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.engines.registry import IndexNames

if TYPE_CHECKING:
    from nearcast.indexes.moving_base import MovingIndex

MOVING_INDEXES: IndexNames[MovingIndex] = IndexNames(
    what="moving index",
    auto="moving_grid",
    classes={
        "moving_scan": "nearcast.indexes.moving_scan.index:MovingScan",
        "grid_space_first": "nearcast.indexes.grid_space_first.index:GridSpaceFirst",
        "grid_keyword_first": "nearcast.indexes.grid_keyword_first.index:GridKeywordFirst",
        "moving_space_first_quadtree": "nearcast.indexes.moving_space_first_quadtree.index:MovingSpaceFirstQuadtree",
        "moving_keyword_first_quadtree": "nearcast.indexes.moving_keyword_first_quadtree.index:MovingKeywordFirstQuadtree",
        "moving_adaptive_tree": "nearcast.indexes.moving_adaptive_tree.index:MovingAdaptiveTree",
        "moving_grid": "nearcast.indexes.moving_grid.index:MovingGrid",
    },
)
# Where subscribers may be silent: an index that finds messages around a clause too.
MOVING_SAFE_AUTO = "moving_adaptive_tree"
