"""`moving_keyword_first_quadtree`: keywords first, then cells, for clauses and messages alike."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.papers.boolean.quadtrees.index import KeywordFirstQuadtree, KeywordFirstQuadtreeParameters
from nearcast.papers.moving.quadtrees.base import MovingCells


@dataclass(frozen=True, slots=True)
class MovingKeywordFirstQuadtreeParameters(KeywordFirstQuadtreeParameters):
    """Those of `keyword_first_quadtree`. Less deep, and dearer copies, than where clauses stay: each must be moved."""

    max_depth: int = 7
    update_cost: float = 0.1


class MovingKeywordFirstQuadtree(MovingCells):
    """Each clause under its rarest keyword in the cheapest cells; each message under its keywords in the cells of its way."""

    name = "moving_keyword_first_quadtree"
    aliases = ("rq-plus-tree",)
    paper = "RQ+-Tree of Wang et al. 2017 (AP-Tree), section 5.2.1"
    summary = "a quadtree per rarest keyword, cells chosen by cost, anew at each move; messages under all their keywords"
    parameters_class = MovingKeywordFirstQuadtreeParameters
    cells_class = KeywordFirstQuadtree
