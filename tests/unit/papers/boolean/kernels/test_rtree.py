"""The R-tree: packed or grown one by one, every item is in one leaf and every box holds what lies below it."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.papers.boolean.kernels import rtree


def random_boxes(n: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x0, y0 = rng.integers(0, 50, n).astype(float), rng.integers(0, 50, n).astype(float)
    return [x0, y0, x0 + rng.integers(0, 9, n), y0 + rng.integers(0, 9, n)]


def items_below(tree: rtree.RTreeArrays, node: int, boxes: list[np.ndarray], capacity: int) -> list[int]:
    """The items below a node, checking on the way what must hold."""
    places = int(tree.head[rtree.WIDTH])
    assert places == capacity + 1
    assert tree.n_entries[node] <= capacity
    found = []
    for entry in range(node * places, node * places + tree.n_entries[node]):
        child = int(tree.child[entry])
        if tree.level[node] == 0:
            below = [child]
        else:
            assert tree.parent[child] == node
            assert tree.level[child] == tree.level[node] - 1
            assert tree.n_entries[child] >= capacity // 2
            below = items_below(tree, child, boxes, capacity)
        for low, side in ((tree.x0, boxes[0]), (tree.y0, boxes[1])):
            assert low[entry] == min(side[below])
        for high, side in ((tree.x1, boxes[2]), (tree.y1, boxes[3])):
            assert high[entry] == max(side[below])
        found += below
    return found


def check(tree: rtree.RTreeArrays, boxes: list[np.ndarray], capacity: int) -> None:
    root = int(tree.head[rtree.ROOT])
    assert tree.parent[root] == rtree.NO_NODE
    assert sorted(items_below(tree, root, boxes, capacity)) == list(range(len(boxes[0])))


@pytest.mark.parametrize("n", [0, 1, 4, 5, 16, 17, 100, 300])
def test_a_packed_tree_holds_every_item_once(n: int) -> None:
    boxes = random_boxes(n, n)
    check(rtree.pack(boxes, np.arange(n, dtype=np.int32), 4), boxes, 4)


@pytest.mark.parametrize("n_packed", [0, 16, 50])
@pytest.mark.parametrize("capacity", [4, 7])
def test_items_inserted_later_are_found_like_packed_ones(n_packed: int, capacity: int) -> None:
    n = 200
    boxes = random_boxes(n, 7)
    tree = rtree.pack([side[:n_packed] for side in boxes], np.arange(n_packed, dtype=np.int32), capacity)
    for item in range(n_packed, n):
        tree = rtree.resized_tree(tree, int(tree.head[rtree.N_NODES]) + 8)
        rtree.insert_item(tree, *(side[item] for side in boxes), item)
    check(tree, boxes, capacity)


def test_regions_without_bounds_do_not_upset_the_tree() -> None:
    largest = np.finfo(np.float64).max
    boxes = random_boxes(40, 3)
    for side, value in zip(boxes, (-largest, -largest, largest, largest), strict=True):
        side[::3] = value
    tree = rtree.empty_rtree(4)
    for item in range(40):
        tree = rtree.resized_tree(tree, int(tree.head[rtree.N_NODES]) + 8)
        rtree.insert_item(tree, *(side[item] for side in boxes), item)
    check(tree, boxes, 4)
    check(rtree.pack(boxes, np.arange(40, dtype=np.int32), 4), boxes, 4)
