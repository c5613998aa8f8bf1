"""The adaptive tree from inside: what holds in every node, after building and after any history of changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays
from nearcast.kernels.pools import NO_CHUNK, chunk_capacity, size_class
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTree, AdaptiveTreeParameters
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    FREE_NODE,
    KEYWORD,
    LEAF,
    MOST_KEYS,
    N_BLOCK,
    N_BOUND,
    N_ENTRIES,
    N_FILED,
    N_NODES,
    NO_NODE,
    NODE_FIELDS,
    ROOT,
    ROWS,
    TreeArrays,
)

OPTIONS: list[dict[str, Any]] = [
    {},
    {"leaf_size": 2, "fanout": 4, "least_change": 0.3, "is_noise_corrected": False},
    {"leaf_size": 3, "fanout": 9, "keyword_order": "frequent_first", "is_refining": False, "least_change": 0.1},
    {"leaf_size": 4, "fanout": 5, "partition": "optimal", "least_change": 0.1},
    {"leaf_size": 4, "fanout": 16, "priority": "space", "drift_limit": 0.0, "least_change": 0.2, "max_copies": 12.0},
    {"leaf_size": 4, "priority": "keyword", "rebuild": "never", "is_guessing": False},
]


class Node(NamedTuple):
    number: int
    kind: int
    first: int
    size: int
    extra: int
    children: list[int]


def read_node(tree: TreeArrays, number: int) -> Node:
    kind, first, size, extra = tree.node[NODE_FIELDS * number : NODE_FIELDS * (number + 1)].tolist()
    n_children = 0 if kind == LEAF else size if kind == KEYWORD else (size // ROWS) * (size % ROWS)
    children = tree.block[first + BLOCK_FIELDS : first + BLOCK_FIELDS + n_children].tolist()
    return Node(number, kind, first, size, extra, [c for c in [*children, extra] if c != NO_NODE] if kind != LEAF else [])


def walk(tree: TreeArrays, number: int = ROOT) -> Iterator[Node]:
    node = read_node(tree, number)
    yield node
    for child in node.children:
        yield from walk(tree, child)


def clauses_below(tree: TreeArrays, number: int) -> Counter[int]:
    return Counter(
        clause
        for node in walk(tree, number)
        if node.kind == LEAF
        for clause in tree.clause[node.first : node.first + node.size].tolist()
    )


def free_chunks(free: NDArray[np.int32], link: NDArray[Any], rooms: dict[int, int]) -> Iterator[tuple[int, int]]:
    for number, start in enumerate(free.tolist()):
        first = start
        while first != NO_CHUNK:
            yield first, rooms[number]
            first = int(link[first])


def check_pool(chunks: list[tuple[int, int]], n_used: int) -> None:
    """Every element is in exactly one chunk, used or free."""
    end = 0
    for first, capacity in sorted(chunk for chunk in chunks if chunk[1]):
        assert first == end
        end = first + capacity
    assert end == n_used


def check_tree(tree: TreeArrays, filed: set[int]) -> None:
    """Every filed clause is there, counts are right, and no memory is lost or used twice."""
    nodes = list(walk(tree))
    assert len({node.number for node in nodes}) == len(nodes)
    assert set(clauses_below(tree, ROOT)) == filed
    assert int(tree.head[N_FILED]) == len(filed)
    entries, blocks, bounds = [], [], []
    for node in nodes:
        assert len(clauses_below(tree, node.number)) == tree.n_below[node.number]
        if node.kind == LEAF:
            assert node.size <= node.extra
            assert max(Counter(tree.clause[node.first : node.first + node.size].tolist()).values(), default=1) == 1
            entries.append((node.first, node.extra))
        elif node.kind == KEYWORD:
            cuts = tree.block[node.first + BLOCK_FIELDS + node.size : node.first + BLOCK_FIELDS + 2 * node.size]
            assert np.all(np.diff(cuts.astype(np.int64)) > 0)
            blocks.append((node.first, chunk_capacity(BLOCK_FIELDS + 2 * node.size)))
        else:
            n_columns, n_rows = node.size // ROWS, node.size % ROWS
            at = int(tree.block[node.first + BOUNDS])
            assert np.all(np.diff(tree.bound[at + 1 : at + n_columns]) > 0)
            assert np.all(np.diff(tree.bound[at + n_columns : at + n_columns + n_rows - 1]) > 0)
            blocks.append((node.first, chunk_capacity(BLOCK_FIELDS + n_columns * n_rows)))
            bounds.append((at, chunk_capacity(n_columns + n_rows - 1)))
    rooms = {int(size_class(chunk_capacity(size))): int(chunk_capacity(size)) for size in range(5000)}
    check_pool([*entries, *free_chunks(tree.free_entry, tree.clause, rooms)], int(tree.head[N_ENTRIES]))
    check_pool([*blocks, *free_chunks(tree.free_block, tree.block, rooms)], int(tree.head[N_BLOCK]))
    check_pool([*bounds, *free_chunks(tree.free_bound, tree.bound, rooms)], int(tree.head[N_BOUND]))
    n_free, number = 0, int(tree.head[FREE_NODE])
    while number != NO_NODE:
        n_free += 1
        number = int(tree.node[NODE_FIELDS * number + 1])
    assert len(nodes) + n_free == tree.head[N_NODES]


class Town:
    """Clauses and messages with skewed words on an integer grid, from one generator."""

    def __init__(self, seed: int, n_words: int = 40, side: int = 24) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_words, self.side = n_words, side
        self.n_subscriptions = 0

    def words(self, most: int) -> list[int]:
        drawn = self.n_words * self.rng.random(int(self.rng.integers(most + 1))) ** 2
        return sorted({int(word) for word in drawn})

    def clauses(self, n: int) -> ClauseBatch:
        words = [self.words(4) for _ in range(n)]
        x, y = np.sort(self.rng.integers(0, self.side, (2, n, 2)), axis=2).astype(float)
        is_small = self.rng.random(n) < 0.8
        x[is_small, 1] = x[is_small, 0] + self.rng.integers(0, 3, int(is_small.sum()))
        y[is_small, 1] = y[is_small, 0] + self.rng.integers(0, 3, int(is_small.sum()))
        subscription = np.arange(self.n_subscriptions, self.n_subscriptions + n, dtype=np.int32)
        self.n_subscriptions += n
        start, keyword = _flat(words)
        return ClauseBatch(subscription, start, keyword, x[:, 0].copy(), y[:, 0].copy(), x[:, 1].copy(), y[:, 1].copy())

    def messages(self, n: int) -> MessageBatch:
        start, keyword = _flat([self.words(12) for _ in range(n)])
        x0, y0 = self.rng.integers(-2, self.side + 2, (2, n)).astype(float)
        size = self.rng.integers(0, 6, n) * (self.rng.random(n) < 0.4)
        arrays = MessageArrays(start, keyword, x0, y0, x0 + size, y0 + size)
        return MessageBatch(arrays, np.arange(n), self.n_words)


def _flat(lists: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    start = np.concatenate([[0], np.cumsum([len(words) for words in lists])]).astype(np.int64)
    return start, np.array([word for words in lists for word in words], np.int32)


def at_zero(first: int, *words: list[int]) -> ClauseBatch:
    start, keyword = _flat(list(words))
    subscription, zero = np.arange(first, first + len(words), dtype=np.int32), np.zeros(len(words))
    return ClauseBatch(subscription, start, keyword, zero, zero, zero, zero)


def make(**parameters: Any) -> AdaptiveTree:
    return AdaptiveTree(AdaptiveTreeParameters(**parameters))


def pairs(index: AdaptiveTree, clauses: ClauseStore, messages: MessageBatch) -> list[tuple[int, int]]:
    groups, _ = index.match(clauses, messages)
    message, clause = groups.pairs()
    return sorted(zip(message.tolist(), clause.tolist(), strict=True))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_after_any_history_the_answers_are_those_of_a_fresh_build(options: dict[str, Any]) -> None:
    """And the tree is sound after each change; what a fresh build answers is right by the conformance suite."""
    town, clauses, index = Town(7), ClauseStore(), make(**options)
    clauses.add(town.clauses(60))
    index.build(clauses)
    alive = set(range(60))
    for step in range(12):
        if step % 3 == 2 and len(alive) > 30:
            gone = town.rng.permutation(sorted(alive))[: len(alive) * 2 // 3].astype(np.int32)
            index.delete(clauses, clauses.remove(gone))
            alive -= set(gone.tolist())
        elif step == 6:
            # Words and places that were not there before.
            town.n_words, town.side = 60, 40
        else:
            slots = clauses.add(town.clauses(int(town.rng.integers(1, 60))))
            index.insert(clauses, slots)
            alive |= set(slots.tolist())
        check_tree(index._tree, alive)
        fresh = make(**options)
        fresh.build(clauses)
        messages = town.messages(25)
        assert pairs(index, clauses, messages) == pairs(fresh, clauses, messages)
    index.delete(clauses, clauses.remove(np.array(sorted(alive), np.int32)))
    check_tree(index._tree, set())
    assert index.stats()["keyword_nodes"] == index.stats()["space_nodes"] == 0


def test_clauses_one_by_one_give_the_same_as_all_at_once() -> None:
    town, clauses = Town(3), ClauseStore()
    clauses.add(town.clauses(50))
    one, many = make(leaf_size=4, fanout=8), make(leaf_size=4, fanout=8)
    one.build(clauses)
    many.build(clauses)
    slots = clauses.add(town.clauses(100))
    many.insert(clauses, slots)
    for slot in slots:
        one.insert(clauses, np.array([slot], np.int32))
    assert np.array_equal(one._tree.node[: len(many._tree.node)][:40], many._tree.node[:40])
    messages = town.messages(40)
    assert pairs(one, clauses, messages) == pairs(many, clauses, messages)


def test_the_tree_goes_on_where_it_was_after_being_saved_and_opened() -> None:
    town, clauses, index = Town(11), ClauseStore(), make(leaf_size=4, fanout=8, least_change=0.0)
    clauses.add(town.clauses(100))
    index.build(clauses, town.messages(200))
    index.insert(clauses, clauses.add(town.clauses(50)))
    index.delete(clauses, clauses.remove(np.arange(0, 60, dtype=np.int32)))
    opened = make(leaf_size=4, fanout=8, least_change=0.0)
    opened.restore({name: array.copy() for name, array in index.arrays().items()})
    alive = set(np.flatnonzero(clauses.layout().is_alive).tolist())
    check_tree(opened._tree, alive)
    slots = clauses.add(town.clauses(60))
    for each in (index, opened):
        each.insert(clauses, slots)
        check_tree(each._tree, alive | set(slots.tolist()))
    messages = town.messages(40)
    assert pairs(index, clauses, messages) == pairs(opened, clauses, messages)
    assert index.stats()["copies"] == opened.stats()["copies"]


def test_full_leaves_are_divided_and_thin_nodes_become_leaves() -> None:
    town, clauses, index = Town(5), ClauseStore(), make(leaf_size=10)
    clauses.add(town.clauses(9))
    index.build(clauses)
    assert index.stats()["nodes"] == 1
    slots = clauses.add(town.clauses(40))
    index.insert(clauses, slots)
    assert index.stats()["nodes"] > 1
    gone = clauses.remove(np.arange(45, dtype=np.int32))
    index.delete(clauses, gone)
    assert index.stats()["nodes"] == 1
    assert index.stats()["longest_leaf"] == 4


def test_a_node_is_built_anew_when_its_clauses_lie_otherwise_and_only_then() -> None:
    """The same town again changes no shares; another part of town does."""

    def rebuilt(is_moving: bool, **options: Any) -> int:
        town, clauses, index = Town(2, side=12), ClauseStore(), make(leaf_size=400, fanout=16, priority="space", **options)
        clauses.add(town.clauses(600))
        index.build(clauses)
        assert read_node(index._tree, ROOT).kind > KEYWORD
        before = town.clauses(600)
        if is_moving:
            before.x0, before.x1 = np.minimum(before.x0, 2.0), np.minimum(before.x1, 3.0)
        index.insert(clauses, clauses.add(before))
        return int(index.stats()["rebuilt"])

    assert rebuilt(True) > rebuilt(True, rebuild="never")
    assert rebuilt(False, drift_limit=0.05) == rebuilt(False, rebuild="never")
    # Chance alone exceeds the paper's limit on a node as small as this.
    assert rebuilt(False, is_noise_corrected=False, drift_limit=0.0) > rebuilt(False, rebuild="never")


def test_copies_are_bounded() -> None:
    town, clauses = Town(9), ClauseStore()
    clauses.add(town.clauses(400))
    copies = []
    for most in (1.0, 2.0, 6.0):
        index = make(leaf_size=2, priority="space", max_copies=most)
        index.build(clauses)
        copies.append(float(index.stats()["copies"]))
    # Above a sample the bound is kept on average, hence the little more.
    assert copies[0] <= 1.1
    assert copies[0] < copies[1] <= 2.2
    assert copies[1] < copies[2] <= 6.6


def test_a_grid_that_would_copy_too_much_is_made_coarser() -> None:
    n, sides = 1000, []
    low = np.random.default_rng(3).random((2, n))
    start, keyword = np.arange(n + 1, dtype=np.int64), np.zeros(n, np.int32)
    for width in (0.0, 0.05, 0.1):
        clauses, index = ClauseStore(), make(leaf_size=10, fanout=100, max_copies=1.5)
        clauses.add(ClauseBatch(np.arange(n, dtype=np.int32), start, keyword, low[0], low[1], low[0] + width, low[1] + width))
        index.build(clauses)
        root = read_node(index._tree, ROOT)
        assert root.kind > KEYWORD
        assert float(index.stats()["copies"]) <= 1.65
        sides.append((root.size // ROWS, root.size % ROWS))
    assert sides[0] == (10, 10)
    assert sides[0] > sides[1] > sides[2] >= (2, 2)


def test_a_keyword_that_comes_later_is_ranked_among_the_rare() -> None:
    for order, place in (("rare_first", -1), ("frequent_first", 3)):
        clauses, index = ClauseStore(), make(keyword_order=order)
        clauses.add(at_zero(0, [0], [0, 1], [0, 1, 2]))
        index.build(clauses)
        assert index._tree.rank.tolist() == ([2, 1, 0] if order == "rare_first" else [0, 1, 2])
        index.insert(clauses, clauses.add(at_zero(3, [9])))
        assert index._tree.rank[9] == place


def test_what_cannot_be_divided_stays_a_leaf() -> None:
    """The same box and the same keywords, over and over."""
    n = 300
    clauses, index = ClauseStore(), make(leaf_size=4)
    low, high = np.full(n, 1.0), np.full(n, 2.0)
    start = np.arange(0, 2 * n + 1, 2, dtype=np.int64)
    batch = ClauseBatch(np.arange(n, dtype=np.int32), start, np.tile(np.array([0, 1], np.int32), n), low, low, high, high)
    slots = clauses.add(batch)
    index.build(clauses)
    assert index.stats()["copies"] == 1.0
    index.delete(clauses, slots[:100])
    index.insert(clauses, slots[:100])
    check_tree(index._tree, set(range(n)))
    start, keyword = _flat([[0, 1], [0], [0, 1]])
    zero = np.array([2.0, 2.0, 3.0])
    messages = MessageBatch(MessageArrays(start, keyword, zero, zero, zero, zero), np.arange(3), 2)
    assert len(pairs(index, clauses, messages)) == n


def test_the_optimal_division_takes_more_keywords_than_it_can_tell_apart() -> None:
    n = MOST_KEYS + 200
    clauses, index = ClauseStore(), make(partition="optimal", fanout=4, leaf_size=n, priority="keyword")
    clauses.add(at_zero(0, *([word] for word in range(n))))
    index.build(clauses)
    root = read_node(index._tree, ROOT)
    sizes = [int(index._tree.n_below[child]) for child in root.children]
    assert len(sizes) == 4
    assert sum(sizes) == n
    # All keywords are alike, so that equal cuts are the best.
    assert max(sizes) - min(sizes) < 10


def test_a_clause_goes_where_no_clause_was_before() -> None:
    """Into the child of those without a further keyword, and into one for those that cover the region."""
    town, clauses = Town(1), ClauseStore()
    words, grid = make(leaf_size=4, priority="keyword"), make(leaf_size=4, priority="space")
    batch = town.clauses(80)
    batch.required_start, batch.required = _flat([[i % 7, 7 + i % 5] for i in range(80)])
    clauses.add(batch)
    for index in (words, grid):
        index.build(clauses)
    late = at_zero(town.n_subscriptions, [], [3])
    late.x0, late.y0, late.x1, late.y1 = (np.full(2, side) for side in (-9.0, -9.0, 99.0, 99.0))
    slots = clauses.add(late)
    for index in (words, grid):
        assert read_node(index._tree, ROOT).extra == NO_NODE
        index.insert(clauses, slots)
        assert read_node(index._tree, ROOT).extra != NO_NODE
        check_tree(index._tree, set(range(82)))
    messages = town.messages(20)
    assert pairs(words, clauses, messages) == pairs(grid, clauses, messages)
    assert {(m, 80) for m in range(20)} <= set(pairs(words, clauses, messages))
