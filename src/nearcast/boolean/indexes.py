"""The names of the boolean indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.engine.registry import IndexNames

if TYPE_CHECKING:
    from nearcast.boolean.index import BooleanIndex

BOOLEAN_INDEXES: IndexNames[BooleanIndex] = IndexNames(
    what="index",
    auto="frequency_grid",
    classes={
        "scan": "nearcast.boolean.scan:Scan",
        "keyword_first": "nearcast.papers.boolean.keyword_first.index:KeywordFirst",
        "spatial_first": "nearcast.papers.boolean.spatial_first.index:SpatialFirst",
        "ir_tree": "nearcast.papers.boolean.ir_tree.index:IRTree",
        "textual_rtree": "nearcast.papers.boolean.textual_rtree.index:TextualRTree",
        "region_trie": "nearcast.papers.boolean.region_trie.index:RegionTrie",
        "pivot_quadtree": "nearcast.papers.boolean.pivot_quadtree.index:PivotQuadtree",
        "cost_filter": "nearcast.papers.boolean.cost_filter.index:CostFilter",
        "space_first_quadtree": "nearcast.papers.boolean.quadtrees.index:SpaceFirstQuadtree",
        "keyword_first_quadtree": "nearcast.papers.boolean.quadtrees.index:KeywordFirstQuadtree",
        "trie_quadtree": "nearcast.papers.boolean.trie_quadtree.index:TrieQuadtree",
        "frequency_grid": "nearcast.boolean.frequency_grid.index:FrequencyGrid",
        "adaptive_tree": "nearcast.papers.boolean.adaptive_tree.index:AdaptiveTree",
        "frequency_pyramid": "nearcast.papers.boolean.frequency_pyramid.index:FrequencyPyramid",
    },
)
