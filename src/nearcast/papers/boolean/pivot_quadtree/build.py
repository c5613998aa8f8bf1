"""Build a quadtree over clauses in trie order: the frame, the nodes level by level, and the keyword sets that lead to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.sorting import offsets_from_counts
from nearcast.papers.boolean.pivot_quadtree import kernels
from nearcast.papers.boolean.pivot_quadtree.kernels import NO_NODE, MessageCells, QuadtreeArrays
from nearcast.papers.boolean.region_trie.kernels import TrieEntries


def build_quadtree(entries: TrieEntries, frequency: NDArray[np.int64], growth: Growth) -> QuadtreeArrays:
    """The quadtree over all filed clauses; `frequency` is the number of clauses by rank."""
    boxes = entries.box.reshape(-1, 4)
    frame = enclosing_frame(boxes, growth.n_columns)
    cells = cells_of(frame, growth.n_columns, list(boxes.T))
    nodes = grow(cells, growth, np.array([len(boxes)]))
    item_start = np.concatenate([[0], np.cumsum(nodes.n_items)])
    n_copies = len(nodes.item)
    pivot_start, pivot = np.empty(len(item_start), np.int64), np.empty(n_copies, np.int32)
    n_ranks = int(entries.n_ranks[0])
    counts, words = np.zeros(n_ranks, np.int64), (entries.word_start, entries.word)
    n_pivots = kernels.choose_pivots(item_start, nodes.item, *words, n_ranks, frequency, counts, pivot_start, pivot)
    cover, other = node_sets(nodes.parent, nodes.level_start, pivot_start, pivot[:n_pivots])
    rarest, begins = np.empty(n_copies, np.int32), np.empty(n_copies, np.int8)
    kernels.describe_items(item_start, nodes.item, cells.x0, cells.y0, nodes.x, nodes.y, entries.rarest, rarest, begins)
    # The root is node 0; the children of all nodes follow in order.
    child_start = (1 + np.concatenate([[0], np.cumsum(nodes.n_children)])).astype(np.int32)
    widest = np.array([nodes.n_children.max()], np.int64)
    return QuadtreeArrays(
        frame, nodes.parent, nodes.x, nodes.y, nodes.size, child_start, *cover, *other, item_start, nodes.item, rarest, begins,
        nodes.level_start, widest,
    )  # fmt: skip


# Columns and rows come from one monotone function for clauses and messages. If two intervals share a point, they share its
# column. So borders, points outside the frame and unbounded boxes are no special cases: the outermost columns reach to
# infinity.

# Larger values mean "no bound" and do not stretch the frame.
_UNBOUNDED = 1e300
_NARROWEST = 1e-290


def enclosing_frame(boxes: NDArray[np.float64], n_columns: int) -> NDArray[np.float64]:
    """The frame of a quadtree over `boxes` (rows of x0, y0, x1, y1): around all of their finite bounds."""
    return np.array([*_axis(boxes[:, 0::2].ravel(), n_columns), *_axis(boxes[:, 1::2].ravel(), n_columns)])


def _axis(bounds: NDArray[np.float64], n_columns: int) -> tuple[float, float, float]:
    bounded = bounds[np.abs(bounds) < _UNBOUNDED]
    low, high = (float(bounded.min()), float(bounded.max())) if len(bounded) else (0.0, 0.0)
    # Half the width: the whole one may overflow.
    half = high * 0.5 - low * 0.5
    return low, high, n_columns / half if half > _NARROWEST else 0.0


def cells_of(frame: NDArray[np.float64], n_columns: int, bounds: Sequence[NDArray[np.float64]]) -> MessageCells:
    """The columns and rows of the ends of boxes with the bounds x0, y0, x1, y1."""
    axes = (frame[:3].tolist(), frame[3:].tolist()) * 2
    return MessageCells(*(_columns(axis, n_columns, bound) for axis, bound in zip(axes, bounds, strict=True)))


def _columns(axis: list[float], n_columns: int, value: NDArray[np.float64]) -> NDArray[np.int32]:
    low, high, per_half_unit = axis
    column = ((np.clip(value, low, high) * 0.5 - low * 0.5) * per_half_unit).astype(np.int32)
    return np.minimum(column, n_columns - 1)


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
    levels, n_kept = [level], []
    n_nodes, n_copies = 0, n
    while True:
        fate = _decide(level, cells, growth, MOST_COPIES * n - n_copies)
        is_kept = np.repeat(fate == kernels.IS_LEAF, level.n_items)
        n_kept.append(level.item[is_kept])
        below = _below(level, fate, cells, growth, n_nodes)
        levels[-1] = level._replace(n_items=np.where(fate == kernels.IS_LEAF, level.n_items, 0))
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
    return GrownNodes(parent, x, y, size, n_children, n_items, np.concatenate(n_kept), level_start)


def _decide(level: _Level, cells: MessageCells, growth: Growth, budget: int) -> NDArray[np.int8]:
    """What becomes of each node of a level.

    A long list is split into quadrants if some clauses go into them and the copies fit into the budget, the longest lists
    first; a list that cannot be split is cut into runs, each with its own pivots.
    """
    n_nodes = len(level.x)
    is_long = ~level.is_run & (level.n_items > growth.leaf_size)
    n_going, n_copies = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    node_of = np.repeat(np.arange(n_nodes, dtype=np.int32), level.n_items)
    kernels.measure_splits(
        node_of, level.item, *_cell_bounds(cells), level.x, level.y, level.size, growth.is_once, n_going, n_copies
    )
    may_split = np.flatnonzero(is_long & (level.size > 1) & (n_going > 0))
    may_split = may_split[np.argsort(-level.n_items[may_split], kind="stable")]
    does_split = may_split[np.cumsum((n_copies - n_going)[may_split]) <= budget]
    fate = np.where(is_long, kernels.IS_CUT, kernels.IS_LEAF).astype(np.int8)
    fate[does_split] = kernels.IS_SPLIT
    return fate


def _below(level: _Level, fate: NDArray[np.int8], cells: MessageCells, growth: Growth, first_node: int) -> _Level:
    """The children of a level: for each node its quadrants that are not empty, then its runs."""
    n_nodes = len(level.x)
    n_runs = np.where(fate == kernels.IS_LEAF, 0, -(-level.n_items // growth.leaf_size))
    n_slots = np.where(fate == kernels.IS_LEAF, 0, kernels.N_QUADRANTS + n_runs)
    slot_start = np.cumsum(n_slots) - n_slots
    node_of = np.repeat(np.arange(n_nodes, dtype=np.int32), level.n_items)
    routing = (*_cell_bounds(cells), level.x, level.y, level.size, growth.is_once, fate, slot_start, growth.leaf_size)
    sizes = np.zeros(int(n_slots.sum()), np.int64)
    kernels.route_clauses(node_of, level.item, *routing, np.zeros(n_nodes, np.int64), sizes, np.empty(0, np.int32))
    starts = np.zeros(len(sizes) + 1, np.int64)
    item = np.empty(offsets_from_counts(sizes, starts), np.int32)
    kernels.route_clauses(node_of, level.item, *routing, np.zeros(n_nodes, np.int64), starts[:-1].copy(), item)
    used = np.flatnonzero(sizes)
    parent = np.repeat(np.arange(n_nodes), n_slots)[used]
    kind = used - slot_start[parent]
    is_run = kind >= kernels.N_QUADRANTS
    size = np.where(is_run, level.size[parent], level.size[parent] // 2).astype(np.int32)
    x = np.where(~is_run & (kind % 2 == 1), level.x[parent] + size, level.x[parent]).astype(np.int32)
    y = np.where(~is_run & (kind >= 2), level.y[parent] + size, level.y[parent]).astype(np.int32)
    return _Level(first_node + parent, x, y, size, is_run, sizes[used], item)


def _cell_bounds(cells: MessageCells) -> tuple[NDArray[np.int32], ...]:
    return cells.x0, cells.y0, cells.x1, cells.y1


# Which words lead into a node: let pivotal(n) be all pivots below n, common(n) those pivotal in every list below. A word common
# below a node is common below each of its descendants, so cover(n) = common(n) without common(parent), and other(n) =
# pivotal(n) without common(n). Paper: P, A, C and N; the text computes the union after removing and mixes the two.

_LOW_HALF = (1 << 32) - 1

Lists = tuple[NDArray[np.int64], NDArray[np.int32]]


def node_sets(
    parent: NDArray[np.int32], level_start: NDArray[np.int64], pivot_start: NDArray[np.int64], pivot: NDArray[np.int32]
) -> tuple[Lists, Lists]:
    """The cover sets and the other sets, as offsets and ascending words."""
    n_nodes = len(parent)
    n_pivots = np.diff(pivot_start)
    # Every node has a list or children, so that the nodes without pivots are those with children (or the empty root).
    n_lists = (n_pivots > 0).astype(np.int64)
    node_pivots = np.repeat(np.arange(n_nodes), n_pivots) << 32 | pivot
    node_pivots.sort()
    keys: list[NDArray[np.int64]] = []
    times: list[NDArray[np.int64]] = []
    leads_to: list[NDArray[np.int64]] = []  # where in the keys of the level above a key of this level is counted
    from_below = np.empty(0, np.int64), np.empty(0, np.int64)
    for level in range(len(level_start) - 2, -1, -1):
        first, stop = level_start[level], level_start[level + 1]
        level_keys = node_pivots[np.searchsorted(node_pivots, first << 32) : np.searchsorted(node_pivots, stop << 32)]
        # A node has a list or children, never both: no key occurs twice.
        key = np.concatenate([level_keys, from_below[0]])
        n_times = np.concatenate([np.ones(len(level_keys), np.int64), from_below[1]])
        order = np.argsort(key, kind="stable")
        if leads_to:
            leads_to[-1] = np.argsort(order, kind="stable")[len(level_keys) + leads_to[-1]]
        key, n_times = key[order], n_times[order]
        keys.append(key)
        times.append(n_times)
        if level > 0:
            np.add.at(n_lists, parent[first:stop], n_lists[first:stop])
            above = parent[key >> 32].astype(np.int64) << 32 | key & _LOW_HALF
            merged, inverse = np.unique(above, return_inverse=True)
            leads_to.append(inverse)
            from_below = merged, np.bincount(inverse, weights=n_times, minlength=len(merged)).astype(np.int64)
    is_common = [n_times == n_lists[key >> 32] for key, n_times in zip(keys, times, strict=True)]
    nothing = np.zeros(len(keys[-1]), np.bool_)
    is_settled = [common[to] for common, to in zip(is_common[1:], leads_to, strict=True)] + [nothing]
    cover = np.concatenate([key[c & ~s] for key, c, s in zip(keys[::-1], is_common[::-1], is_settled[::-1], strict=True)])
    other = np.concatenate([key[~c] for key, c in zip(keys[::-1], is_common[::-1], strict=True)])
    return _lists(cover, n_nodes), _lists(other, n_nodes)


def _lists(keys: NDArray[np.int64], n_nodes: int) -> Lists:
    sizes = np.bincount(keys >> 32, minlength=n_nodes)
    return np.concatenate([[0], np.cumsum(sizes)]), (keys & _LOW_HALF).astype(np.int32)
