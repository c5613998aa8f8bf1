"""FAST: each clause once on every way down, shared lists, frequent keywords, the way down, the cleaner."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nearcast as nc
from nearcast.boolean.indexes import BOOLEAN_INDEXES
from nearcast.boolean.scan import Scan
from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.registry import create
from nearcast.errors import IndexParameterError
from nearcast.kernels.hashing import FREE
from nearcast.kernels.layouts import MessageArrays
from nearcast.kernels.quadtree import column_of
from nearcast.papers.boolean.frequency_pyramid import index as pyramid_index
from nearcast.papers.boolean.frequency_pyramid.index import FrequencyPyramid, empty_pyramid, empty_work, resized_pyramid
from nearcast.papers.boolean.frequency_pyramid.kernels.insert import has_capacity
from nearcast.papers.boolean.frequency_pyramid.kernels.lists import (
    entry_at,
    find_edge,
    has_clause,
    list_extra,
    list_size,
    new_nodes,
)
from nearcast.papers.boolean.frequency_pyramid.kernels.shared_lists import put_in_list, share_list
from nearcast.papers.boolean.frequency_pyramid.layout import (
    ANCHOR_SHIFT,
    BELOW,
    CLAUSE,
    MASK,
    N_BUILT,
    N_ENTRIES,
    N_FREQUENT,
    N_LISTS,
    N_SHARED,
    N_UNCLEANED,
    NODE_FIELDS,
    NOTHING,
    ROOT,
    Options,
    PyramidArrays,
)
from nearcast.papers.boolean.quadtrees.cost_inputs import frame_of_clauses
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.scenarios.boolean import BooleanComparison

MOST_KEYWORDS = 32  # of any clause or message
PARAMETERS: list[dict[str, Any]] = [
    {"list_size": 1, "node_size": 1, "max_depth": 3},
    {"list_size": 2, "node_size": 3, "max_depth": 4, "cleaned": 0},
    {"list_size": 3, "node_size": 2, "max_depth": 3, "cleaned": 20},
    {"list_size": 2, "node_size": 2, "max_depth": 3, "is_sharing": False},
]


def make_pyramid(**parameters: Any) -> FrequencyPyramid:
    index = create(BOOLEAN_INDEXES, "frequency_pyramid", parameters)
    assert isinstance(index, FrequencyPyramid)
    return index


def batch_of(keywords: list[list[int]], boxes: list[tuple[float, float, float, float]], first: int = 0) -> ClauseBatch:
    start = np.concatenate([[0], np.cumsum([len(clause_arrays) for clause_arrays in keywords])]).astype(np.int64)
    required = np.array([word for clause_arrays in keywords for word in clause_arrays], np.int32)
    x0, y0, x1, y1 = (np.array(side, np.float64) for side in zip(*boxes, strict=True))
    return ClauseBatch(np.arange(first, first + len(boxes), dtype=np.int32), start, required, x0, y0, x1, y1)


def random_clauses(rng: np.random.Generator, n: int, first: int, n_keywords: int) -> ClauseBatch:
    """Boxes on a grid of eight, many at the borders of cells; some are points, some everywhere, some without keywords."""
    keywords = [sorted({int(n_keywords * rng.random() ** 2) for _ in range(rng.integers(0, 4))}) for _ in range(n)]
    low = rng.integers(0, 9, (n, 2)).astype(float)
    high = low + rng.integers(0, 3, (n, 2)) * rng.choice([0.5, 1.0], (n, 1))
    low[::17], high[::17] = -np.inf, np.inf
    boxes = [(float(x0), float(y0), float(x1), float(y1)) for (x0, y0), (x1, y1) in zip(low, high, strict=True)]
    return batch_of(keywords, boxes, first)


def random_messages(rng: np.random.Generator, n: int, side: float, n_keywords: int) -> MessageBatch:
    clause_arrays = [sorted({int(n_keywords * rng.random() ** 2) for _ in range(6)}) for _ in range(n)]
    start = np.concatenate([[0], np.cumsum([len(w) for w in clause_arrays])]).astype(np.int64)
    low = rng.integers(-1, 21, (n, 2)) * 0.5
    high = low + rng.random((n, 2)) * side
    sides = [np.ascontiguousarray(values) for values in (low[:, 0], low[:, 1], high[:, 0], high[:, 1])]
    keyword = np.array([word for w in clause_arrays for word in w], np.int32)
    return MessageBatch(MessageArrays(start, keyword, *sides), np.arange(n), MOST_KEYWORDS)


def edges_of(index: FrequencyPyramid) -> dict[int, dict[int, int]]:
    edges: dict[int, dict[int, int]] = {}
    for key, value in index._pyramid.slot.reshape(-1, 2).tolist():
        if key != FREE:
            edges.setdefault((key - 1) >> ANCHOR_SHIFT, {})[(key - 1) & ((1 << ANCHOR_SHIFT) - 1)] = value
    return edges


def lists_of_cell(index: FrequencyPyramid, edges: dict[int, dict[int, int]], cell: int) -> tuple[list[int], set[int]]:
    """Every list that can be reached in a cell, and which of them stand at the end of a path."""
    node = index._pyramid.node
    found, ends, pile = [], set(), [cell]
    while pile:
        number = pile.pop()
        below = int(node[NODE_FIELDS * number + BELOW])
        if number != cell and below != NOTHING:
            found.append(below)
            ends.add(below)
        for anchor, value in edges.get(number, {}).items():
            assert int(node[NODE_FIELDS * number + MASK]) & int(keyword_bit(anchor))
            if value >= 0:
                found.append(value)
            else:
                pile.append(~value)
    return found, ends


def members(index: FrequencyPyramid, start: int) -> list[int]:
    word = index._pyramid.word
    return [int(word[entry_at(word, start, at) + CLAUSE]) for at in range(int(list_size(word[start])))]


def assert_pyramid_holds(index: FrequencyPyramid, clauses: ClauseStore) -> None:
    """On the way to each finest cell a living clause that meets it stands once; lists keep sizes and know sharers."""
    pyramid, layout, depth_limit = index._pyramid, clauses.layout(), index.parameters.max_depth
    word, frame, edges = pyramid.word, pyramid.frame.tolist(), edges_of(index)
    columns = [
        [int(column_of(float(value), *frame[3 * (at % 2) : 3 * (at % 2) + 3], 1 << depth_limit)) for value in side]
        for at, side in enumerate((layout.x0, layout.y0, layout.x1, layout.y1))
    ]
    alive = np.flatnonzero(layout.is_alive).tolist()
    all_lists: set[int] = set()
    sharers: Counter[int] = Counter()

    def descend(cell: int, quarter: int, depth: int, column: int, row: int, above: Counter[int]) -> None:
        found, ends = lists_of_cell(index, edges, cell)
        assert len(found) == len(set(found))
        all_lists.update(found)
        seen = above + Counter(clause for start in found for clause in members(index, start))
        for start in found:
            if start not in ends:
                assert len(members(index, start)) <= index.parameters.list_size + 1
        for start in edges.get(cell, {}).values():
            if start >= 0:
                assert int(list_extra(word[start])) >> quarter & 1
                sharers[start] += 1
        block = int(pyramid.node[NODE_FIELDS * cell + BELOW])
        if block == NOTHING:
            shift = depth_limit - depth
            for clause in alive:
                x0, y0, x1, y1 = (side[clause] >> shift for side in columns)
                if x0 <= column <= x1 and y0 <= row <= y1:
                    assert seen[clause] == 1
            return
        for below in range(4):
            descend(block + below, below, depth + 1, 2 * column + below % 2, 2 * row + below // 2, seen)

    descend(ROOT, 0, 0, 0, 0, Counter())
    assert len(all_lists) == pyramid.head[N_LISTS]
    assert sum(len(members(index, start)) for start in all_lists) == pyramid.head[N_ENTRIES]
    assert sum(count - 1 for count in sharers.values()) == pyramid.head[N_SHARED]


def assert_answers(index: FrequencyPyramid, clauses: ClauseStore, messages: MessageBatch) -> None:
    (groups, work), (expected, _) = index.match(clauses, messages), Scan(Scan.parameters_class()).match(clauses, messages)
    message, clause = groups.pairs()
    assert sorted(zip(message.tolist(), clause.tolist(), strict=True)) == sorted(zip(*expected.pairs(), strict=True))
    assert groups.n_pairs <= work.candidates <= clauses.n_alive * len(messages)


def remove(index: FrequencyPyramid, clauses: ClauseStore, anchors: NDArray[Any]) -> None:
    index.delete(clauses, clauses.remove(anchors.astype(np.int32)))


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_a_clause_stands_once_on_every_way_down_through_a_life_of_changes(parameters: dict[str, Any]) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        index, clauses = make_pyramid(**parameters), ClauseStore()
        clauses.add(random_clauses(rng, 50, 0, 5))
        index.build(clauses)
        assert_pyramid_holds(index, clauses)
        for step in range(3):
            # Later batches have keywords that were not there before.
            index.insert(clauses, clauses.add(random_clauses(rng, 40, clauses.n, 5 + 2 * step)))
            remove(index, clauses, rng.choice(clauses.n, 20, replace=False))
            assert_pyramid_holds(index, clauses)
            for side in (0.0, 1.0, 12.0):
                assert_answers(index, clauses, random_messages(rng, 6, side, 10))
        opened = make_pyramid(**parameters)
        opened.restore({key: array.copy() for key, array in index.arrays().items()})
        opened.insert(clauses, clauses.add(random_clauses(rng, 20, clauses.n, 6)))
        assert_pyramid_holds(opened, clauses)
        assert_answers(opened, clauses, random_messages(rng, 6, 0.0, 6))


def test_neighbours_share_a_list_and_leave_it_when_it_is_full() -> None:
    corners = batch_of([[1], [1]], [(0.0, 0.0, 0.0, 0.0), (8.0, 8.0, 8.0, 8.0)])
    index, alone = (make_pyramid(list_size=2, node_size=1, max_depth=3, is_sharing=flag) for flag in (True, False))
    clauses = ClauseStore()
    clauses.add(corners)
    # In the middle, where four quarters meet: the third makes the keyword frequent, and two go down.
    clauses.add(batch_of([[0]] * 3, [(3.9, 3.9, 4.1, 4.1)] * 3, 2))
    index.build(clauses)
    alone.build(clauses)
    assert index._pyramid.head[[N_SHARED, N_ENTRIES]].tolist() == [3, 2 + 1 + 2]
    assert alone._pyramid.head[[N_SHARED, N_ENTRIES]].tolist() == [0, 2 + 1 + 4 * 2]
    for first in (5, 6):
        index.insert(clauses, clauses.add(batch_of([[0]], [(3.9, 3.9, 4.1, 4.1)], first)))
        assert_pyramid_holds(index, clauses)
    assert index._pyramid.head[N_SHARED] < 3


def quarters_of_two(clauses: ClauseStore) -> tuple[PyramidArrays, Options, tuple[int, int, int, int]]:
    """Four empty quarters for a clause of keywords 0 and 1 and one of a keyword, which both meet the two lower quarters."""
    layout, options = clauses.layout(), Options(3, 3, 3, 1)
    pyramid, work = empty_pyramid(frame_of_clauses(layout, np.arange(2, dtype=np.int32), 3), 3), empty_work()
    assert not has_capacity(pyramid, work, options, 2)
    pyramid, work = resized_pyramid(pyramid, work)
    return pyramid, options, (int(new_nodes(pyramid, 4)), 1, 0, 0)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_list_is_not_shared_where_a_quarter_would_have_a_clause_twice(swapped: bool) -> None:
    """Errata: the authors' program shares it, and a message with both keywords gets the clause twice."""
    clauses = ClauseStore()
    clauses.add(batch_of([[0, 1], [0]], [(3.0, 1.0, 5.0, 2.0)] * 2))
    layout = clauses.layout()
    pyramid, options, cell = quarters_of_two(clauses)
    # The first stands under one keyword in one of them, under the other in the other.
    left, right = (2, 1) if swapped else (1, 2)
    put_in_list(pyramid, layout, options, cell, 0, left, 0, 0b11, 0b11)
    put_in_list(pyramid, layout, options, cell, 1, right, 0, 0b11, 0b10)
    start = put_in_list(pyramid, layout, options, cell, 0, 1, 1, 0b11, 0b11)
    assert share_list(pyramid, layout.is_alive, options, cell, 1, 1, start, 1) == NOTHING
    # A clause that the other quarter has nowhere else may be shared.
    layout.is_alive[0] = 0
    assert share_list(pyramid, layout.is_alive, options, cell, 1, 1, start, 1) == start
    assert pyramid.head[N_SHARED] == 1


