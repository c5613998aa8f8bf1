"""What the quadtree indexes share: invariants of the lists through a life of changes, the model, the options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.boolean.indexes import BOOLEAN_INDEXES
from nearcast.boolean.scan import Scan
from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.registry import create
from nearcast.errors import IndexParameterError
from nearcast.kernels.hashing import FREE, find_value, home
from nearcast.kernels.layouts import MessageArrays
from nearcast.kernels.quadtree import cell_code, column_of, depth_of_code
from nearcast.papers.boolean.quadtrees import index as quadtree_module
from nearcast.papers.boolean.quadtrees.index import CellIndex
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit, list_key
from nearcast.papers.boolean.quadtrees.layout import ANCHOR_SHIFT, CODE_MASK, N_BUILT, N_FILED, N_LISTS, NO_LIST, ROOT_CODE

INDEXES: list[tuple[str, dict[str, Any]]] = [
    ("space_first_quadtree", {}),
    ("space_first_quadtree", {"update_cost": 0.0001}),
    ("keyword_first_quadtree", {}),
    ("keyword_first_quadtree", {"smallest_tree": 2, "update_cost": 0.001}),
]
N_KEYWORDS = 12
MOST_KEYWORDS = 32  # of any clause or message


def quadtree(name: str, parameters: dict[str, Any]) -> CellIndex:
    index = create(BOOLEAN_INDEXES, name, parameters)
    assert isinstance(index, CellIndex)
    return index


def clause_batch(rng: np.random.Generator, n: int, first_owner: int, n_keywords: int = N_KEYWORDS) -> ClauseBatch:
    """Boxes around two towns, points among them; keywords skewed, some clauses without."""
    counts = rng.integers(0, 4, n)
    clause_keywords = [np.unique(np.minimum(rng.geometric(0.25, count) - 1, n_keywords - 1)) for count in counts]
    start = np.concatenate([[0], np.cumsum([len(w) for w in clause_keywords])]).astype(np.int64)
    centre = np.where(rng.random((n, 1)) < 0.7, rng.normal(0.3, 0.03, (n, 2)), rng.random((n, 2)))
    half = rng.random((n, 1)) * 0.05 * (rng.random((n, 1)) < 0.9)
    low, high = centre - half, centre + half
    required = np.concatenate([*clause_keywords, np.empty(0)]).astype(np.int32)
    anchor = np.arange(first_owner, first_owner + n, dtype=np.int32)
    x0, y0, x1, y1 = (np.ascontiguousarray(side) for side in (low[:, 0], low[:, 1], high[:, 0], high[:, 1]))
    return ClauseBatch(anchor, start, required, x0, y0, x1, y1)


def message_batch(rng: np.random.Generator, n: int, largest: float = 0.0, n_keywords: int = N_KEYWORDS) -> MessageBatch:
    """Points, or boxes with sides up to `largest`, some of them outside the region of the clauses."""
    clause_keywords = [np.unique(np.minimum(rng.geometric(0.2, 5) - 1, n_keywords - 1)) for _ in range(n)]
    start = np.concatenate([[0], np.cumsum([len(w) for w in clause_keywords])]).astype(np.int64)
    low = np.where(rng.random((n, 1)) < 0.6, rng.normal(0.3, 0.03, (n, 2)), rng.random((n, 2)) * 1.4 - 0.2)
    high = low + rng.random((n, 2)) * largest
    sides = [np.ascontiguousarray(side) for side in (low[:, 0], low[:, 1], high[:, 0], high[:, 1])]
    arrays = MessageArrays(start, np.concatenate(clause_keywords).astype(np.int32), *sides)
    return MessageBatch(arrays, np.arange(n), MOST_KEYWORDS)


def assert_lists_hold(index: CellIndex, clauses: ClauseStore) -> None:
    """Each living clause stands once in each of its lists, its cells are disjoint and cover its box; each list can be found."""
    lists, layout = index._lists, clauses.layout()
    frame, depth_limit = index._locations.frame.tolist(), index.parameters.max_depth
    n_lists = int(lists.head[N_LISTS])
    standing: dict[int, list[int]] = {}
    for list_id in range(n_lists):
        key, start = int(lists.list_key[list_id]), int(lists.pool.start[list_id])
        anchor, code = key >> ANCHOR_SHIFT, key & CODE_MASK
        if code == ROOT_CODE:
            assert lists.directory[2 * anchor] == list_id
        else:
            assert list_key(anchor, code) == key
            assert find_value(lists.slot, key, home(key, len(lists.slot) // 2), NO_LIST) == list_id
            assert lists.directory[2 * anchor + 1] >> depth_of_code(code) & 1
        for entry in range(start, start + int(lists.pool.size[list_id])):
            clause = int(lists.pool.item[entry])
            standing.setdefault(clause, []).append(list_id)
            clause_keywords = layout.keyword[layout.keyword_start[clause] : layout.keyword_start[clause + 1]].tolist()
            assert anchor - 1 in clause_keywords if anchor else clause_keywords == []
            bits = 0
            for word in clause_keywords:
                bits |= int(keyword_bit(word)) if word != anchor - 1 else 0
            assert lists.signature[entry] == bits
            sides = [float(column[clause]) for column in layout[2:6]]
            assert lists.box[4 * entry : 4 * entry + 4].tolist() == sides
    assert set(standing) == set(np.flatnonzero(layout.is_alive).tolist())
    assert lists.head[N_FILED] == len(standing)
    for clause, list_ids in standing.items():
        first = int(lists.bound_start[clause])
        assert sorted(list_ids) == sorted(lists.bound[first : first + int(lists.n_bound[clause])].tolist())
        codes = [int(lists.list_key[list_id]) & CODE_MASK for list_id in list_ids]
        for one in codes:
            for other in codes:
                assert one == other or one >> max(0, 2 * int(depth_of_code(one) - depth_of_code(other))) != other
        for x, y in ((layout.x0, layout.y0), (layout.x1, layout.y1), (layout.x0, layout.y1), (layout.x1, layout.y0)):
            column = column_of(float(x[clause]), *frame[:3], 1 << depth_limit)
            row = column_of(float(y[clause]), *frame[3:], 1 << depth_limit)
            smallest = int(cell_code(depth_limit, column, row))
            assert sum(smallest >> (2 * (depth_limit - int(depth_of_code(code)))) == code for code in codes) == 1


def assert_answers(index: CellIndex, clauses: ClauseStore, messages: MessageBatch) -> None:
    (groups, work), (expected, _) = index.match(clauses, messages), Scan(Scan.parameters_class()).match(clauses, messages)
    message, clause = groups.pairs()
    assert sorted(zip(message.tolist(), clause.tolist(), strict=True)) == sorted(zip(*expected.pairs(), strict=True))
    assert message.tolist() == sorted(message.tolist())
    assert groups.n_pairs <= work.candidates <= clauses.n_alive * len(messages)


def remove(index: CellIndex, clauses: ClauseStore, anchors: NDArray[np.int32]) -> None:
    index.delete(clauses, clauses.remove(anchors))


@pytest.mark.parametrize(("name", "parameters"), INDEXES)
@pytest.mark.parametrize("has_history", [False, True])
def test_lists_stay_right_through_a_life_of_changes(name: str, parameters: dict[str, Any], has_history: bool) -> None:
    rng = np.random.default_rng(1)
    index, clauses = quadtree(name, parameters), ClauseStore()
    clauses.add(clause_batch(rng, 70, 0))
    index.build(clauses, message_batch(rng, 100, n_keywords=N_KEYWORDS + 3) if has_history else None)
    assert_lists_hold(index, clauses)
    for step in range(3):
        first = 70 + 60 * step
        # Later batches have keywords that were not there before.
        index.insert(clauses, clauses.add(clause_batch(rng, 60, first, N_KEYWORDS + 2 * step)))
        remove(index, clauses, rng.choice(first, 25, replace=False).astype(np.int32))
        assert_lists_hold(index, clauses)
        for largest in (0.0, 0.01, 1.5):
            assert_answers(index, clauses, message_batch(rng, 12, largest, N_KEYWORDS + 6))
    opened = quadtree(name, parameters)
    opened.restore({key: array.copy() for key, array in index.arrays().items()})
    opened.insert(clauses, clauses.add(clause_batch(rng, 30, 1000)))
    assert_lists_hold(opened, clauses)
    assert_answers(opened, clauses, message_batch(rng, 12, 0.1))


@pytest.mark.parametrize(("name", "parameters"), INDEXES)
def test_what_grew_clause_by_clause_is_built_anew_now_and_then(
    name: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quadtree_module, "_LEAST_REBUILT", 100)
    rng = np.random.default_rng(2)
    index, clauses = quadtree(name, parameters), ClauseStore()
    index.build(clauses)
    for step in range(13):
        index.insert(clauses, clauses.add(clause_batch(rng, 10, 10 * step)))
    assert index._lists.head[N_BUILT] == 110
    assert index._locations.frame[1] > index._locations.frame[0]
    assert index.stats()["copies"] >= 1
    assert_answers(index, clauses, message_batch(rng, 20))


def test_a_history_says_where_messages_are_and_outlives_a_build_without() -> None:
    rng = np.random.default_rng(3)
    index, clauses = quadtree("keyword_first_quadtree", {"smallest_tree": 1}), ClauseStore()
    clauses.add(clause_batch(rng, 300, 0))
    index.build(clauses)
    assert index._locations.facts.tolist() == [10, 0, 0]
    history = message_batch(rng, 100, 0.02)
    index.build(clauses, history)
    assert index._locations.facts[:2].tolist() == [10, 100]
    assert len(index._locations.cell) == 100
    counted = np.diff(index._locations.anchor_start)
    assert counted[1:].tolist() == np.bincount(history.arrays.keyword, minlength=N_KEYWORDS).tolist()
    assert counted[0] == 0
    frame = index._locations.frame.tolist()
    index.build(clauses)
    assert index._locations.frame.tolist() == frame
    none = np.empty(0)
    no_messages = MessageArrays(np.zeros(1, np.int64), np.empty(0, np.int32), none, none, none, none)
    index.build(clauses, MessageBatch(no_messages, np.arange(0), 0))
    assert index._locations.frame.tolist() == frame


def test_regions_without_bounds_do_not_stretch_the_frame() -> None:
    largest = float(np.finfo(np.float64).max)
    clauses = ClauseStore()
    sides = [np.array([0.0, -largest]), np.array([1.0, -largest]), np.array([2.0, largest]), np.array([3.0, largest])]
    clauses.add(ClauseBatch(np.arange(2, dtype=np.int32), np.zeros(3, np.int64), np.empty(0, np.int32), *sides))
    index = quadtree("space_first_quadtree", {})
    index.build(clauses)
    assert index._locations.frame.tolist() == [0.0, 2.0, 1024.0, 1.0, 3.0, 1024.0]


def test_guessing_and_area_differ_only_in_where_messages_are_expected() -> None:
    rng = np.random.default_rng(4)
    clauses = ClauseStore()
    clauses.add(clause_batch(rng, 800, 0))
    messages = message_batch(rng, 60)
    work = []
    for is_guessing in (True, False):
        index = quadtree("keyword_first_quadtree", {"is_guessing": is_guessing, "update_cost": 0.005})
        index.build(clauses)
        assert len(index._locations.cell) == (800 if is_guessing else 0)
        assert_answers(index, clauses, messages)
        work.append(index.match(clauses, messages)[1].candidates)
    # Towns are crowded: by area their cells look unimportant and stay large.
    assert work[0] < work[1]


@pytest.mark.parametrize("name", ["space_first_quadtree", "keyword_first_quadtree"])
@pytest.mark.parametrize("given", [{"max_depth": 0}, {"max_depth": 16}, {"update_cost": 0.0}, {"update_cost": 1.5}])
def test_impossible_options_are_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(IndexParameterError, match="expected"):
        create(BOOLEAN_INDEXES, name, given)


def test_the_table_of_lists_is_never_full() -> None:
    rng = np.random.default_rng(6)
    index, clauses = quadtree("space_first_quadtree", {"update_cost": 0.0001}), ClauseStore()
    index.build(clauses)
    for step in range(15):
        index.insert(clauses, clauses.add(clause_batch(rng, 20, 20 * step)))
        assert 3 * np.count_nonzero(index._lists.slot[::2] != FREE) <= len(index._lists.slot)


def test_the_frame_gives_every_column_a_part_of_the_region() -> None:
    index, clauses = quadtree("space_first_quadtree", {"max_depth": 3}), ClauseStore()
    side = np.arange(8) + 0.5
    sides = [np.append(side, 0.0), np.append(side, 0.0), np.append(side, 8.0), np.append(side, 8.0)]
    clauses.add(ClauseBatch(np.arange(9, dtype=np.int32), np.zeros(10, np.int64), np.empty(0, np.int32), *sides))
    index.build(clauses)
    frame = index._locations.frame.tolist()
    assert [column_of(value, *frame[:3], 8) for value in side.tolist()] == list(range(8))


@pytest.mark.parametrize("name", ["space_first_quadtree", "keyword_first_quadtree"])
@pytest.mark.parametrize("largest", [0.0, 0.5])
def test_more_pairs_than_the_first_room(name: str, largest: float) -> None:
    rng = np.random.default_rng(7)
    clauses = ClauseStore()
    n, zero, one = 90, np.zeros(90), np.ones(90)
    clauses.add(
        ClauseBatch(np.arange(n, dtype=np.int32), np.zeros(n + 1, np.int64), np.empty(0, np.int32), zero, zero, one, one)
    )
    index = quadtree(name, {})
    index.build(clauses)
    messages = message_batch(rng, 60, largest)
    for side in (messages.arrays.x0, messages.arrays.y0, messages.arrays.x1, messages.arrays.y1):
        np.clip(side, 0.0, 1.0, out=side)
    assert index.match(clauses, messages)[0].n_pairs == 60 * 90
    assert_answers(index, clauses, messages)
