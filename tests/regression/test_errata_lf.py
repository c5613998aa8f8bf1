"""Errata of LFilter (Yu, Li, Feng 2015), each on an input that shows it.

The functions are the printed algorithms in plain Python; where the text leaves a choice, the variant is a parameter. Each gives
a wrong answer, or more work, on an input where our index is right. E6 and E26 are errata of the compendium as well: E6 for the
quadtree only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.papers.boolean.cost_filter.costs import cost_figures
from nearcast.papers.boolean.cost_filter.kernels import pruning_is_dearer
from nearcast.testing.oracles.boolean import Oracle

Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True)
class Entry:
    """A subscription of the printed algorithms."""

    id: int
    words: str
    box: Rectangle


def meets(a: Rectangle, b: Rectangle) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def ours(
    index: str, entries: list[Entry], words: str, location: Rectangle, later: int = 0, **options: Any
) -> tuple[Counter[object], nc.Matcher]:
    """The answer of our index; the last `later` subscriptions are inserted after the build."""
    matcher = nc.Matcher(index, "plane", **options)
    subscriptions = [nc.Subscription(s.id, list(s.words), nc.Box(*s.box)) for s in entries]
    matcher.subscribe(subscriptions[: len(entries) - later])
    for subscription in subscriptions[len(entries) - later :]:
        matcher.subscribe([subscription])
    deliveries = matcher.publish([nc.Message(1, list(words), nc.Box(*location))])
    return Counter(d.subscription_id for d in deliveries), matcher


def expected(entries: list[Entry], words: str, location: Rectangle) -> Counter[object]:
    oracle = Oracle("plane")
    oracle.subscribe([nc.Subscription(s.id, list(s.words), nc.Box(*s.box)) for s in entries])
    return Counter(p.subscription_id for p in oracle.publish([nc.Message(1, list(words), nc.Box(*location))]))


# --- the trie ----------------------------------------------------------------------------------------------------


@dataclass
class TrieNode:
    """A node of the printed trie; `leaf` is its child with the empty token."""

    children: dict[str, TrieNode] = field(default_factory=dict)
    leaf: list[Entry] = field(default_factory=list)

    def below(self) -> Iterator[Entry]:
        yield from self.leaf
        for child in self.children.values():
            yield from child.below()

    @property
    def box(self) -> Rectangle:
        boxes = [s.box for s in self.below()]
        low = min(b[0] for b in boxes), min(b[1] for b in boxes)
        return (*low, max(b[2] for b in boxes), max(b[3] for b in boxes))


def printed_trie(entries: list[Entry]) -> TrieNode:
    root = TrieNode()
    for s in entries:
        node = root
        for word in sorted(s.words):
            node = node.children.setdefault(word, TrieNode())
        node.leaf.append(s)
    return root


def printed_walk(node: TrieNode, words: str, location: Rectangle, variant: str) -> list[int]:
    """MBRTrie-Filter with SelectPair and MBRTrie-Verify. Variants: "disjoint" (E7), "no leaf" (E8)."""
    answers = []
    if node.leaf and variant != "no leaf":
        answers = [s.id for s in node.leaf if meets(s.box, location)]
    for word, child in node.children.items():
        is_selected = not meets(child.box, location) if variant == "disjoint" else meets(child.box, location)
        if word in words and is_selected:
            answers += printed_walk(child, words, location, variant)
    return answers


TRIE_ENTRIES = [Entry(1, "a", (0, 0, 2, 2)), Entry(2, "ab", (1, 1, 3, 3)), Entry(3, "c", (5, 5, 6, 6))]


@pytest.mark.parametrize("variant", ["disjoint", "no leaf"])
@pytest.mark.parametrize("probe", ["tokens", "trie", "cost"])
def test_children_whose_box_meets_the_message_are_entered_and_so_are_leaves(variant: str, probe: str) -> None:
    """E7: SelectPair keeps children with an empty intersection. E8: the empty token of a leaf is in no message."""
    words, location = "abc", (1.0, 1.0, 1.0, 1.0)
    assert Counter(printed_walk(printed_trie(TRIE_ENTRIES), words, location, "")) == expected(TRIE_ENTRIES, words, location)
    assert Counter(printed_walk(printed_trie(TRIE_ENTRIES), words, location, variant)) != expected(
        TRIE_ENTRIES, words, location
    )
    assert ours("region_trie", TRIE_ENTRIES, words, location, probe=probe)[0] == expected(TRIE_ENTRIES, words, location)


def test_a_message_without_words_is_no_logarithm_of_zero() -> None:
    """E8: |T_n| = 0 and a node without children make the printed comparison take the logarithm of 0."""
    wordless = [*TRIE_ENTRIES, Entry(4, "", (0, 0, 9, 9))]
    for index in ("region_trie", "cost_filter"):
        assert ours(index, wordless, "", (1, 1, 1, 1))[0] == {4: 1}


def test_a_word_list_comes_before_the_longer_ones_that_begin_with_it() -> None:
    """E9: the order of a set and its prefix is not defined; with ids by arrival, the ids of a leaf are no range."""
    entries = [Entry(1, "a", (0, 0, 2, 2)), Entry(2, "ab", (0, 0, 2, 2)), Entry(3, "a", (0, 0, 2, 2))]
    leaf = [s.id for s in printed_trie(entries).children["a"].leaf]
    by_range = [s.id for s in entries if min(leaf) <= s.id <= max(leaf) and meets(s.box, (1, 1, 1, 1))]
    assert by_range == [1, 2, 3]
    answers, matcher = ours("region_trie", entries, "a", (1, 1, 1, 1))
    assert answers == expected(entries, "a", (1, 1, 1, 1)) == {1: 1, 3: 1}
    assert matcher.report.candidates == 2


# --- the quadtree ------------------------------------------------------------------------------------------------


@dataclass
class Quad:
    """A node of the printed quadtree with closed cells; `pivotal` is the full set, cover and other what is left of it."""

    cell: Rectangle
    children: list[Quad] = field(default_factory=list)
    held: list[Entry] = field(default_factory=list)
    pivotal: set[str] = field(default_factory=set)
    cover: set[str] = field(default_factory=set)
    other: set[str] = field(default_factory=set)


def greedy_pivots(held: list[Entry]) -> set[str]:
    pivots: set[str] = set()
    left = [s for s in held if s.words]
    while left:
        counts = Counter(word for s in left for word in s.words)
        best = min(counts, key=lambda word: (-counts[word], word))
        pivots.add(best)
        left = [s for s in left if best not in s.words]
    return pivots


def quarters(cell: Rectangle) -> list[Rectangle]:
    x0, y0, x1, y1 = cell
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return [(x0, y0, x, y), (x, y0, x1, y), (x0, y, x, y1), (x, y, x1, y1)]


def printed_quadtree(entries: list[Entry], variant: str, cell: Rectangle = (0, 0, 8, 8)) -> Quad:
    """Lists of one subscription, cells of at least side 2.

    Variants: "leaf sets are other sets", "union of other sets" (E10); "smallest cell" for the storage of MX-CIF (E11).
    """
    node = Quad(cell)
    if len(entries) <= 1 or cell[2] - cell[0] <= 2:
        node.held = entries
        node.pivotal = greedy_pivots(entries)
        node.cover = set(node.pivotal)
        if variant == "leaf sets are other sets":
            node.cover, node.other = set(), node.cover
        return node
    for quarter in quarters(cell):
        inside = [s for s in entries if meets(s.box, quarter)]
        if variant == "smallest cell":
            inside = [s for s in entries if contains(quarter, s.box) and not any(s in c.held for c in node.children)]
            entries = [s for s in entries if s not in inside]
        node.children.append(printed_quadtree(inside, variant, quarter))
    if variant == "smallest cell":
        node.held = entries
    if variant == "union of other sets":
        # A grandparent made from what the children still have: their cover sets are missing.
        sets = [child.other if child.children else child.pivotal for child in node.children]
    else:
        sets = [child.pivotal for child in node.children]
    node.pivotal = set().union(*sets)
    common = set.intersection(*sets)
    node.cover, node.other = common, node.pivotal - common
    for child in node.children:
        remove(child, common)
    return node


def contains(cell: Rectangle, box: Rectangle) -> bool:
    return cell[0] <= box[0] and box[2] <= cell[2] and cell[1] <= box[1] and box[3] <= cell[3]


def remove(node: Quad, words: set[str]) -> None:
    node.cover, node.other = node.cover - words, node.other - words
    for child in node.children:
        remove(child, words)


def printed_filter(node: Quad, words: set[str], location: Rectangle) -> list[Quad]:
    """PT-Quadtree-Filter: the leaves that may hold an answer."""
    if not meets(node.cell, location):
        return []
    if node.cover & words:
        return [leaf for leaf in leaves(node) if meets(leaf.cell, location)]
    if node.other & words:
        return [leaf for child in node.children for leaf in printed_filter(child, words, location)]
    return []


def leaves(node: Quad) -> Iterator[Quad]:
    if not node.children:
        yield node
    for child in node.children:
        yield from leaves(child)


def printed_verify(candidates: list[Quad], words: str, location: Rectangle) -> Counter[object]:
    return Counter(s.id for leaf in candidates for s in leaf.held if set(s.words) <= set(words) and meets(s.box, location))


def printed_answer(entries: list[Entry], words: str, location: Rectangle, variant: str = "") -> Counter[object]:
    return printed_verify(printed_filter(printed_quadtree(entries, variant), set(words), location), words, location)


def printed_insertion(root: Quad, new: Entry, variant: str) -> None:
    """The update of section 4.1. Variants: "leaf only" leaves the inner nodes as they are (E12)."""
    if not meets(root.cell, new.box):
        return
    word = min(new.words)
    if root.children:
        if variant != "leaf only" and word not in root.cover:
            root.other.add(word)
        for child in root.children:
            printed_insertion(child, new, variant)
    else:
        root.held = [*root.held, new]
        root.cover.add(word)


QUADTREE: dict[str, Any] = {"leaf_size": 1, "max_depth": 3}


@dataclass(frozen=True)
class Case:
    """Subscriptions and one message."""

    entries: list[Entry]
    words: str
    location: Rectangle

    @property
    def expected(self) -> Counter[object]:
        return expected(self.entries, self.words, self.location)

    def ours(self, index: str = "pivot_quadtree", later: int = 0, **options: Any) -> Counter[object]:
        return ours(index, self.entries, self.words, self.location, later, **{**QUADTREE, **options})[0]


def test_subscriptions_without_words_are_found_though_they_have_no_pivot() -> None:
    """E6: a list without pivots is never visited."""
    case = Case([Entry(1, "", (0, 0, 3, 3)), Entry(2, "a", (6, 6, 7, 7))], "a", (1, 1, 1, 1))
    assert printed_answer(case.entries, case.words, case.location) != case.expected
    assert case.ours() == case.ours(storage="mx_cif") == case.ours("cost_filter") == case.expected == {1: 1}


@pytest.mark.parametrize(
    ("variant", "case"),
    [
        ("leaf sets are other sets", Case([Entry(1, "bd", (1, 0, 4, 4))], "abcd", (1, 0, 3, 2))),
        ("union of other sets", Case([Entry(1, "c", (6, 6, 8, 8)), Entry(2, "bcd", (1, 0, 4, 4))], "ac", (7, 3, 8, 6))),
    ],
    ids=["leaf sets", "union"],
)
def test_the_words_of_a_leaf_are_cover_words_and_those_of_a_node_come_from_everything_below(variant: str, case: Case) -> None:
    """E10: in which sets the words of leaves are, and over which sets of the children the union is taken."""
    assert set(printed_answer(case.entries, case.words, case.location)) == set(case.expected)
    assert set(printed_answer(case.entries, case.words, case.location, variant)) != set(case.expected)
    assert case.ours() == case.ours("cost_filter") == case.expected


def test_lists_of_inner_nodes_are_visited() -> None:
    """E11: with MX-CIF storage, filter and verification still visit leaves only."""
    case = Case([Entry(1, "ab", (3, 6, 6, 8)), Entry(2, "c", (0, 1, 2, 1))], "abcd", (2, 8, 3, 8))
    assert printed_answer(case.entries, case.words, case.location, "smallest cell") != case.expected
    assert case.ours(storage="mx_cif") == case.ours("cost_filter", storage="mx_cif") == case.expected == {1: 1}


@pytest.mark.parametrize("index", ["region_trie", "pivot_quadtree", "cost_filter"])
@pytest.mark.parametrize(
    ("variant", "case"),
    [
        (
            "leaf only",
            Case(
                [Entry(1, "a", (2, 2, 6, 6)), Entry(2, "ad", (8, 6, 8, 6)), Entry(3, "b", (5, 2, 7, 4))], "bd", (7, 2, 8, 4)
            ),
        ),
        ("path", Case([Entry(1, "a", (2, 2, 6, 6)), Entry(2, "ad", (8, 6, 8, 6)), Entry(3, "b", (9, 9, 9, 9))], "b", (9,) * 4)),
    ],
    ids=["leaf only", "outside"],
)  # fmt: skip
def test_a_subscription_inserted_later_is_found(index: str, variant: str, case: Case) -> None:
    """E12: the sets on the path, and subscriptions outside the region of the root."""
    root = printed_quadtree(case.entries[:-1], "")
    printed_insertion(root, case.entries[-1], variant)
    answers = printed_verify(printed_filter(root, set(case.words), case.location), case.words, case.location)
    assert set(answers) != set(case.expected)
    options: dict[str, Any] = {} if index == "region_trie" else QUADTREE
    assert ours(index, case.entries, case.words, case.location, 1, **options)[0] == case.expected == {3: 1}


# --- both --------------------------------------------------------------------------------------------------------


def test_a_subscription_in_several_lists_is_found_once() -> None:
    """E13b: a range message meets several leaves, and verification adds an answer for each."""
    case = Case([Entry(1, "a", (2, 2, 6, 6)), Entry(2, "a", (1, 1, 2, 2)), Entry(3, "b", (7, 0, 8, 1))], "a", (1, 1, 7, 5))
    assert printed_answer(case.entries, case.words, case.location)[1] > 1
    assert case.ours() == case.ours("cost_filter") == case.expected == {1: 1, 2: 1}


def test_lists_are_verified_in_the_leaves_of_the_trie_instead_of_whole_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """E13: HybridPrune verifies the whole trie leaf, although the lists have what is left of it: right, but more work."""
    entries = [Entry(i, "a", (i, i, i + 1, i + 1)) for i in range(40)]
    words, location = "a", (3.5, 3.5, 3.5, 3.5)
    n_printed = len(printed_trie(entries).children["a"].leaf)
    prune_always(monkeypatch)
    answers, matcher = ours("cost_filter", entries, words, location, leaf_size=4)
    assert answers == expected(entries, words, location) == {3: 1}
    assert matcher.report.candidates <= 4 < n_printed == 40


def prune_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the quadtree and list pruning cost nothing, and direct verification much."""
    from nearcast.papers.boolean.cost_filter import index
    from nearcast.papers.boolean.cost_filter.kernels import TEST

    def biased(*arguments: Any) -> Any:
        figures = cost_figures(*arguments)
        unit_cost = np.zeros(3)
        unit_cost[TEST] = 1.0
        return figures._replace(unit_cost=unit_cost, words_per_clause=np.array([1e9]))

    monkeypatch.setattr(index, "cost_figures", biased)