def test_a_shared_list_is_left_for_a_clause_that_another_quarter_has_already() -> None:
    clauses = ClauseStore()
    clauses.add(batch_of([[0, 1], [1]], [(3.0, 1.0, 5.0, 2.0)] * 2))
    layout = clauses.layout()
    pyramid, options, cell = quarters_of_two(clauses)
    start = put_in_list(pyramid, layout, options, cell, 0, 2, 1, 0b11, 0b11)
    assert share_list(pyramid, layout.is_alive, options, cell, 1, 2, start, 1) == start
    put_in_list(pyramid, layout, options, cell, 0, 1, 0, 0b11, 0b11)
    own = put_in_list(pyramid, layout, options, cell, 1, 2, 0, 0b11, 0b10)
    assert own != start
    assert has_clause(pyramid.word, own, 0)
    assert has_clause(pyramid.word, own, 1)
    assert find_edge(pyramid.slot, cell[0], 2) == start
    assert not has_clause(pyramid.word, start, 0)
    assert pyramid.head[N_SHARED] == 0


def test_a_keyword_is_frequent_only_where_more_than_a_list_of_living_clauses_have_it() -> None:
    index, clauses = make_pyramid(list_size=3, cleaned=0), ClauseStore()
    clauses.add(batch_of([[0]] * 3, [(0.0, 0.0, 9.0, 9.0)] * 3))
    index.build(clauses)
    remove(index, clauses, np.array([1]))
    assert index._pyramid.head[N_ENTRIES] == 3
    # The dead one makes room.
    index.insert(clauses, clauses.add(batch_of([[0]], [(0.0, 0.0, 1.0, 1.0)], 3)))
    assert index._pyramid.head[[N_ENTRIES, N_FREQUENT]].tolist() == [3, 0]
    index.insert(clauses, clauses.add(batch_of([[0]], [(0.0, 0.0, 1.0, 1.0)], 4)))
    assert index._pyramid.head[[N_ENTRIES, N_FREQUENT]].tolist() == [4, 1]
    assert_pyramid_holds(index, clauses)


