"""The way of a message down the pyramid towards a clause, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.layouts import ClauseArrays, MessageArrays
from nearcast.kernels.quadtree import column_of
from nearcast.papers.boolean.frequency_pyramid.kernels.edges import find_edge
from nearcast.papers.boolean.frequency_pyramid.kernels.lists import has_clause, list_size, nth_owner, path_length
from nearcast.papers.boolean.frequency_pyramid.layout import BELOW, NO_KEYWORD, NODE_FIELDS, NOTHING, ROOT, PyramidArrays


def tell_way(pyramid: PyramidArrays, max_depth: int, clauses: ClauseArrays, messages: MessageArrays, slot: int) -> list[str]:
    """Follow the first message from grid to grid towards the clause, to its list or to where their ways part."""
    n_path = int(path_length(clauses.keyword_start, slot))
    path = [int(nth_owner(clauses.keyword_start, clauses.keyword, slot, at)) for at in range(n_path)]
    known = {NO_KEYWORD} | {1 + int(keyword) for keyword in messages.keyword[: int(messages.keyword_start[1])]}
    lacking = [owner - 1 for owner in path if owner not in known]
    if lacking:
        return [f"not looked for: the message lacks keyword {lacking[0]}"]
    column = _common_column(pyramid.frame[:3], max_depth, (clauses.x0, clauses.x1), (messages.x0, messages.x1), slot)
    row = _common_column(pyramid.frame[3:], max_depth, (clauses.y0, clauses.y1), (messages.y0, messages.y1), slot)
    if column is None or row is None:
        return ["not met: the message lies in other cells of the finest grid"]
    told: list[str] = []
    cell = ROOT
    shift = max_depth
    while True:
        what = _in_cell(pyramid, cell, path, slot)
        place = f"depth {max_depth - shift}, column {column >> shift}, row {row >> shift}"
        if what:
            return [*told, f"{place}: {what}"]
        told.append(f"{place}: all its keywords are frequent and their tries full, further down")
        shift -= 1
        cell = int(pyramid.node[NODE_FIELDS * cell + BELOW]) + ((column >> shift) & 1) + 2 * ((row >> shift) & 1)


def _common_column(
    frame: NDArray[np.float64],
    max_depth: int,
    clause: tuple[NDArray[np.float64], NDArray[np.float64]],
    message: tuple[NDArray[np.float64], NDArray[np.float64]],
    slot: int,
) -> int | None:
    """The first column of the finest grid that clause and message have in common."""
    low, high, scale = frame.tolist()
    places = [(clause[0][slot], clause[1][slot]), (message[0][0], message[1][0])]
    columns = [[int(column_of(float(side), low, high, scale, 1 << max_depth)) for side in place] for place in places]
    first, last = max(columns[0][0], columns[1][0]), min(columns[0][1], columns[1][1])
    return first if first <= last else None


def _in_cell(pyramid: PyramidArrays, cell: int, path: list[int], slot: int) -> str:
    """Where the clause is in a cell; empty if it is further down."""
    for owner in path:
        start = int(find_edge(pyramid.slot, cell, owner))
        if start >= 0 and has_clause(pyramid.word, start, slot):
            posted = f"keyword {owner - 1}" if owner != NO_KEYWORD else "no keyword"
            return f"{_list(pyramid, start)} of {posted}, each verified"
    node = cell
    for at, owner in enumerate(path):
        value = int(find_edge(pyramid.slot, node, owner))
        if value >= 0:
            return f"{_list(pyramid, value)} in a trie, after {at + 1} keywords, each verified"
        node = ~value
    start = int(pyramid.node[NODE_FIELDS * node + BELOW])
    if start != NOTHING and has_clause(pyramid.word, start, slot):
        return f"{_list(pyramid, start)} at the end of its path in a trie, each verified"
    return ""


def _list(pyramid: PyramidArrays, start: int) -> str:
    return f"list of {int(list_size(pyramid.word[start]))} clauses"
