"""Fill the inverted file of each node, from the leaves up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.ir_tree.layout import InvertedTreeArrays
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD, distinct_pairs, file_lists
from nearcast.papers.boolean.kernels.rtree import N_NODES, NO_NODE, PLACES, ROOT, RTreeArrays, entries_of_level


def file_keywords(tree: RTreeArrays, clauses: ClauseArrays) -> InvertedTreeArrays:
    """File the entries of each node under the keywords below them; a clause without keywords under NO_KEYWORD."""
    places = tree.head[PLACES]
    entry_of_node = _entry_of_each_node(tree)
    entries = entries_of_level(tree, 0)
    start, keyword = take_lists(clauses.keyword_start, clauses.keyword, tree.child[entries])
    is_bare = np.diff(start) == 0
    entry = np.concatenate([np.repeat(entries, np.diff(start)), entries[is_bare]])
    keyword = np.concatenate([keyword, np.full(np.count_nonzero(is_bare), NO_KEYWORD, np.int32)])
    all_entries, all_keywords = [entry], [keyword]
    for _ in range(int(tree.level[tree.head[ROOT]])):
        node, keyword = distinct_pairs(entry // places, keyword)
        entry = entry_of_node[node]
        all_entries.append(entry)
        all_keywords.append(keyword)
    entry = np.concatenate(all_entries)
    lists = file_lists(entry // places, np.concatenate(all_keywords), entry % places, int(tree.head[N_NODES]))
    return InvertedTreeArrays(tree, lists)


def _entry_of_each_node(tree: RTreeArrays) -> NDArray[np.int64]:
    """Where each node stands in its parent; NO_NODE for the root."""
    entry_of_node = np.full(len(tree.level), NO_NODE, np.int64)
    for level in range(1, int(tree.level[tree.head[ROOT]]) + 1):
        entries = entries_of_level(tree, level)
        entry_of_node[tree.child[entries]] = entries
    return entry_of_node