def test_a_clause_whose_rarest_keyword_is_taken_goes_under_another_before_a_trie_is_made() -> None:
    matcher = nc.Matcher("fast", "plane", list_size=1)
    matcher.subscribe(
        [
            nc.Subscription(i, clause_arrays, nc.Box(0, 0, 1, 1))
            for i, clause_arrays in enumerate((["a"], ["a", "b"], ["a", "c"]))
        ]
    )
    assert matcher.stats()["frequent"] == 0
    matcher.subscribe([nc.Subscription(3, ["b", "a"], nc.Box(0, 0, 1, 1))])
    assert matcher.stats()["frequent"] == 2


def test_small_clauses_go_down_and_large_ones_stay() -> None:
    both = BooleanComparison(nc.Matcher("fast", "plane", list_size=1, node_size=2, max_depth=5), Oracle("plane"))
    small = [nc.Subscription(i, ["word"], nc.Box(i % 8, i // 8, i % 8 + 0.5, i // 8 + 0.5)) for i in range(64)]
    large = [nc.Subscription(100 + i, ["word"], nc.Box(0, 0, 8, 8)) for i in range(10)]
    everywhere = [nc.Subscription(200, ["word"]), nc.Subscription(201, []), nc.Subscription(202, [], nc.Box(1, 1, 1, 1))]
    both.subscribe([*small, *large, *everywhere])
    message = nc.Message(1, ["word"], (1, 1))
    assert len(both.publish([message])) == 14
    assert both.matcher.report.candidates < 30
    assert len(both.publish([nc.Message(2, ["word"], nc.Box(-1, -1, 9, 9))])) == 77
    assert len(both.publish([nc.Message(3, ["other"], nc.Box(-1, -1, 9, 9))])) == 2
    told = both.matcher.explain(message, 100).path
    assert "end of its path in a trie" in told[0]
    assert len(told) == 1
    assert len(both.matcher.explain(message, 9).path) > 2
    assert "end of its path in a trie" in both.matcher.explain(message, 201).path[0]


def test_the_way_to_a_clause_is_told() -> None:
    matcher = nc.Matcher("fast", "plane", list_size=2, max_depth=3)
    clause_arrays = [["a", "b"], ["a"], ["a"], ["a"], ["b"], ["b"], ["b"], ["d"], []]
    matcher.subscribe([nc.Subscription(i, keywords, nc.Box(i, i, i + 1, i + 1)) for i, keywords in enumerate(clause_arrays)])
    message = nc.Message(1, ["a", "b", "c", "d"], nc.Box(0, 0, 9, 9))
    told = [matcher.explain(message, i).path[0] for i in range(9)]
    assert told[7] == "depth 0, column 0, row 0: list of 1 clauses of keyword 2, each verified"
    assert told[8].endswith("list of 1 clauses of no keyword, each verified")
    assert told[0].endswith("list of 1 clauses in a trie, after 2 keywords, each verified")
    assert told[3].endswith("at the end of its path in a trie, each verified")
    assert matcher.explain(nc.Message(2, ["a"], (0, 0)), 0).path[0].startswith("not looked for: the message lacks")
    assert "lies in other cells" in matcher.explain(nc.Message(3, ["d"], (0, 0)), 7).path[0]


def test_keywords_with_one_bit_in_common_are_told_apart() -> None:
    other = next(keyword for keyword in range(2, 1000) if keyword_bit(keyword) == keyword_bit(1))
    index, clauses = make_pyramid(), ClauseStore()
    clauses.add(batch_of([[0, 1]], [(0.0, 0.0, 9.0, 9.0)]))
    index.build(clauses)
    for low, high in ((1.0, 1.0), (1.0, 2.0)):
        for keyword, n_expected in ((1, 1), (other, 0)):
            sides = [np.array([value]) for value in (low, low, high, high)]
            arrays = MessageArrays(np.array([0, 2], np.int64), np.array([0, keyword], np.int32), *sides)
            groups, work = index.match(clauses, MessageBatch(arrays, np.arange(1), 1000))
            assert (groups.n_pairs, work.candidates) == (n_expected, 1)


@pytest.mark.parametrize("cleaned", [0, 1, 1000])
def test_what_went_down_is_found_after_everything_above_it_has_died(cleaned: int) -> None:
    """Errata: the authors' cleaner makes a list of a trie again, although what stands further down is found by the trie."""
    both = BooleanComparison(
        nc.Matcher("fast", "plane", list_size=1, node_size=1, max_depth=6, cleaned=cleaned), Oracle("plane")
    )
    both.subscribe([nc.Subscription(i, ["a", "b"], nc.Box(i % 8, i // 8, i % 8 + 0.25, i // 8 + 0.25)) for i in range(40)])
    message = nc.Message(1, ["a", "b"], (3, 3))
    path = both.matcher.explain(message, 27).path
    assert len(path) > 1
    both.unsubscribe([i for i in range(40) if i != 27 and i % 3])
    both.subscribe([nc.Subscription(100, ["c"], nc.Box(0, 0, 1, 1))])
    assert len(both.publish([message, nc.Message(2, ["a", "b", "c"], nc.Box(0, 0, 9, 9))])) > 1


def test_the_cleaner_comes_round_and_then_nobody_looks_for_dead_clauses() -> None:
    rng = np.random.default_rng(5)
    index, clauses = make_pyramid(list_size=2, node_size=2, max_depth=4, cleaned=3), ClauseStore()
    clauses.add(random_clauses(rng, 120, 0, 6))
    index.build(clauses)
    before = int(index._pyramid.head[N_ENTRIES])
    remove(index, clauses, np.arange(0, 80))
    n_slots = len(index._pyramid.slot) // 2
    assert index._pyramid.head[N_UNCLEANED] == n_slots - 3 * 80
    for _ in range(n_slots // 3):
        index._collect_dead(clauses, 1)
    assert index._pyramid.head[N_UNCLEANED] == 0
    assert index._pyramid.head[N_ENTRIES] < before / 2
    assert_pyramid_holds(index, clauses)
    assert not [c for start in _every_list(index) for c in members(index, start) if not clauses.layout().is_alive[c]]
    assert_answers(index, clauses, random_messages(rng, 20, 0.0, 6))


def _every_list(index: FrequencyPyramid) -> list[int]:
    edges = edges_of(index)
    # As if every node were a cell: what a node of a trie ends in is found from the node above it.
    return [start for node in edges for start in lists_of_cell(index, edges, node)[0]]


def test_what_grew_clause_by_clause_is_built_anew_with_grids_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyramid_index, "_LEAST_REBUILT", 50)
    rng = np.random.default_rng(2)
    index, clauses = make_pyramid(), ClauseStore()
    index.build(clauses)
    for _ in range(8):
        index.insert(clauses, clauses.add(random_clauses(rng, 10, clauses.n, 6)))
    assert index._pyramid.head[N_BUILT] == 60
    assert index._pyramid.frame[1] > index._pyramid.frame[0]
    assert_answers(index, clauses, random_messages(rng, 20, 0.0, 6))


def test_parameters_that_make_no_sense_are_refused() -> None:
    for name, value in (("list_size", 0), ("node_size", 5000), ("max_depth", 16), ("cleaned", -1)):
        with pytest.raises(IndexParameterError, match=f"{name}={value}"):
            make_pyramid(**{name: value})
