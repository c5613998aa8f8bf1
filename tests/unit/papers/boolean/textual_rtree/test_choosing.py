"""The order of a clause's keywords: each selection on clauses small enough to check by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD
from nearcast.papers.boolean.textual_rtree.keyword_order import KeywordOrder, greedy_ranks
from nearcast.papers.boolean.textual_rtree.layout import SELECTIONS


def clauses_of(sets: list[list[int]], centres: list[float] | None = None) -> ClauseArrays:
    """Clauses at points of the diagonal."""
    start = np.concatenate([[0], np.cumsum([len(words) for words in sets])]).astype(np.int64)
    keyword = np.array([word for words in sets for word in words], np.int32)
    at = np.array(centres if centres is not None else [0.0] * len(sets))
    return ClauseArrays(start, keyword, at, at, at, at, np.ones(len(sets), np.uint8))


def orders(selection: str, clauses: ClauseArrays, n_keywords: int, seed: int = 0) -> list[list[int]]:
    slots = np.arange(len(clauses.x0), dtype=np.int32)
    order = KeywordOrder.of_clauses(selection, seed, clauses, slots, n_keywords)
    start, keyword = order.ordered(clauses, slots, n_keywords, is_local=True)
    return [keyword[start[i] : start[i + 1]].tolist() for i in range(len(slots))]


def greedy_by_hand(sets: list[list[int]]) -> list[int]:
    """Keywords in the order in which the greedy cover takes them."""
    left, picked = [words for words in sets if words], []
    while left:
        count = {word: sum(word in words for words in left) for words in left for word in words}
        best = min(count, key=lambda word: (-count[word], word))
        picked.append(best)
        left = [words for words in left if best not in words]
    return picked


@pytest.mark.parametrize("selection", SELECTIONS)
def test_an_order_is_of_the_clause_s_own_keywords(selection: str) -> None:
    sets = [[0, 3, 4], [], [1], [0, 1, 2, 3], []]
    found = orders(selection, clauses_of(sets, [0.0, 1.0, 2.0, 3.0, 9.0]), 5)
    assert [sorted(words) for words in found] == [words or [NO_KEYWORD] for words in sets]


def test_idf_puts_the_rarest_first_and_the_smaller_id_on_a_tie() -> None:
    sets = [[0, 1, 2, 3], [0, 1], [0, 2], [0]]
    assert orders("idf", clauses_of(sets), 4) == [[3, 1, 2, 0], [1, 0], [2, 0], [0]]


def test_df_is_a_greedy_cover_and_not_the_largest_frequency() -> None:
    # 0 is in four clauses, 1 in three; but once the clauses of 0 are gone, 2 covers more than 1 does.
    sets = [[0, 1], [0, 1], [0], [0], [1, 2], [2], [2]]
    found = orders("df", clauses_of(sets), 3)
    assert [words[0] for words in found] == [0, 0, 0, 0, 2, 2, 2]
    assert np.bincount([word for words in sets for word in words]).tolist() == [4, 3, 3]


@pytest.mark.parametrize("seed", range(20))
def test_the_greedy_ranks_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sets = [sorted(set(rng.integers(0, 12, rng.integers(0, 5)).tolist())) for _ in range(30)]
    clauses = clauses_of(sets)
    frequency = np.bincount(clauses.keyword, minlength=12).astype(np.int64)
    rank = greedy_ranks(clauses.keyword_start, clauses.keyword, frequency)
    picked = greedy_by_hand(sets)
    assert np.argsort(rank, kind="stable")[: len(picked)].tolist() == picked
    others = [word for word in range(12) if word not in picked]
    assert sorted(others, key=lambda word: (-frequency[word], word)) == [
        w for w in np.argsort(rank, kind="stable") if w in others
    ]


def test_local_counts_in_the_cell_of_the_clause() -> None:
    # 0 is frequent everywhere but near the first clause; 1 is frequent only there.
    sets = [[0, 1], [1], [1], [0], [0], [0], [0]]
    clauses = clauses_of(sets, [0.0, 0.0, 0.0, 50.0, 60.0, 70.0, 99.0])
    assert orders("local", clauses, 2)[0] == [0, 1]
    assert orders("idf", clauses, 2)[0] == [1, 0]


def test_local_bears_the_largest_coordinates_and_no_clause_at_all() -> None:
    largest = float(np.finfo(np.float64).max)
    assert orders("local", clauses_of([[0, 1], [1]], [-largest, largest]), 2) == [[0, 1], [1]]
    assert orders("local", clauses_of([]), 0) == []


def test_random_is_even_and_repeats_with_its_seed() -> None:
    clauses = clauses_of([[0, 1, 2]] * 3000)
    first: NDArray[np.int64] = np.bincount([words[0] for words in orders("random", clauses, 3)])
    assert first.min() > 900
    assert orders("random", clauses, 3) == orders("random", clauses, 3)
    assert orders("random", clauses, 3) != orders("random", clauses, 3, seed=1)


@pytest.mark.parametrize(("selection", "expected"), [("idf", [2, 1, 0]), ("local", [2, 1, 0]), ("df", [0, 1, 2])])
def test_a_word_that_came_later_is_the_rarest(selection: str, expected: list[int]) -> None:
    before = clauses_of([[0, 1], [0]])
    order = KeywordOrder.of_clauses(selection, 0, before, np.array([0, 1], np.int32), 2)
    _, keyword = order.ordered(clauses_of([[0, 1, 2]]), np.array([0], np.int32), 3)
    assert keyword.tolist() == expected
