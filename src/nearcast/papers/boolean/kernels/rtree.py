"""An R-tree as flat arrays: bulk loading, then single insertions with splits, in nodes of a fixed width."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel

NO_NODE = -1


class RTreeArrays(NamedTuple):
    """Node `n` has the entries `n * width + i` for i < n_entries[n]; an entry is a box and a child.

    Children of a node of level 0 are items, of a higher level nodes one level below. A node is one entry wider than its
    capacity: it is split when it is full.
    """

    x0: np.ndarray  # float64[n_nodes * width]
    y0: np.ndarray  # float64[...]
    x1: np.ndarray  # float64[...]
    y1: np.ndarray  # float64[...]
    child: np.ndarray  # int32[...]
    n_entries: np.ndarray  # int32[n_nodes]
    level: np.ndarray  # int32[n_nodes]
    parent: np.ndarray  # int32[n_nodes]; NO_NODE for the root
    head: np.ndarray  # int64[3]: root, nodes in use, width of a node


ROOT, N_NODES, WIDTH = 0, 1, 2


def empty_rtree(capacity: int) -> RTreeArrays:
    """A tree of one leaf without entries."""
    return _allocated(1, np.array([0, 1, capacity + 1], np.int64))


def _allocated(n_nodes: int, head: np.ndarray) -> RTreeArrays:
    width = int(head[WIDTH])
    x0, y0, x1, y1 = (np.empty(n_nodes * width, np.float64) for _ in range(4))
    child = np.full(n_nodes * width, NO_NODE, np.int32)
    parent = np.full(n_nodes, NO_NODE, np.int32)
    return RTreeArrays(x0, y0, x1, y1, child, np.zeros(n_nodes, np.int32), np.zeros(n_nodes, np.int32), parent, head)


def resized_tree(tree: RTreeArrays, n_nodes: int) -> RTreeArrays:
    """The same tree with capacity for at least `n_nodes` nodes."""
    if n_nodes <= len(tree.level):
        return tree
    larger = _allocated(max(n_nodes, len(tree.level) + len(tree.level) // 4), tree.head)
    for name in RTreeArrays._fields[:-1]:
        old = getattr(tree, name)
        getattr(larger, name)[: len(old)] = old
    return larger


def pack(boxes: list[np.ndarray], items: np.ndarray, capacity: int) -> RTreeArrays:
    """Sort-Tile-Recursive bulk load: slices by centre x, tiles by centre y, nodes evenly full, level by level.

    `boxes` are the bounds x0, y0, x1, y1 of the items.
    """
    if len(items) == 0:
        return empty_rtree(capacity)
    levels = []
    children = items
    while True:
        order = _tile_order(boxes, capacity)
        n_nodes = -(-len(children) // capacity)
        # Evenly full: no node below half of its capacity unless it is the only one.
        bounds = np.arange(n_nodes + 1, dtype=np.int64) * len(children) // n_nodes
        sorted_boxes = [box[order] for box in boxes]
        levels.append((sorted_boxes, children[order], bounds))
        low = [np.minimum.reduceat(box, bounds[:-1]) for box in sorted_boxes[:2]]
        high = [np.maximum.reduceat(box, bounds[:-1]) for box in sorted_boxes[2:]]
        boxes = [*low, *high]
        if n_nodes == 1:
            return _assemble(levels, capacity)
        children = np.arange(n_nodes, dtype=np.int32)


def _tile_order(boxes: list[np.ndarray], capacity: int) -> np.ndarray:
    x0, y0, x1, y1 = boxes
    n_tiles = -(-len(x0) // capacity)
    slice_size = capacity * int(np.ceil(np.sqrt(n_tiles)))
    # Halve first, then add: the bounds of an unbounded region are the largest floats.
    by_x = np.argsort(x0 * 0.5 + x1 * 0.5, kind="stable")
    slice_id = np.empty(len(x0), np.int64)
    slice_id[by_x] = np.arange(len(x0)) // slice_size
    return np.lexsort((y0 * 0.5 + y1 * 0.5, slice_id))


def _assemble(levels: list[tuple[list[np.ndarray], np.ndarray, np.ndarray]], capacity: int) -> RTreeArrays:
    """Number the nodes, leaves first; children of level l + 1 are still numbers within level l."""
    first_node = np.concatenate([[0], np.cumsum([len(bounds) - 1 for _, _, bounds in levels])])
    n_nodes = int(first_node[-1])
    tree = _allocated(n_nodes, np.array([n_nodes - 1, n_nodes, capacity + 1], np.int64))
    for level, (boxes, children, bounds) in enumerate(levels):
        sizes = np.diff(bounds)
        node = np.repeat(np.arange(len(sizes)) + first_node[level], sizes)
        position = node * (capacity + 1) + np.arange(len(children)) - np.repeat(bounds[:-1], sizes)
        for target, box in zip(tree[:4], boxes, strict=True):
            target[position] = box
        tree.child[position] = children if level == 0 else children + first_node[level - 1]
        if level > 0:
            tree.parent[tree.child[position]] = node
        tree.n_entries[first_node[level] : first_node[level + 1]] = sizes
        tree.level[first_node[level] : first_node[level + 1]] = level
    return tree


@inline_kernel
def half_margin(x0, y0, x1, y1):
    """A quarter of the perimeter. Unlike the area it distinguishes thin boxes from points, and it does not overflow."""
    return (x1 * 0.5 - x0 * 0.5) * 0.5 + (y1 * 0.5 - y0 * 0.5) * 0.5


@kernel
def choose_entry(tree, node, x0, y0, x1, y1):
    """The entry whose box grows least to take the new one in, the smaller box on a tie."""
    first = node * tree.head[WIDTH]
    tx0, ty0, tx1, ty1 = tree.x0, tree.y0, tree.x1, tree.y1
    best, best_growth, best_margin = first, np.inf, np.inf
    for entry in range(first, first + tree.n_entries[node]):
        ex0, ey0, ex1, ey1 = tx0[entry], ty0[entry], tx1[entry], ty1[entry]
        margin = half_margin(ex0, ey0, ex1, ey1)
        growth = half_margin(min(ex0, x0), min(ey0, y0), max(ex1, x1), max(ey1, y1)) - margin
        if growth < best_growth or (growth == best_growth and margin < best_margin):
            best, best_growth, best_margin = entry, growth, margin
    return best


@inline_kernel
def put_entry(tree, entry, x0, y0, x1, y1, child):
    tree.x0[entry], tree.y0[entry], tree.x1[entry], tree.y1[entry] = x0, y0, x1, y1
    tree.child[entry] = child


@kernel
def node_box(tree, node):
    """The smallest box around the entries of a node."""
    first = node * tree.head[WIDTH]
    tx0, ty0, tx1, ty1 = tree.x0, tree.y0, tree.x1, tree.y1
    x0, y0, x1, y1 = tx0[first], ty0[first], tx1[first], ty1[first]
    for entry in range(first + 1, first + tree.n_entries[node]):
        x0, y0 = min(x0, tx0[entry]), min(y0, ty0[entry])
        x1, y1 = max(x1, tx1[entry]), max(y1, ty1[entry])
    return x0, y0, x1, y1


@kernel
def sort_entries(tree, node, by_x):
    """Insertion sort of a node's entries by the centre of their boxes."""
    first = node * tree.head[WIDTH]
    tx0, ty0, tx1, ty1, tchild = tree.x0, tree.y0, tree.x1, tree.y1, tree.child
    for i in range(first + 1, first + tree.n_entries[node]):
        x0, y0, x1, y1, child = tx0[i], ty0[i], tx1[i], ty1[i], tchild[i]
        centre = x0 * 0.5 + x1 * 0.5 if by_x else y0 * 0.5 + y1 * 0.5
        j = i - 1
        while j >= first:
            other = tx0[j] * 0.5 + tx1[j] * 0.5 if by_x else ty0[j] * 0.5 + ty1[j] * 0.5
            if other <= centre:
                break
            tx0[j + 1], ty0[j + 1], tx1[j + 1], ty1[j + 1], tchild[j + 1] = tx0[j], ty0[j], tx1[j], ty1[j], tchild[j]
            j -= 1
        tx0[j + 1], ty0[j + 1], tx1[j + 1], ty1[j + 1], tchild[j + 1] = x0, y0, x1, y1, child


