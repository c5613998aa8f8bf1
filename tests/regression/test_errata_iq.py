"""Errata of the IQ-Tree and RQ-Tree as described in Wang et al. 2017, each on an input that shows it.

`Printed` follows the text literally: cells hold the clauses that overlap them, a message visits the cells that contain it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import nearcast as nc
from nearcast.testing.oracles.boolean import Oracle
from nearcast.workloads import open_workload

INDEXES = ("space_first_quadtree", "keyword_first_quadtree")
# Small worlds: every list is divided, and copies are cheap.
OPTIONS: dict[str, dict[str, Any]] = {
    "space_first_quadtree": {"update_cost": 0.0001},
    "keyword_first_quadtree": {"update_cost": 0.0001, "smallest_tree": 1},
}


class Printed:
    """A quadtree of one level over the square 0..8: four cells, posting lists by keyword in each."""

    def __init__(self, subscriptions: list[nc.Subscription], overlaps: Callable[[nc.Box, nc.Box], bool]) -> None:
        self.cells = [nc.Box(x, y, x + 4, y + 4) for x in (0, 4) for y in (0, 4)]
        self.held = {cell: [s for s in subscriptions if overlaps(box_of(s), cell)] for cell in self.cells}

    def publish(self, message: nc.Message) -> list[int]:
        words, location = set(message.words()), message.box
        return [
            int(s.id)
            for cell in self._visited(location)
            for s in self.held[cell]
            if set(s.keywords) <= words and meets(box_of(s), location)
        ]

    def _visited(self, location: nc.Box) -> list[nc.Box]:
        if location.x0 == location.x1 and location.y0 == location.y1:
            return [c for c in self.cells if c.x0 <= location.x0 < c.x1 and c.y0 <= location.y0 < c.y1]
        return [c for c in self.cells if meets(c, location)]


def box_of(subscription: nc.Subscription) -> nc.Box:
    assert isinstance(subscription.region, nc.Box)
    return subscription.region


def meets(a: nc.Box, b: nc.Box) -> bool:
    return a.x0 <= b.x1 and b.x0 <= a.x1 and a.y0 <= b.y1 and b.y0 <= a.y1


def overlaps_in_area(a: nc.Box, b: nc.Box) -> bool:
    return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1


def ours(index: str, subscriptions: list[nc.Subscription], message: nc.Message) -> Counter[object]:
    matcher = nc.Matcher(index, "plane", **OPTIONS[index])
    matcher.subscribe([*subscriptions, *_far_corners()])
    assert float(matcher.stats()["copies"]) >= 1
    return Counter(d.subscription_id for d in matcher.publish([message]))


def _far_corners() -> list[nc.Subscription]:
    """Subscriptions that give our tree the region of the printed one, 0..8. No message has their keyword."""
    return [nc.Subscription(98, ["corner"], nc.Box(0, 0, 0, 0)), nc.Subscription(99, ["corner"], nc.Box(8, 8, 8, 8))]


def expected(subscriptions: list[nc.Subscription], message: nc.Message) -> Counter[object]:
    oracle = Oracle("plane")
    oracle.subscribe(subscriptions)
    return Counter(pair.subscription_id for pair in oracle.publish([message]))


@pytest.mark.parametrize("index", INDEXES)
def test_a_range_message_finds_a_clause_in_several_cells_once(index: str) -> None:
    """E15e, for these trees: without the reference point 126 of 3,200 random range messages had duplicates."""
    subscriptions = [nc.Subscription(1, ["a"], nc.Box(2, 2, 6, 6)), nc.Subscription(2, ["a"], nc.Box(1, 1, 2, 2))]
    message = nc.Message(1, ["a"], nc.Box(1, 1, 7, 5))
    assert Counter(Printed(subscriptions, meets).publish(message)) == {1: 4, 2: 1}
    assert ours(index, subscriptions, message) == expected(subscriptions, message) == {1: 1, 2: 1}


@pytest.mark.parametrize("index", INDEXES)
def test_a_clause_that_ends_on_the_border_of_a_cell_is_found_there(index: str) -> None:
    """E15c: which cells a border belongs to is unsaid; overlap in area and one cell per point lose the border."""
    subscriptions = [nc.Subscription(1, ["a"], nc.Box(1, 1, 4, 3)), nc.Subscription(2, ["a"], nc.Box(4, 2, 4, 2))]
    message = nc.Message(1, ["a"], (4, 2))
    assert Printed(subscriptions, overlaps_in_area).publish(message) == []
    assert ours(index, subscriptions, message) == expected(subscriptions, message) == {1: 1, 2: 1}


@pytest.mark.parametrize("index", INDEXES)
def test_messages_and_clauses_beyond_the_region_are_matched(index: str) -> None:
    """E15d: the text does not say what happens outside the root; in our tree the outermost cells reach to infinity."""
    subscriptions = [nc.Subscription(1, ["a"], nc.Box(6, 6, 20, 20)), nc.Subscription(2, ["a"], nc.Box(-9, 30, -8, 31))]
    inside, outside = nc.Message(1, ["a"], (8, 8)), nc.Message(2, ["a"], (-8, 30))
    for message, answer in ((inside, {1: 1}), (outside, {2: 1})):
        assert Printed(subscriptions, meets).publish(message) == []
        matcher = nc.Matcher(index, "plane", **OPTIONS[index])
        # A region of 0..8 first, then clauses beyond it.
        matcher.subscribe([*_far_corners(), nc.Subscription(97, ["corner"], nc.Box(1, 1, 2, 2))])
        matcher.subscribe(subscriptions)
        deliveries = Counter(d.subscription_id for d in matcher.publish([message]))
        assert deliveries == expected(subscriptions, message) == answer


@pytest.mark.parametrize("index", INDEXES)
def test_clauses_without_keywords_are_matched(index: str) -> None:
    """E6, for these trees: a least frequent keyword is asked of every subscription, and some have none."""
    subscriptions = [nc.Subscription(1, [], nc.Box(1, 1, 6, 6))]
    message = nc.Message(1, ["b"], (2, 5))
    assert ours(index, subscriptions, message) == expected(subscriptions, message) == {1: 1}


def test_a_message_has_many_keywords_and_each_is_a_chance_to_visit() -> None:
    """E17: frequencies that sum to one, as printed, price a keyword as if a message had one. Right, but slow."""
    workload = open_workload("tweets", vocabulary_size=300, frequencies="zipf", n_cities=5)
    subscriptions, messages = workload.subscriptions(3000), workload.messages(300).drop_columns(["time"])
    work, answers = [], []
    for length in (1.0, 9.0):
        matcher = nc.Matcher("space_first_quadtree", "plane", message_length=length)
        matcher.subscribe_table(subscriptions)
        table = matcher.match_table(messages)
        answers.append(sorted(zip(*(table[name].to_pylist() for name in ("message_id", "subscription_id")), strict=True)))
        work.append(matcher.report.candidates)
    assert answers[0] == answers[1]
    assert work[1] < work[0]
