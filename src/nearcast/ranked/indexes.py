"""The names of the indexes of ranked subscriptions, and of the indexes of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.engine.registry import IndexNames

if TYPE_CHECKING:
    from nearcast.ranked.index import RankedIndex
    from nearcast.ranked.window_index import WindowIndex

RANKED_INDEXES: IndexNames[RankedIndex] = IndexNames(
    what="ranked index",
    auto="impact_grid",
    classes={
        "ranked_scan": "nearcast.papers.ranked.ranked_scan.index:RankedScan",
        "individually_pruned": "nearcast.papers.ranked.group_pruned.index:IndividuallyPruned",
        "covering_quadtree": "nearcast.papers.ranked.covering_quadtree.index:CoveringQuadtree",
        "group_pruned": "nearcast.papers.ranked.group_pruned.index:GroupPruned",
        "impact_grid": "nearcast.ranked.impact_grid.index:ImpactGrid",
    },
)
# Indexes of the window: they find the best messages of a subscription. Their class takes a distance scale and no parameters.
WINDOW_INDEXES: IndexNames[WindowIndex] = IndexNames(
    what="window index",
    auto="window_grid",
    classes={
        "window_grid": "nearcast.ranked.window_grid.index:WindowGrid",
        "window_ir_tree": "nearcast.papers.ranked.window_ir_tree.index:WindowIRTree",
    },
)
