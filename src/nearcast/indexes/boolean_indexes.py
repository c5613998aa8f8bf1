"""The names of the boolean indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.engines.registry import IndexNames

if TYPE_CHECKING:
    from nearcast.indexes.base import BooleanIndex

BOOLEAN_INDEXES: IndexNames[BooleanIndex] = IndexNames(
    what="index",
    auto="frequency_grid",
    classes={
        "scan": "nearcast.indexes.scan.index:Scan",
        "keyword_first": "nearcast.indexes.keyword_first.index:KeywordFirst",
        "spatial_first": "nearcast.indexes.spatial_first.index:SpatialFirst",
        "ir_tree": "nearcast.indexes.ir_tree.index:IRTree",
        "textual_rtree": "nearcast.indexes.textual_rtree.index:TextualRTree",
        "region_trie": "nearcast.indexes.region_trie.index:RegionTrie",
        "pivot_quadtree": "nearcast.indexes.pivot_quadtree.index:PivotQuadtree",
        "cost_filter": "nearcast.indexes.cost_filter.index:CostFilter",
        "space_first_quadtree": "nearcast.indexes.space_first_quadtree.index:SpaceFirstQuadtree",
        "keyword_first_quadtree": "nearcast.indexes.keyword_first_quadtree.index:KeywordFirstQuadtree",
        "trie_quadtree": "nearcast.indexes.trie_quadtree.index:TrieQuadtree",
        "frequency_grid": "nearcast.indexes.frequency_grid.index:FrequencyGrid",
        "adaptive_tree": "nearcast.indexes.adaptive_tree.index:AdaptiveTree",
        "frequency_pyramid": "nearcast.indexes.frequency_pyramid.index:FrequencyPyramid",
    },
)
