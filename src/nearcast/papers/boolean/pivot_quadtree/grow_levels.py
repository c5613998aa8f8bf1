"""Grow quadtrees from their roots, level by level, within a budget of copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.sorting import offsets_from_counts
from nearcast.papers.boolean.pivot_quadtree.kernels import split
from nearcast.papers.boolean.pivot_quadtree.layout import NO_NODE, MessageCells

# Paper: the push-down of lists to the leaves is bounded by "an extra space buffer"; its size is not given.
MOST_COPIES = 8


@dataclass(frozen=True, slots=True)
class Growth:
    """How a quadtree grows: lists of at most `leaf_size`, cells of at least one column, each clause once or in all leaves."""

    leaf_size: int
    n_columns: int
    is_once: bool


class GrownNodes(NamedTuple):
    """Nodes level by level, and the items of each."""

    parent: NDArray[np.int32]
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    size: NDArray[np.int32]
    n_children: NDArray[np.int64]
    n_items: NDArray[np.int64]
    item: NDArray[np.int32]
    level_start: NDArray[np.int64]


class _Level(NamedTuple):
    parent: NDArray[np.int64]
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    size: NDArray[np.int32]
    is_run: NDArray[np.bool_]
    n_items: NDArray[np.int64]
    item: NDArray[np.int32]


def grow(cells: MessageCells, growth: Growth, n_in_root: NDArray[np.int64]) -> GrownNodes:
    """Quadtrees over boxes with these columns and rows, all over the same space; the first has the first n_in_root[0] boxes."""
    n, n_roots = len(cells.x0), len(n_in_root)
    corner, item = np.zeros(n_roots, np.int32), np.arange(n, dtype=np.int32)
    roots = np.full(n_roots, NO_NODE), corner, corner, corner + growth.n_columns
    level = _Level(*roots, np.zeros(n_roots, np.bool_), n_in_root, item)
    levels, kept = [level], []
    n_nodes, n_copies = 0, n
    while True:
        fate = _decide(level, cells, growth, MOST_COPIES * n - n_copies)
        is_kept = np.repeat(fate == split.IS_LEAF, level.n_items)
        kept.append(level.item[is_kept])
        below = _below(level, fate, cells, growth, n_nodes)
        levels[-1] = level._replace(n_items=np.where(fate == split.IS_LEAF, level.n_items, 0))
        n_nodes += len(level.x)
        if len(below.x) == 0:
            break
        n_copies += len(below.item) - int(np.count_nonzero(~is_kept))
        levels.append(below)
        level = below
    n_children = np.bincount(np.concatenate([one.parent for one in levels])[n_roots:], minlength=n_nodes)
    parent, x, y, size = (np.concatenate(column).astype(np.int32) for column in list(zip(*levels, strict=True))[:4])
    level_start = np.concatenate([[0], np.cumsum([len(one.x) for one in levels])])
    n_items = np.concatenate([one.n_items for one in levels])
    return GrownNodes(parent, x, y, size, n_children, n_items, np.concatenate(kept), level_start)


def _decide(level: _Level, cells: MessageCells, growth: Growth, budget: int) -> NDArray[np.int8]:
    """What becomes of each node of a level.

    A long list is split into quadrants if anything would go on into them and the copies fit into the budget, the longest
    lists first; what cannot be split is cut into runs, each with pivots of its own.
    """
    n_nodes = len(level.x)
    is_long = ~level.is_run & (level.n_items > growth.leaf_size)
    n_going, n_copies = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    node_of = np.repeat(np.arange(n_nodes, dtype=np.int32), level.n_items)
    split.measure_splits(node_of, level.item, *_sides(cells), level.x, level.y, level.size, growth.is_once, n_going, n_copies)
    may_split = np.flatnonzero(is_long & (level.size > 1) & (n_going > 0))
    may_split = may_split[np.argsort(-level.n_items[may_split], kind="stable")]
    does_split = may_split[np.cumsum((n_copies - n_going)[may_split]) <= budget]
    fate = np.where(is_long, split.IS_CUT, split.IS_LEAF).astype(np.int8)
    fate[does_split] = split.IS_SPLIT
    return fate


def _below(level: _Level, fate: NDArray[np.int8], cells: MessageCells, growth: Growth, first_node: int) -> _Level:
    """The children of a level: of each node its quadrants that hold anything, then its runs."""
    n_nodes = len(level.x)
    n_runs = np.where(fate == split.IS_LEAF, 0, -(-level.n_items // growth.leaf_size))
    n_slots = np.where(fate == split.IS_LEAF, 0, split.N_QUADRANTS + n_runs)
    slot_start = np.cumsum(n_slots) - n_slots
    node_of = np.repeat(np.arange(n_nodes, dtype=np.int32), level.n_items)
    given = (*_sides(cells), level.x, level.y, level.size, growth.is_once, fate, slot_start, growth.leaf_size)
    sizes = np.zeros(int(n_slots.sum()), np.int64)
    split.route_clauses(node_of, level.item, *given, np.zeros(n_nodes, np.int64), sizes, np.empty(0, np.int32))
    starts = np.zeros(len(sizes) + 1, np.int64)
    item = np.empty(offsets_from_counts(sizes, starts), np.int32)
    split.route_clauses(node_of, level.item, *given, np.zeros(n_nodes, np.int64), starts[:-1].copy(), item)
    used = np.flatnonzero(sizes)
    owner = np.repeat(np.arange(n_nodes), n_slots)[used]
    kind = used - slot_start[owner]
    is_run = kind >= split.N_QUADRANTS
    size = np.where(is_run, level.size[owner], level.size[owner] // 2).astype(np.int32)
    x = np.where(~is_run & (kind % 2 == 1), level.x[owner] + size, level.x[owner]).astype(np.int32)
    y = np.where(~is_run & (kind >= 2), level.y[owner] + size, level.y[owner]).astype(np.int32)
    return _Level(first_node + owner, x, y, size, is_run, sizes[used], item)


def _sides(cells: MessageCells) -> tuple[NDArray[np.int32], ...]:
    return cells.x0, cells.y0, cells.x1, cells.y1
