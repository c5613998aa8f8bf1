"""Errata of the AP-Tree (Wang et al. 2017, stationary part), each on an input that shows it.

The printed algorithms are written here literally, in plain Python; the index is right on the same input.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.papers.boolean.adaptive_tree.cost_inputs import likelihoods, no_history
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import divergence
from nearcast.papers.boolean.adaptive_tree.layout import BLOCK_FIELDS, FIRST, ROOT
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.scenarios.boolean import BooleanComparison
from nearcast.workloads import open_workload


def compare(**parameters: Any) -> BooleanComparison:
    return BooleanComparison(nc.Matcher("adaptive_tree", "plane", **parameters), Oracle("plane"))


def stat(both: BooleanComparison, name: str) -> float:
    return float(both.matcher.stats()[name])


def small() -> BooleanComparison:
    return compare(leaf_size=2, fanout=4)


EVERYWHERE = nc.Box(0, 0, 8, 8)


class PrintedKeywordTree:
    """k-nodes only: a cut is the interval of the keywords seen in it when it was built; at most two cuts per node."""

    def __init__(self, subscriptions: list[nc.Subscription], offset: int = 0) -> None:
        self.offset, self.cuts, self.subscriptions = offset, [], subscriptions
        longer = [s for s in subscriptions if len(s.keywords) > offset]
        if len(subscriptions) < 2 or not longer:
            return
        self.subscriptions = [s for s in subscriptions if len(s.keywords) <= offset]
        words = sorted({sorted(map(str, s.keywords))[offset] for s in longer})
        half = (len(words) + 1) // 2
        for part in (words[:half], words[half:]):
            if part:
                inside = [s for s in longer if sorted(map(str, s.keywords))[offset] in part]
                self.cuts.append((part[0], part[-1], PrintedKeywordTree(inside, offset + 1)))

    def insert(self, subscription: nc.Subscription) -> None:
        words = sorted(map(str, subscription.keywords))
        if not self.cuts or len(words) <= self.offset:
            self.subscriptions.append(subscription)
        for low, high, child in self.cuts:
            if low <= words[self.offset] <= high:
                child.insert(subscription)

    def match(self, words: list[str], start: int, takes_last: bool = False) -> set[Any]:
        answers = {s.id for s in self.subscriptions if set(s.keywords) <= set(words)}
        for low, high, child in self.cuts:
            hits = [i for i in range(start, len(words)) if low <= words[i] <= high]
            if hits:
                answers |= child.match(words, (hits[-1] if takes_last else hits[0]) + 1, takes_last)
        return answers


def subscriptions_of(*lists: str) -> list[nc.Subscription]:
    return [nc.Subscription(i, list(words), EVERYWHERE) for i, words in enumerate(lists)]


def test_e15_a_keyword_between_two_cuts_has_no_place() -> None:
    built, late = subscriptions_of("a", "b", "x", "y"), nc.Subscription(9, ["m"], EVERYWHERE)
    printed = PrintedKeywordTree(built)
    printed.insert(late)
    assert printed.match(["m"], 0) == set()
    both = small()
    both.subscribe(built)
    both.subscribe([late])
    assert both.publish([nc.Message(1, ["m"], (4, 4))]) == {(9, 1)}


def test_e15b_a_cut_is_left_behind_the_smallest_keyword_in_it_not_the_largest() -> None:
    built = subscriptions_of("ab", "ac", "bc", "bd", "cd", "a")
    printed = PrintedKeywordTree(built)
    assert printed.match(["a", "b"], 0) == {0, 5}
    # a and b are in one cut; behind b nothing is left for the second keyword of ab.
    assert printed.match(["a", "b"], 0, takes_last=True) == {5}
    both = small()
    both.subscribe(built)
    assert both.publish([nc.Message(1, ["a", "b"], (4, 4))]) == {(0, 1), (5, 1)}


class PrintedGrid:
    """An s-node over the square 0..8 with four cells: boxes are in the cells they overlap, a message in the cell it is in."""

    def __init__(self, subscriptions: list[nc.Subscription], is_closed: bool) -> None:
        cells = [nc.Box(x, y, x + 4, y + 4) for x in (0, 4) for y in (0, 4)]
        self.is_closed = is_closed
        self.held = {cell: [s for s in subscriptions if self._overlaps(box_of(s), cell)] for cell in cells}

    def _overlaps(self, a: nc.Box, b: nc.Box) -> bool:
        if self.is_closed:
            return a.x0 <= b.x1 and b.x0 <= a.x1 and a.y0 <= b.y1 and b.y0 <= a.y1
        return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1

    def match(self, location: nc.Box) -> Counter[Any]:
        if location.x0 == location.x1:
            cells = [c for c in self.held if c.x0 <= location.x0 < c.x1 and c.y0 <= location.y0 < c.y1]
        else:
            cells = [c for c in self.held if self._overlaps(c, location)]
        return Counter(
            s.id
            for cell in cells
            for s in self.held[cell]
            if location.x0 <= box_of(s).x1
            and box_of(s).x0 <= location.x1
            and location.y0 <= box_of(s).y1
            and box_of(s).y0 <= location.y1
        )


def box_of(subscription: nc.Subscription) -> nc.Box:
    assert isinstance(subscription.region, nc.Box)
    return subscription.region


def wordless(*boxes: tuple[float, float, float, float]) -> list[nc.Subscription]:
    return [nc.Subscription(i, [], nc.Box(*box)) for i, box in enumerate(boxes)]


def test_e15c_a_box_that_ends_at_a_border_misses_the_messages_on_it() -> None:
    built = wordless((1, 1, 4, 4), (0, 0, 1, 1), (6, 6, 7, 7), (5, 0, 6, 1), (0, 5, 1, 6))
    assert PrintedGrid(built, is_closed=False).match(nc.Box(4, 4, 4, 4)) == Counter()
    both = compare(leaf_size=2, fanout=4, priority="space")
    both.subscribe(built)
    points = [nc.Message(x * 10 + y, [], (x, y)) for x in range(9) for y in range(9)]
    assert (0, 44) in both.publish(points)


def test_e15d_a_message_or_a_box_beyond_the_region_of_the_root_has_no_cell() -> None:
    built = wordless((1, 1, 2, 2), (5, 5, 6, 6), (1, 5, 2, 6))
    far = nc.Subscription(9, [], nc.Box(7, 7, 20, 20))
    assert PrintedGrid([*built, far], is_closed=True).match(nc.Box(10, 10, 10, 10)) == Counter()
    both = compare(leaf_size=2, fanout=4, priority="space")
    both.subscribe(built)
    both.subscribe([far])
    assert both.publish([nc.Message(1, [], (10, 10)), nc.Message(2, [], nc.Box(15, -3, 99, 99))]) == {(9, 1), (9, 2)}


def test_e15e_a_message_with_a_box_finds_the_same_clause_in_several_cells() -> None:
    built = wordless((1, 1, 7, 7), (0, 0, 1, 1), (6, 0, 7, 1), (0, 6, 1, 7))
    assert PrintedGrid(built, is_closed=True).match(nc.Box(2, 2, 6, 6))[0] == 4
    both = compare(leaf_size=2, fanout=4, priority="space")
    both.subscribe(built)
    both.publish([nc.Message(1, [], nc.Box(2, 2, 6, 6)), nc.Message(2, [], nc.Box(-9, -9, 99, 99))])
    assert stat(both, "copies") > 1


def test_e16_clauses_without_an_lth_keyword_are_not_free() -> None:
    """By Equation 1 as printed a division by the second keyword costs nothing when no subscription has one."""
    n = 100
    cuts: list[tuple[int, float]] = []
    printed_cost = sum(weight * likely for weight, likely in cuts)
    assert printed_cost < n
    both = compare(leaf_size=10)
    both.subscribe([nc.Subscription(i, ["a"], nc.Box(i % 10, i // 10, i % 10, i // 10)) for i in range(n)])
    both.publish([nc.Message(i, ["a"], (i % 10, i // 10)) for i in range(n)])
    # The grid was chosen instead: no message verifies all hundred clauses.
    assert both.matcher.report.candidates < n * n / 5


def test_e17_the_printed_likelihoods_are_those_of_a_message_with_one_keyword() -> None:
    rng = np.random.default_rng(0)
    frequency = rng.integers(1, 50, 1000)
    rank = np.arange(1000, dtype=np.int32)
    printed = frequency / frequency.sum()
    assert printed.sum() == pytest.approx(1.0)
    assert float(likelihoods(rank, frequency, no_history(), 9.0)[:-1].sum()) == pytest.approx(9.0, rel=1e-4)


def test_e18_the_printed_construction_does_not_end_on_equal_boxes() -> None:
    def depth_of(n_equal: int, depth: int = 0) -> int:
        """Every cell that the boxes reach gets them all, and |S| stays at its threshold."""
        return depth if depth > 100 or n_equal < 2 else depth_of(n_equal, depth + 1)

    assert depth_of(50) > 100
    both = compare(leaf_size=2, fanout=4, priority="space")
    both.subscribe([nc.Subscription(i, ["a"], nc.Box(1, 1, 2, 2)) for i in range(50)])
    assert len(both.publish([nc.Message(1, ["a"], (1.5, 1.5))])) == 50
    assert both.matcher.stats()["copies"] == 1.0
    assert stat(both, "depth") < 10


def test_e18_space_first_without_a_guard_copies_without_bound() -> None:
    rng = np.random.default_rng(4)
    boxes = [nc.Box(x, y, x + 30, y + 30) for x, y in rng.random((300, 2)) * 70]
    copies = []
    for most in (1e9, 4.0):
        both = compare(leaf_size=2, fanout=25, priority="space", max_copies=most)
        both.subscribe([nc.Subscription(i, ["a"], box) for i, box in enumerate(boxes)])
        both.publish([nc.Message(i, ["a"], (x, y)) for i, (x, y) in enumerate(rng.random((20, 2)) * 100)])
        copies.append(float(both.matcher.stats()["copies"]))
    assert copies[0] > 50
    assert copies[1] <= 4.4


def test_e18b_splitting_and_degrading_at_one_threshold_thrashes() -> None:
    def printed_changes(threshold: int, n_steps: int) -> int:
        """A leaf below the threshold, an inner node from it on; one clause is inserted and removed again and again."""
        n, is_leaf, changes = threshold - 1, True, 0
        for step in range(n_steps):
            n += 1 if step % 2 == 0 else -1
            if is_leaf != (n < threshold):
                is_leaf, changes = n < threshold, changes + 1
        return changes

    assert printed_changes(10, 40) == 40
    both = compare(leaf_size=10)
    both.subscribe([nc.Subscription(i, ["a"], nc.Box(i, i, i, i)) for i in range(9)])
    for _ in range(20):
        both.subscribe([nc.Subscription(9, ["a"], nc.Box(9, 9, 9, 9))])
        both.unsubscribe([9])
    assert stat(both, "rebuilt") <= 2


def test_e18d_the_printed_order_of_keywords_verifies_more() -> None:
    workload = open_workload("tweets", frequencies="curve")
    subscriptions, messages = workload.subscriptions(5000), workload.messages(300)
    candidates = {}
    for order in ("frequent_first", "rare_first"):
        matcher = nc.Matcher("adaptive_tree", "plane", leaf_size=10, fanout=25, keyword_order=order, is_refining=False)
        matcher.subscribe_table(subscriptions)
        matcher.match_table(messages)
        candidates[order] = matcher.report.candidates
    assert candidates["rare_first"] < candidates["frequent_first"]


def test_e19_the_divergence_of_an_emptied_child_is_finite() -> None:
    then, now = [40, 40, 40, 40], [80, 40, 40, 0]
    shares = [(a / sum(then), b / sum(now)) for a, b in zip(then, now, strict=True)]
    with pytest.raises(ZeroDivisionError):
        sum(p * math.log(p / q) for p, q in shares)
    both = compare(leaf_size=200, fanout=4, priority="space", max_copies=1.5)
    towns = [(0, 0), (0, 50), (50, 0), (50, 50)]
    both.subscribe([_in_town(i, towns[i % 4]) for i in range(400)])
    index: Any = both.matcher._index
    assert divergence(index._tree, ROOT)[0] == pytest.approx(0.0, abs=1e-12)
    both.unsubscribe(range(3, 400, 4))
    first = int(index._tree.node[FIRST])
    emptied = index._tree.block[first + BLOCK_FIELDS : first + BLOCK_FIELDS + 4]
    assert 0 in index._tree.n_below[emptied]
    assert 0.1 < divergence(index._tree, ROOT)[0] < 10.0
    both.publish([nc.Message(1, ["a"], (x, y)) for x, y in towns])


def _in_town(number: int, town: tuple[int, int]) -> nc.Subscription:
    x, y = town[0] + number % 7, town[1] + number % 5
    return nc.Subscription(number, ["a"], nc.Box(x, y, x, y))
