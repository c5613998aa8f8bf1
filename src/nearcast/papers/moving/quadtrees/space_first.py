"""`moving_space_first_quadtree`: cells first, then keywords, for clauses and messages alike."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.papers.boolean.quadtrees.index import SpaceFirstQuadtree, SpaceFirstQuadtreeParameters
from nearcast.papers.moving.quadtrees.base import MovingCells


@dataclass(frozen=True, slots=True)
class MovingSpaceFirstQuadtreeParameters(SpaceFirstQuadtreeParameters):
    """Those of `space_first_quadtree`. Less deep, and dearer copies, than where clauses stay: each must be moved."""

    max_depth: int = 7
    update_cost: float = 0.1


class MovingSpaceFirstQuadtree(MovingCells):
    """Each clause in the cheapest cells for its rarest keyword; each message in the cells of its way, under its keywords."""

    name = "moving_space_first_quadtree"
    aliases = ("iq-plus-tree",)
    paper = "IQ+-Tree of Wang et al. 2017 (AP-Tree), section 5.2.1"
    summary = "quadtree cells chosen by cost, anew at each move; in each cell lists of clauses and of messages by keyword"
    parameters_class = MovingSpaceFirstQuadtreeParameters
    cells_class = SpaceFirstQuadtree