@kernel
def extent_of_centres(tree, node, by_x):
    first = node * tree.head[WIDTH]
    low, high = np.inf, -np.inf
    for i in range(first, first + tree.n_entries[node]):
        centre = tree.x0[i] * 0.5 + tree.x1[i] * 0.5 if by_x else tree.y0[i] * 0.5 + tree.y1[i] * 0.5
        low, high = min(low, centre), max(high, centre)
    return high * 0.5 - low * 0.5


@kernel
def split_node(tree, node):
    """Move the upper half of a full node's entries, along the axis where centres spread most, to a new node."""
    width = tree.head[WIDTH]
    sort_entries(tree, node, extent_of_centres(tree, node, True) >= extent_of_centres(tree, node, False))
    new = tree.head[N_NODES]
    tree.head[N_NODES] += 1
    tree.level[new] = tree.level[node]
    n_lower = width // 2
    for i in range(n_lower, width):
        entry = node * width + i
        put_entry(
            tree, new * width + i - n_lower, tree.x0[entry], tree.y0[entry], tree.x1[entry], tree.y1[entry], tree.child[entry]
        )
        if tree.level[new] > 0:
            tree.parent[tree.child[entry]] = new
    tree.n_entries[node] = n_lower
    tree.n_entries[new] = width - n_lower
    return new


@kernel
def entry_of_child(tree, parent, node):
    """The entry of a node in its parent."""
    child = tree.child
    entry = parent * tree.head[WIDTH]
    while child[entry] != node:
        entry += 1
    return entry


