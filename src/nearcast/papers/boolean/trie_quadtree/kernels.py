"""The arrays of the quadtrees in the nodes of the trie, and the walk through the trie and these quadtrees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.pivot_quadtree.kernels import begins_needed
from nearcast.papers.boolean.region_trie.kernels import BY_COST, box_meets, push_children, stamp_ranks

NO_TREE = -1  # the root of a trie node where no clause ends


class ForestArrays(NamedTuple):
    """Quadtrees over the same space, all roots first, then level by level; the children of a node are contiguous.

    A node without children has a list; that of a small tree is its root. Cells and items are those of
    `pivot_quadtree/layout.py:QuadtreeArrays`, without keywords: those were verified on the path through the trie.
    """

    frame: np.ndarray  # float64[6]: low x, high x, columns per half unit, low y, high y, rows per half unit
    n_columns: np.ndarray  # int64[1]
    root: np.ndarray  # int32[n trie nodes]: the root of its quadtree, or NO_TREE
    cell_x: np.ndarray  # int32[n_nodes]
    cell_y: np.ndarray  # int32[n_nodes]
    cell_size: np.ndarray  # int32[n_nodes]
    child_start: np.ndarray  # int32[n_nodes + 1]
    item_start: np.ndarray  # int64[n_nodes + 1]
    item: np.ndarray  # int32[n_copies]: positions in trie order
    begins: np.ndarray  # int8[n_copies]: whether the item's first column (BEGINS_X) and row (BEGINS_Y) are in the cell
    level_start: np.ndarray  # int64[n_levels + 1]
    widest: np.ndarray  # int64[1]: most children of a node


@kernel
def match_messages(trie, forest, entries, is_alive, ranked, cells, messages, mark, scratch, first_message, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first_message`, `n_out` and the result.

    A clause ends in one trie node, reached by one path. Of its copies in the quadtree there, the one counts in whose cell the
    intersection of clause and message begins.
    """
    stamp, stack, tree_stack = scratch
    word, child_start, no_boxes = trie.word, trie.child_start, trie.box
    root, cell_x, cell_y, cell_size = forest.root, forest.cell_x, forest.cell_y, forest.cell_size
    tree_child_start, item_start, item, begins = forest.child_start, forest.item_start, forest.item, forest.begins
    clause_at, box = entries.clause, entries.box
    column0, row0, column1, row1 = cells.x0, cells.y0, cells.x1, cells.y1
    rank, rank_start = ranked.rank, ranked.start
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first_message, mx0.size):
        begin = n_out
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        left, bottom, right, top = column0[message], row0[message], column1[message], row1[message]
        start, last = rank_start[message], rank_start[message + 1] - 1
        stamp_ranks(stamp, mark, rank, start, last)
        n_visited, n_candidates = 0, 0
        stack[0] = 0
        stack[1] = start
        n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            trie_node, at = stack[2 * n_pending], stack[2 * n_pending + 1]
            n_visited += 1
            n_tree_pending = 0
            if root[trie_node] != NO_TREE:
                tree_stack[0] = root[trie_node]
                n_tree_pending = 1
            while n_tree_pending > 0:
                n_tree_pending -= 1
                node = tree_stack[n_tree_pending]
                n_visited += 1
                needed = begins_needed(left, bottom, cell_x[node], cell_y[node])
                for i in range(item_start[node], item_start[node + 1]):
                    if (begins[i] & needed) != needed:
                        continue
                    position = item[i]
                    clause = clause_at[position]
                    if not is_alive[clause]:
                        continue
                    n_candidates += 1
                    if box_meets(box, position, x0, y0, x1, y1):
                        if n_out == out_clause.size:
                            return message, begin
                        out_message[n_out] = message
                        out_clause[n_out] = clause
                        n_out += 1
                for child in range(tree_child_start[node], tree_child_start[node + 1]):
                    x, y, size = cell_x[child], cell_y[child], cell_size[child]
                    if x <= right and left < x + size and y <= top and bottom < y + size:
                        tree_stack[n_tree_pending] = child
                        n_tree_pending += 1
            n_pending = push_children(
                word, child_start, False, no_boxes, trie_node, rank, at, last, stamp, mark, BY_COST, x0, y0, x1, y1, stack,
                n_pending,
            )  # fmt: skip
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
