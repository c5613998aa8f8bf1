"""The way of a message through the trie and the quadtree at its end towards one clause, in words."""

from __future__ import annotations

import numpy as np

from nearcast.papers.boolean.pivot_quadtree.layout import MessageCells
from nearcast.papers.boolean.region_trie.layout import FiledArrays, RankedMessages, TrieArrays
from nearcast.papers.boolean.trie_quadtree.layout import ForestArrays


def explain_way(
    filed: FiledArrays, trie: TrieArrays, forest: ForestArrays, ranked: RankedMessages, cells: MessageCells, slot: int
) -> list[str]:
    """One line per keyword on the clause's path up to where the message is turned away, then one for its cell."""
    position = int(np.flatnonzero(filed.clause == slot)[0])
    keyword_of = {int(rank): keyword for keyword, rank in enumerate(filed.rank)}
    had = set(ranked.rank[: ranked.start[1]].tolist())
    told, node = ["root: entered"], 0
    for rank in filed.word[filed.word_start[position] : filed.word_start[position + 1]].tolist():
        if rank not in had:
            return [*told, f"keyword {keyword_of[rank]}: not entered, the message lacks it"]
        told.append(f"keyword {keyword_of[rank]}: entered")
        first, stop = trie.child_start[node], trie.child_start[node + 1]
        node = int(first + np.searchsorted(trie.word[first:stop], rank))
    n_ending = int(trie.ending_stop[node] - trie.first[node])
    copies = np.flatnonzero(forest.item == position)
    lists = np.searchsorted(forest.item_start, copies, side="right") - 1
    told.append(f"{n_ending} clauses end here; this one is filed in {len(lists)} cells of their quadtree")
    for owner in lists.tolist():
        x, y, size = int(forest.cell_x[owner]), int(forest.cell_y[owner]), int(forest.cell_size[owner])
        if x <= cells.x1[0] and cells.x0[0] < x + size and y <= cells.y1[0] and cells.y0[0] < y + size:
            n_items = int(forest.item_start[owner + 1] - forest.item_start[owner])
            return [
                *told,
                f"the message meets its cell at column {x}, row {y}: the boxes of the {n_items} clauses there are verified",
            ]
    return [*told, "the message meets none of them"]
