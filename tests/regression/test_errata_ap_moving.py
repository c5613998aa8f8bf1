"""Errata of the AP+-Tree: each printed form gives a wrong state on a small input; `moving_adaptive_tree` does not.

The printed forms run on one fixed tree that shows all errata: its root is divided by the first keyword (cuts [a, b], [c, d] and
the dummy), its first cut into two cells at x = 5 with a dummy for boxes that cover the region of the cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

import nearcast as nc
from nearcast.testing.oracles.moving import MovingOracle
from nearcast.testing.scenarios.moving import MovingComparison

REGION = (0.0, 0.0, 10.0, 10.0)
LEFT, RIGHT, COVER, LAST, EMPTY = "left cell", "right cell", "covering", "cut [c, d]", "dummy"
PARENT = {LEFT: "cut [a, b]", RIGHT: "cut [a, b]", COVER: "cut [a, b]", LAST: "root", EMPTY: "root", "cut [a, b]": "root"}

Bounds = tuple[float, float, float, float]


@dataclass
class PrintedTree:
    """AP+ as printed; each erratum has a switch. Subscriptions: sorted keywords and a box; messages: keywords and a point."""

    stores_in_empty_places: bool = True
    passes: int = 2
    """2: one for what leaves, one for what enters. 1: one over both."""
    ancestors: str = "once"
    limit: int = 99
    filed: dict[str, set[int]] = field(default_factory=dict)
    lists: dict[str, list[int]] = field(default_factory=dict)
    subscriptions: dict[int, tuple[tuple[str, ...], Bounds]] = field(default_factory=dict)
    messages: dict[int, tuple[frozenset[str], tuple[float, float]]] = field(default_factory=dict)

    def places(self, words: tuple[str, ...], box: Bounds) -> list[str]:
        if not words:
            return [EMPTY]
        if words[0] > "b":
            return [LAST]
        if box[0] <= REGION[0] and box[1] <= REGION[1] and box[2] >= REGION[2] and box[3] >= REGION[3]:
            return [COVER]
        return [cell for cell, is_in in ((LEFT, box[0] < 5.0), (RIGHT, box[2] >= 5.0)) if is_in]

    def subscribe(self, number: int, words: tuple[str, ...], box: Bounds) -> None:
        self.subscriptions[number] = (words, box)
        for place in self.places(words, box):
            self.filed.setdefault(place, set()).add(number)

    def publish(self, number: int, words: frozenset[str], point: tuple[float, float]) -> None:
        self.messages[number] = (words, point)
        below = [LEFT if point[0] < 5.0 else RIGHT, COVER] if words & {"a", "b"} else []
        targets = [*below, *([LAST] if words & {"c", "d"} else []), EMPTY]
        if len(targets) > self.limit:
            targets = ["root"]
        for place in targets:
            if self.stores_in_empty_places or self.filed.get(place):
                self.lists.setdefault(place, []).append(number)

    def move(self, number: int, box: Bounds) -> list[tuple[int, int]]:
        words, old = self.subscriptions[number]
        before, after = self.places(words, old), self.places(words, box)
        changes: list[tuple[int, int]] = []
        if self.passes == 1:
            for message in self._listed(before + after):
                is_before, is_after = self._in(message, words, old), self._in(message, words, box)
                changes += [(message, 1 if is_after else -1)] if is_before != is_after else []
        else:
            changes += [(m, -1) for m in self._listed(before) if self._in(m, words, old) and not self._in(m, words, box)]
            changes += [(m, 1) for m in self._listed(after) if self._in(m, words, box) and not self._in(m, words, old)]
        for place in before:
            self.filed[place].discard(number)
        self.subscribe(number, words, box)
        return changes

    def _listed(self, places: list[str]) -> list[int]:
        nodes = list(dict.fromkeys(places))
        if self.ancestors != "never":
            for place in list(nodes):
                above: str | None = PARENT.get(place)
                while above is not None:
                    if self.ancestors == "for each leaf" or above not in nodes:
                        nodes.append(above)
                    above = PARENT.get(above)
        return [message for node in nodes for message in self.lists.get(node, [])]

    def _in(self, number: int, words: tuple[str, ...], box: Bounds) -> bool:
        has, (x, y) = self.messages[number]
        return set(words) <= has and box[0] <= x <= box[2] and box[1] <= y <= box[3]


def ours(
    subscriptions: Mapping[int, tuple[tuple[str, ...], Bounds]],
    messages: Mapping[int, tuple[frozenset[str], tuple[float, float]]],
    moves: list[tuple[int, Bounds]],
) -> None:
    """The same moves with our index, compared with the oracle, for several limits of copies."""
    for limit in (1, 3, 16):
        matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", leaf_size=2, fanout=4, max_message_copies=limit)
        both = MovingComparison(matcher, MovingOracle("plane"))
        # More subscriptions, so that the tree is divided.
        crowd = [nc.Subscription(100 + i, ["abcd"[i % 4]], nc.Box(i % 10, 0, i % 10 + 0.5, 9)) for i in range(20)]
        both.subscribe([*(nc.Subscription(i, list(w), nc.Box(*box)) for i, (w, box) in subscriptions.items()), *crowd])
        both.publish([nc.Message(i, sorted(words), point) for i, (words, point) in messages.items()])
        for number, box in moves:
            both.move({number: nc.Box(*box)})


def right_changes(tree: PrintedTree, number: int, box: Bounds) -> list[tuple[int, int]]:
    words, old = tree.subscriptions[number]
    is_in = {m: (tree._in(m, words, old), tree._in(m, words, box)) for m in tree.messages}
    return sorted((m, 1 if after else -1) for m, (before, after) in is_in.items() if before != after)


def move_all(
    tree: PrintedTree, moves: list[tuple[int, Bounds]]
) -> tuple[list[list[tuple[int, int]]], list[list[tuple[int, int]]]]:
    """The changes that the printed tree reports, and the right ones."""
    right = []
    changes = []
    for number, box in moves:
        right.append(right_changes(tree, number, box))
        changes.append(sorted(tree.move(number, box)))
    return changes, right


def test_e20_a_message_is_stored_where_nobody_is_yet() -> None:
    subscriptions = {1: (("a",), (1.0, 1.0, 2.0, 2.0))}
    messages = {7: (frozenset("a"), (7.0, 1.5))}
    moves = [(1, (6.0, 1.0, 8.0, 2.0))]
    for is_right in (False, True):
        tree = PrintedTree(stores_in_empty_places=is_right)
        for number, subscription in subscriptions.items():
            tree.subscribe(number, *subscription)
        for number, message in messages.items():
            tree.publish(number, *message)
        changes, right = move_all(tree, moves)
        assert (changes == right) == is_right
    ours(subscriptions, messages, moves)


def test_e21_one_pass_over_both_ways_tells_a_message_twice_when_a_box_comes_to_cover_its_region() -> None:
    subscriptions = {1: (("a",), (0.0, 0.0, 4.0, 9.0))}
    # In the cell that the subscription leaves, outside of its box, and at the dummy as well, where it goes.
    messages = {7: (frozenset("a"), (2.0, 9.5))}
    moves = [(1, (-1.0, -1.0, 11.0, 11.0))]
    for passes in (1, 2):
        tree = PrintedTree(passes=passes)
        tree.subscribe(1, *subscriptions[1])
        tree.publish(7, *messages[7])
        changes, right = move_all(tree, moves)
        assert (changes == right) == (passes == 2)
    ours(subscriptions, messages, moves)


@pytest.mark.parametrize("ancestors", ["for each leaf", "never", "once"])
def test_e21b_each_node_above_is_looked_at_once(ancestors: str) -> None:
    subscriptions = {1: (("a",), (1.0, 1.0, 2.0, 2.0))}
    messages = {7: (frozenset("ac"), (4.0, 1.5)), 8: (frozenset("ad"), (6.0, 1.5))}
    moves = [(1, (3.0, 1.0, 7.0, 2.0)), (1, (3.0, 1.0, 5.5, 2.0)), (1, (0.0, 0.0, 1.0, 1.0))]
    tree = PrintedTree(ancestors=ancestors, limit=2)
    tree.subscribe(1, *subscriptions[1])
    for number, message in messages.items():
        tree.publish(number, *message)
    changes, right = move_all(tree, moves)
    assert (changes == right) == (ancestors == "once")
    ours(subscriptions, messages, moves)


def test_e23_the_radius_of_a_safe_region_minds_the_messages_inside() -> None:
    rng = np.random.default_rng(4)
    wrong = {"printed": 0, "without those inside": 0, "symmetric": 0}
    for _ in range(300):
        places, radius = rng.uniform(-4, 4, (4, 2)), 2.0
        far = np.hypot(*places.T)
        outside = far[far > radius]
        forms = {
            "printed": far.min() - radius,
            "without those inside": outside.min() - radius if len(outside) else math.inf,
            "symmetric": np.abs(far - radius).min(),
        }
        for name, safe in forms.items():
            if safe < 0:
                wrong[name] += 1
                continue
            angle, step_length = rng.uniform(0, 2 * math.pi, 40), min(safe, 8.0) * 0.999
            steps = np.stack([np.cos(angle), np.sin(angle)], axis=1) * step_length
            moved = np.hypot(*(places[None] - steps[:, None]).transpose(2, 0, 1))
            wrong[name] += int(((moved <= radius) != (far <= radius)).any())
    assert wrong["printed"] > 50
    assert wrong["without those inside"] > 50
    assert wrong["symmetric"] == 0


def test_e24_the_dead_are_told_once_and_never_found_again() -> None:
    both = MovingComparison(nc.MovingMatcher("moving_adaptive_tree", "plane", leaf_size=2, fanout=4), MovingOracle("plane"))
    both.subscribe([nc.Subscription(i, ["ab"[i % 2]], nc.Box(i, 0, i + 2, 2)) for i in range(12)])
    for step in range(6):
        both.publish([nc.Message(10 * step + i, ["a", "b"], (i, 1), time=step, expires=step + 2) for i in range(10)])
        both.move({i: nc.Box((i + step) % 12, 0, (i + step) % 12 + 2, 2) for i in range(12)})
    both.advance(100)
