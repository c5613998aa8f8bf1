"""The names of the ranked indexes, and of the indexes of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.engines.registry import IndexNames

if TYPE_CHECKING:
    from nearcast.indexes.ranked_base import RankedIndex
    from nearcast.indexes.window_base import WindowIndex

RANKED_INDEXES: IndexNames[RankedIndex] = IndexNames(
    what="ranked index",
    auto="impact_grid",
    classes={
        "ranked_scan": "nearcast.indexes.ranked_scan.index:RankedScan",
        "individually_pruned": "nearcast.indexes.individually_pruned.index:IndividuallyPruned",
        "covering_quadtree": "nearcast.indexes.covering_quadtree.index:CoveringQuadtree",
        "group_pruned": "nearcast.indexes.group_pruned.index:GroupPruned",
        "impact_grid": "nearcast.indexes.impact_grid.index:ImpactGrid",
    },
)
# How ranked engines search their window: no index of subscriptions. Its class takes the ground of the ranking, no parameters.
WINDOW_INDEXES: IndexNames[WindowIndex] = IndexNames(
    what="window index",
    auto="window_grid",
    classes={
        "window_grid": "nearcast.indexes.window_grid.index:WindowGrid",
        "window_ir_tree": "nearcast.indexes.window_ir_tree.index:WindowIRTree",
    },
)
