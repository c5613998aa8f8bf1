"""Errors in the printed algorithms of the R^t-tree paper: each loses or invents answers that our index gives right.

E1 to E6 and E1b are numbers in our list of errata; E27 (a count in example 6) is in
`tests/unit/papers/boolean/textual_rtree/test_paper_example.py`. The printed forms below run in plain Python on
the tree of our index.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.papers.boolean.kernels.rtree import ROOT, WIDTH, RTreeArrays, insert_item, resized_tree
from nearcast.testing.oracles.boolean import Oracle

Rectangle = tuple[float, float, float, float]
Lists = dict[str, list[int]]


@dataclass
class Node:
    """A node of the paper: entries below, or the subscriptions of a leaf. `entry_lists` belong to its entry in the parent."""

    box: Rectangle
    children: list[Node] = field(default_factory=list)
    subscriptions: list[int] = field(default_factory=list)
    entry_lists: Lists = field(default_factory=dict)
    lists: Lists = field(default_factory=dict)


@dataclass
class World:
    """Subscriptions numbered from 0: their ordered words and boxes."""

    words: list[list[str]]
    boxes: list[Rectangle]

    def matcher(self, representatives: str = "many") -> nc.Matcher:
        matcher = nc.Matcher("textual_rtree", space="plane", node_capacity=4, representatives=representatives)
        matcher.subscribe(self.subscriptions())
        return matcher

    def subscriptions(self) -> list[nc.Subscription]:
        rows = zip(self.words, self.boxes, strict=True)
        return [nc.Subscription(i, words, nc.Box(*box)) for i, (words, box) in enumerate(rows)]

    def expected(self, words: set[str], box: Rectangle) -> list[int]:
        oracle = Oracle("plane")
        oracle.subscribe(self.subscriptions())
        return sorted(int(pair.subscription_id) for pair in oracle.publish([message_of(words, box)]))


def message_of(words: set[str], box: Rectangle) -> nc.Message:
    return nc.Message(0, sorted(words), nc.Box(*box))


def ours(matcher: nc.Matcher, words: set[str], box: Rectangle) -> list[int]:
    return sorted(int(delivery.subscription_id) for delivery in matcher.publish([message_of(words, box)]))


def our_tree(matcher: nc.Matcher) -> RTreeArrays:
    index: Any = matcher._index
    tree: RTreeArrays = index._form._index.tree
    return tree


def plain_tree(tree: RTreeArrays) -> Node:
    def node_of(number: int, box: Rectangle) -> Node:
        node = Node(box)
        first = number * int(tree.head[WIDTH])
        for entry in range(first, first + int(tree.n_entries[number])):
            child, around = int(tree.child[entry]), tuple(float(side[entry]) for side in tree[:4])
            if tree.level[number] == 0:
                node.subscriptions.append(child)
            else:
                node.children.append(node_of(child, (around[0], around[1], around[2], around[3])))
        return node

    return node_of(int(tree.head[ROOT]), (-np.inf, -np.inf, np.inf, np.inf))


def n_levels(node: Node) -> int:
    return 1 + (n_levels(node.children[0]) if node.children else 0)


def place(root: Node, words: list[list[str]]) -> Node:
    """The i-th word of a subscription at the entry of level i that leads to it, the rest in its leaf."""

    def walk(node: Node, depth: int) -> list[int]:
        inside = node.subscriptions + [s for child in node.children for s in walk(child, depth + 1)]
        for s in inside:
            if depth > 1 and len(words[s]) >= depth - 1:
                node.entry_lists.setdefault(words[s][depth - 2], []).append(s)
            if not node.children:
                for word in words[s][depth - 1 :]:
                    node.lists.setdefault(word, []).append(s)
        return inside

    walk(root, 1)
    return root


def overlap(a: Rectangle, b: Rectangle) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


@dataclass
class Algorithm1:
    """R^t++-Tree-Prune; every option off is the corrected form."""

    world: World
    returns_at_a_miss: bool = False
    keeps_flag: bool = False
    ignores_leaves: bool = False

    def run(self, root: Node, words: set[str], box: Rectangle) -> tuple[list[int], int]:
        """Answers, each as often as it is found, and the number of nodes visited."""
        self.answers: list[int] = []
        self.count: Counter[int] = Counter()
        self.n_visited = 0
        self._prune(root, 1, words, box)
        return sorted(self.answers), self.n_visited

    def _prune(self, node: Node, depth: int, words: set[str], box: Rectangle) -> None:
        self.n_visited += 1
        visit = False
        if not node.children and not self.ignores_leaves:
            self._count(node.lists, depth, words, box)
        for child in node.children:
            if not overlap(child.box, box):
                if self.returns_at_a_miss:
                    return
                continue
            if not self.keeps_flag:
                visit = False
            visit = self._count(child.entry_lists, depth, words, box) or visit
            if visit and not (self.ignores_leaves and not child.children):
                self._prune(child, depth + 1, words, box)

    def _count(self, lists: Lists, depth: int, words: set[str], box: Rectangle) -> bool:
        visit = False
        for word in words & lists.keys():
            for s in lists[word]:
                self.count[s] += 1
                if self.count[s] == len(self.world.words[s]):
                    if overlap(self.world.boxes[s], box):
                        self.answers.append(s)
                elif self.count[s] == depth:
                    visit = True
        return visit


def row_of_points(words: list[list[str]]) -> World:
    """Subscriptions at the points (0, 0), (1, 0), (2, 0), …: four to a leaf."""
    return World(words, [(float(i), 0.0, float(i), 0.0) for i in range(len(words))])


def test_the_corrected_form_gives_our_answers_with_our_number_of_visits() -> None:
    """What the tests below compare with is sound."""
    rng = np.random.default_rng(5)
    n_answers = 0
    for _ in range(20):
        corners = rng.integers(0, 8, (40, 2)).astype(float)
        sizes = rng.integers(0, 4, (40, 2))
        boxes = [(float(x), float(y), float(x + w), float(y + h)) for (x, y), (w, h) in zip(corners, sizes, strict=True)]
        drawn = [sorted(rng.choice(list("abcdef"), rng.integers(1, 5), replace=False).tolist()) for _ in range(40)]
        frequency = Counter(word for words in drawn for word in words)
        world = World(drawn, boxes)
        matcher = world.matcher()
        known = dict(zip("abcdef", matcher._subscriptions.keywords.find(list("abcdef")).tolist(), strict=True))
        # Our order: the rarest first, the smaller id on a tie.
        world.words = [sorted(words, key=lambda word: (frequency[word], known[word])) for words in drawn]
        tree = place(plain_tree(our_tree(matcher)), world.words)
        for _ in range(10):
            words = set(rng.choice(list("abcdef"), 4, replace=False).tolist())
            x, y = rng.integers(0, 8, 2).tolist()
            box = (float(x), float(y), float(x + 2), float(y + 1))
            answers, n_visited = Algorithm1(world).run(tree, words, box)
            assert answers == ours(matcher, words, box) == world.expected(words, box)
            assert n_visited == matcher.report.nodes_visited
            n_answers += len(answers)
    # Enough answers for the comparison to mean something.
    assert n_answers > 100


def test_e1_an_entry_that_misses_the_message_does_not_end_the_loop() -> None:
    world = row_of_points([["a"]] * 8)
    matcher, box = world.matcher(), (7.0, 0.0, 7.0, 0.0)
    tree = place(plain_tree(our_tree(matcher)), world.words)
    assert Algorithm1(world, returns_at_a_miss=True).run(tree, {"a"}, box)[0] == []
    assert Algorithm1(world).run(tree, {"a"}, box)[0] == ours(matcher, {"a"}, box) == world.expected({"a"}, box) == [7]


def test_e1b_a_flag_that_is_not_reset_visits_siblings_in_vain() -> None:
    world = row_of_points([["a", "b"]] * 4 + [["c", "d"]] * 4)
    matcher, box = world.matcher(), (0.0, 0.0, 7.0, 0.0)
    tree = place(plain_tree(our_tree(matcher)), world.words)
    printed, n_printed = Algorithm1(world, keeps_flag=True).run(tree, {"a", "b"}, box)
    assert printed == ours(matcher, {"a", "b"}, box) == world.expected({"a", "b"}, box) == [0, 1, 2, 3]
    assert n_printed == 3
    assert matcher.report.nodes_visited == 2


def test_e2_the_lists_of_a_leaf_must_be_read() -> None:
    """The printed loop runs over entries that are nodes, and opens no leaf: words beyond the height are never counted."""
    world = row_of_points([["a", "b"]] * 8)
    matcher, box = world.matcher(), (3.0, 0.0, 4.0, 0.0)
    tree = place(plain_tree(our_tree(matcher)), world.words)
    assert Algorithm1(world, ignores_leaves=True).run(tree, {"a", "b"}, box)[0] == []
    assert ours(matcher, {"a", "b"}, box) == world.expected({"a", "b"}, box) == [3, 4]


@pytest.mark.parametrize("representatives", ["all", "one", "many"])
@pytest.mark.parametrize("box", [(1.5, 1.5, 1.5, 1.5), (-9.0, 1.0, 9.0, 2.0)])
def test_e3_boxes_may_meet_without_a_corner_of_one_in_the_other(representatives: str, box: Rectangle) -> None:
    """Printed: a node is pruned unless a vertex of its box lies in the message."""
    world = World([["a"]] * 8, [(0.0, 0.0, 3.0, 3.0)] * 8)
    matcher = world.matcher(representatives)

    def printed(node: Node) -> list[int]:
        corners = [(x, y) for x in node.box[::2] for y in node.box[1::2]]
        if np.isfinite(node.box).all() and not any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for x, y in corners):
            return []
        return node.subscriptions + [s for child in node.children for s in printed(child)]

    assert printed(plain_tree(our_tree(matcher))) == []
    assert ours(matcher, {"a"}, box) == world.expected({"a"}, box) == list(range(8))


def test_e4_a_subscription_in_two_leaves_is_counted_twice() -> None:
    """Footnote 1 supposes an R+-tree, which clips: the only subscription lies in both leaves."""
    world = World([["a", "b"]], [(0.0, 0.0, 4.0, 1.0)])
    leaves = [Node((0.0, 0.0, 2.0, 1.0), subscriptions=[0]), Node((2.0, 0.0, 4.0, 1.0), subscriptions=[0])]
    tree = place(Node((0.0, 0.0, 4.0, 1.0), leaves), world.words)
    box = (1.0, 0.0, 3.0, 1.0)
    assert Algorithm1(world).run(tree, {"a"}, box)[0] == [0]
    assert ours(world.matcher(), {"a"}, box) == world.expected({"a"}, box) == []


def test_e5_a_split_of_the_root_moves_every_keyword_one_level_down() -> None:
    world = row_of_points([["a", "b"]] * 4)
    matcher, box = world.matcher(), (0.0, 0.0, 9.0, 0.0)
    before = place(plain_tree(our_tree(matcher)), world.words)
    fifth = nc.Subscription(4, ["a", "b"], nc.Box(4.0, 0.0, 4.0, 0.0))
    # The tree grows by an R-tree insertion; lists stay with the leaves they were filed in.
    tree = resized_tree(our_tree(matcher)._replace(head=our_tree(matcher).head.copy()), 8)
    insert_item(tree, 4.0, 0.0, 4.0, 0.0, 4)
    after = plain_tree(tree)
    assert (n_levels(before), n_levels(after)) == (1, 2)
    for leaf in after.children:
        leaf.lists = {word: [s for s in listed if s in leaf.subscriptions] for word, listed in before.lists.items()}
    world.words.append(["a", "b"])
    world.boxes.append((4.0, 0.0, 4.0, 0.0))
    assert Algorithm1(world).run(after, {"a", "b"}, box)[0] == []
    matcher.subscribe([fifth])
    assert ours(matcher, {"a", "b"}, box) == world.expected({"a", "b"}, box) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("representatives", ["all", "one", "many"])
def test_e6_a_subscription_without_keywords_is_an_answer(n: int, representatives: str) -> None:
    """Printed: no node has a keyword of it in common with the message, and no list names it."""
    world = row_of_points([[] for _ in range(n)])
    matcher, box = world.matcher(representatives), (0.0, 0.0, 0.0, 0.0)
    tree = place(plain_tree(our_tree(matcher)), world.words)
    assert Algorithm1(world).run(tree, {"a"}, box)[0] == []
    assert ours(matcher, {"a"}, box) == ours(matcher, set(), box) == world.expected(set(), box) == [0]