def test_the_cost_of_going_on_is_that_of_a_node_not_of_its_level() -> None:
    """E14: C_F takes the size of a whole level for one node; where that level is large, pruning never pays."""
    n_level, n_words, n_items, words_per_clause = 100_000, 10, 1000, 3.0
    printed = min(n_level * math.log2(n_words), math.log2(n_level) * n_words * 10_000)
    direct = n_items * words_per_clause * math.log2(n_words)
    assert printed > direct
    assert not pruning_is_dearer(n_items, 1, 4, n_words, 1.0, 0.1, words_per_clause, 1.0, 1.0)
    assert pruning_is_dearer(10, 1, 4, n_words, 1.0, 0.1, words_per_clause, 1.0, 1.0)


@pytest.mark.parametrize("index", ["region_trie", "pivot_quadtree", "cost_filter"])
def test_the_first_example_of_the_paper_as_far_as_it_is_given(index: str) -> None:
    """E26: section 3.3 calls s_1 an answer of m_p, section 2 does not; only rectangles given exactly are used."""
    entries = [Entry(1, "abc", (25, 0, 30, 20)), Entry(3, "bcd", (20, 32, 35, 35)), Entry(4, "bcd", (20, 10, 28, 18))]
    answers, _ = ours(index, entries, "bcdef", (26, 14, 26, 14))
    assert answers == expected(entries, "bcdef", (26, 14, 26, 14)) == {4: 1}
