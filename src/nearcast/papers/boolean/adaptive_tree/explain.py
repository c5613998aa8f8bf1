"""The path of a message through the tree to a clause, in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.layouts import ClauseArrays, MessageArrays
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import covers, strip_of
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import narrow_region
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    KEYWORD,
    LEAF,
    NO_RANK,
    NODE_FIELDS,
    ROOT,
    ROWS,
    TreeArrays,
)


class _Target(NamedTuple):
    """The box of a clause or a message, and its keywords in order."""

    box: NDArray[np.float64]
    rank: list[int]


def explain_path(tree: TreeArrays, clauses: ClauseArrays, messages: MessageArrays, slot: int) -> list[str]:
    """Follow the first message from node to node towards the clause, to its leaf or to where their paths part."""
    start, stop = int(clauses.keyword_start[slot]), int(clauses.keyword_start[slot + 1])
    bounds = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    clause = _Target(np.array([bound[slot] for bound in bounds]), _ranked(tree, clauses.keyword[start:stop].tolist()))
    bounds = (messages.x0, messages.y0, messages.x1, messages.y1)
    n_keywords = int(messages.keyword_start[1])
    message = _Target(np.array([bound[0] for bound in bounds]), _ranked(tree, messages.keyword[:n_keywords].tolist()))
    lines: list[str] = []
    number, offset, position = ROOT, 0, 0
    region = tree.region.copy()
    while True:
        record = NODE_FIELDS * number
        kind, first, size, extra = tree.node[record : record + NODE_FIELDS].tolist()
        if kind == LEAF:
            return [*lines, f"leaf of {size} clauses, each verified"]
        if kind == KEYWORD:
            number, offset, position, line = _by_keyword(tree, (first, size, extra), clause, message, offset, position)
        else:
            number, line = _by_space(tree, (first, size, extra), clause, message, region)
        lines.append(line)
        if number < 0:
            return lines


def _ranked(tree: TreeArrays, keywords: list[int]) -> list[int]:
    known = [int(tree.rank[keyword]) for keyword in keywords if keyword < len(tree.rank)]
    return sorted(rank for rank in known if rank != NO_RANK)


def _by_keyword(
    tree: TreeArrays, node: tuple[int, int, int], clause: _Target, message: _Target, offset: int, position: int
) -> tuple[int, int, int, str]:
    """The next node (negative: their paths part), the offset and position there, and a line of explanation."""
    first, n_cuts, extra = node
    description = f"{n_cuts} cuts by keyword number {offset + 1}"
    if offset >= len(clause.rank):
        return extra, offset, position, f"{description}: the clause has none, which every message enters"
    cuts = first + BLOCK_FIELDS + n_cuts
    cut = int(find_cut(tree.block, cuts, n_cuts, clause.rank[offset], 0))
    for at in range(position, len(message.rank)):
        if find_cut(tree.block, cuts, n_cuts, message.rank[at], 0) == cut:
            child = int(tree.block[first + BLOCK_FIELDS + cut])
            return child, offset + 1, at + 1, f"{description}: cut {cut} has a keyword of the message"
    return -1, offset, position, f"{description}: cut {cut} is not entered, the message has no keyword in it"


def _by_space(
    tree: TreeArrays, node: tuple[int, int, int], clause: _Target, message: _Target, region: NDArray[np.float64]
) -> tuple[int, str]:
    """The next node (negative: their paths part), and a line of explanation; the region is narrowed to its cell."""
    first, size, extra = node
    n_columns, n_rows = size // ROWS, size % ROWS
    bounds = int(tree.block[first + BOUNDS])
    description = f"grid of {n_columns} by {n_rows} cells"
    if covers(clause.box, 0, region, 0):
        return extra, f"{description}: the clause covers the region, which every message enters"
    strips = []
    for axis, (at, n_strips) in enumerate(((bounds + 1, n_columns), (bounds + n_columns, n_rows))):
        # The strip of the lower left corner of the intersection, if there is one.
        low = max(int(strip_of(tree.bound, at, n_strips, box[axis])) for box in (clause.box, message.box))
        high = min(int(strip_of(tree.bound, at, n_strips, box[axis + 2])) for box in (clause.box, message.box))
        strips.append(low if low <= high else -1)
    column, row = strips
    if column < 0 or row < 0:
        return -1, f"{description}: no cell of the clause is entered, the message lies elsewhere"
    narrow_region(region, 0, tree.bound, bounds, n_columns, n_rows, column, row)
    child = int(tree.block[first + BLOCK_FIELDS + row * n_columns + column])
    return child, f"{description}: column {column}, row {row} has the message"