@kernel
def add_root(tree, node):
    """Put a new root above the old one."""
    root = tree.head[N_NODES]
    tree.head[N_NODES] += 1
    tree.head[ROOT] = root
    tree.level[root] = tree.level[node] + 1
    tree.n_entries[root] = 1
    x0, y0, x1, y1 = node_box(tree, node)
    put_entry(tree, root * tree.head[WIDTH], x0, y0, x1, y1, node)
    tree.parent[node] = root
    return root


@kernel
def find_leaf(tree, x0, y0, x1, y1):
    """The leaf a new item belongs to."""
    node = tree.head[ROOT]
    while tree.level[node] > 0:
        node = np.int64(tree.child[choose_entry(tree, node, x0, y0, x1, y1)])
    return node


@kernel
def put_in_leaf(tree, leaf, x0, y0, x1, y1, item):
    """Add an item to a leaf and widen the boxes above it. If the leaf is full then, `split_full` must follow."""
    put_entry(tree, leaf * tree.head[WIDTH] + tree.n_entries[leaf], x0, y0, x1, y1, item)
    tree.n_entries[leaf] += 1
    node = np.int64(leaf)
    while tree.parent[node] != NO_NODE:
        parent = np.int64(tree.parent[node])
        entry = entry_of_child(tree, parent, node)
        tree.x0[entry], tree.y0[entry] = min(tree.x0[entry], x0), min(tree.y0[entry], y0)
        tree.x1[entry], tree.y1[entry] = max(tree.x1[entry], x1), max(tree.y1[entry], y1)
        node = parent


@inline_kernel
def is_full(tree, node):
    """Whether a node is full, so that it must be split."""
    return tree.n_entries[node] == tree.head[WIDTH]


@kernel
def split_full(tree, node):
    """Split a full node, under a new root if it was the root; returns its new sibling. Their parent may be full then."""
    if tree.parent[node] == NO_NODE:
        add_root(tree, node)
    parent = np.int64(tree.parent[node])
    new = split_node(tree, node)
    x0, y0, x1, y1 = node_box(tree, node)
    put_entry(tree, entry_of_child(tree, parent, node), x0, y0, x1, y1, node)
    x0, y0, x1, y1 = node_box(tree, new)
    put_entry(tree, parent * tree.head[WIDTH] + tree.n_entries[parent], x0, y0, x1, y1, new)
    tree.n_entries[parent] += 1
    tree.parent[new] = parent
    return new


@kernel
def insert_item(tree, x0, y0, x1, y1, item):
    """Insert one item; needs capacity for as many new nodes as the tree has levels, plus two."""
    node = find_leaf(tree, x0, y0, x1, y1)
    put_in_leaf(tree, node, x0, y0, x1, y1, item)
    while is_full(tree, node):
        split_full(tree, node)
        node = np.int64(tree.parent[node])


def entries_of_level(tree: RTreeArrays, level: int) -> np.ndarray:
    """The positions of all entries in use in the nodes of one level, node by node."""
    width = int(tree.head[WIDTH])
    nodes = np.flatnonzero(tree.level[: tree.head[N_NODES]] == level)
    sizes = tree.n_entries[nodes].astype(np.int64)
    ends = np.cumsum(sizes)
    return np.repeat(nodes * width - (ends - sizes), sizes) + np.arange(sizes.sum())


def path_to_item(tree: RTreeArrays, item: int) -> list[tuple[int, int]]:
    """The nodes from the root to an item, each with the entry that leads on; the last entry is that of the item."""
    width = int(tree.head[WIDTH])
    entries = entries_of_level(tree, 0)
    entry = int(entries[np.flatnonzero(tree.child[entries] == item)[0]])
    path = [(min(entry // width, int(tree.head[ROOT])), entry)]
    while (parent := int(tree.parent[path[-1][0]])) != NO_NODE:
        first = parent * width
        children = tree.child[first : first + tree.n_entries[parent]]
        path.append((parent, first + int(np.flatnonzero(children == path[-1][0])[0])))
    return path[::-1]


def widen_root(tree: RTreeArrays) -> RTreeArrays:
    """A packed tree whose root is at least half full: if it is not, it gets all entries of its children.

    The root is the last node, so it may have more entries than its width; such a tree allows no insertions.
    """
    width, root = int(tree.head[WIDTH]), int(tree.head[ROOT])
    height, n_children = int(tree.level[root]), int(tree.n_entries[root])
    if height < 2 or n_children >= (width - 1) // 2:
        return tree
    entries = entries_of_level(tree, height - 1)
    # The children of the root come right before it.
    new_root = root - n_children
    first = new_root * width
    x0, y0, x1, y1, child = (np.concatenate([array[:first], array[entries]]) for array in tree[:5])
    n_entries, level, parent = (array[: new_root + 1].copy() for array in tree[5:8])
    tree_with_wide_root = RTreeArrays(
        x0, y0, x1, y1, child, n_entries, level, parent, np.array([new_root, new_root + 1, width], np.int64)
    )
    tree_with_wide_root.n_entries[new_root], tree_with_wide_root.level[new_root], tree_with_wide_root.parent[new_root] = (
        len(entries),
        height - 1,
        NO_NODE,
    )
    tree_with_wide_root.parent[tree.child[entries]] = new_root
    return tree_with_wide_root
