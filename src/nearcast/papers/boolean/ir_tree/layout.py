"""The arrays of the R-tree with an inverted file in each node."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.papers.boolean.kernels.keyword_lists import KeywordListArrays
from nearcast.papers.boolean.kernels.rtree import RTreeArrays


class InvertedTreeArrays(NamedTuple):
    """Group `n` of the lists is the inverted file of node `n`: under each keyword, the places of the entries that have it."""

    tree: RTreeArrays
    lists: KeywordListArrays
