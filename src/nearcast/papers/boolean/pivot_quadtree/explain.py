"""The way of a message through the quadtree towards one clause, in words."""

from __future__ import annotations

import numpy as np

from nearcast.papers.boolean.pivot_quadtree.layout import NO_NODE, MessageCells, QuadtreeArrays
from nearcast.papers.boolean.region_trie.layout import FiledArrays, RankedMessages


def explain_quadtree(
    filed: FiledArrays, tree: QuadtreeArrays, ranked: RankedMessages, cells: MessageCells, slot: int
) -> list[str]:
    """One line per node on the path to the copy of the clause that counts for the message, if there is one."""
    position = int(np.flatnonzero(filed.clause == slot)[0])
    copies = np.flatnonzero(tree.item == position)
    nodes = np.searchsorted(tree.item_start, copies, side="right") - 1
    told = [f"filed in {len(nodes)} lists"]
    met = [int(node) for node in nodes if _is_met(tree, int(node), cells)]
    if not met:
        return [*told, "the cells of none of them meet the message"]
    path = [met[0]]
    while tree.parent[path[-1]] != NO_NODE:
        path.append(int(tree.parent[path[-1]]))
    had = set(ranked.rank[: ranked.start[1]].tolist())
    for depth, node in enumerate(path[::-1]):
        n_items = int(tree.item_start[node + 1] - tree.item_start[node])
        name = f"level {depth}, node {node}" + (f" with a list of {n_items} clauses" if n_items else "")
        if had & set(tree.cover[tree.cover_start[node] : tree.cover_start[node + 1]].tolist()):
            return [*told, f"{name}: the message has a keyword pivotal in every list below, all that it meets are verified"]
        if not had & set(tree.other[tree.other_start[node] : tree.other_start[node + 1]].tolist()):
            return [*told, f"{name}: the message has none of its pivotal keywords"]
        told.append(f"{name}: entered, the message has a keyword pivotal in some list below")
    raise AssertionError("a list has cover words only")  # pragma: no cover


def _is_met(tree: QuadtreeArrays, node: int, cells: MessageCells) -> bool:
    x, y, size = int(tree.cell_x[node]), int(tree.cell_y[node]), int(tree.cell_size[node])
    return bool(x <= cells.x1[0] and cells.x0[0] < x + size and y <= cells.y1[0] and cells.y0[0] < y + size)
