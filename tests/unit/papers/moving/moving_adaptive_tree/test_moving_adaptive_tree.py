"""The tree with messages, while crowds gather and scatter, so that nodes fill, empty and are rebuilt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.testing.oracles.moving import MovingOracle
from nearcast.testing.scenarios.moving import MovingComparison

WORDS = [f"w{i}" for i in range(12)]


class Crowd:
    """Subscriptions that gather around a place, and messages everywhere."""

    def __init__(self, seed: int, **parameters: Any) -> None:
        self.rng = np.random.default_rng(seed)
        matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", **parameters)
        self.both = MovingComparison(matcher, MovingOracle("plane"))
        self.n_messages = 0

    def words(self, most: int) -> list[str]:
        return [WORDS[i] for i in self.rng.choice(len(WORDS), int(self.rng.integers(most + 1)), replace=False)]

    def box(self, centre: float, spread: float) -> nc.Box:
        x, y = np.round(self.rng.normal(centre, spread, 2), 1).tolist()
        return nc.Box(x, y, x + float(self.rng.integers(3)), y + float(self.rng.integers(3)))

    def subscribe(self, ids: range, centre: float, spread: float = 3.0) -> None:
        self.both.subscribe([nc.Subscription(i, self.words(3), self.box(centre, spread)) for i in ids])

    def publish(self, n: int, time: float) -> None:
        places: list[Any] = [*np.round(self.rng.uniform(-2, 22, (n, 2)), 1).tolist()]
        places[0] = nc.Box(4, 4, 9, 5)
        first = self.n_messages
        self.n_messages += n
        self.both.publish(
            [
                nc.Message(
                    first + i, self.words(8), place if isinstance(place, nc.Box) else tuple(place), time=time, expires=time + 3
                )
                for i, place in enumerate(places)
            ]
        )

    def travel(self, share: float, centre: float, spread: float) -> None:
        ids = [id for id in self.both.oracle.subscriptions if self.rng.random() < share]
        self.both.move({id: self.box(centre, spread) for id in ids})


VARIANTS: list[dict[str, Any]] = [
    {"leaf_size": 8, "fanout": 4, "priority": "keyword", "max_message_copies": 6},
    {"leaf_size": 8, "fanout": 9, "priority": "space", "max_copies": 4.0, "max_message_copies": 3},
    {"leaf_size": 6, "fanout": 4, "message_length": 1.0, "rebuild": "never", "max_message_copies": 64},
    {"leaf_size": 6, "fanout": 6, "message_length": 1.0, "least_change": 0.1, "is_noise_corrected": False, "max_copies": 3.0},
    {"leaf_size": 5, "fanout": 4, "priority": "keyword", "is_refining": False, "keyword_order": "frequent_first"},
    {"leaf_size": 6, "fanout": 4, "priority": "keyword", "message_lists": "space_grid"},
]


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_crowds_that_gather_and_part_keep_their_results(parameters: dict[str, Any]) -> None:
    crowd = Crowd(7, **parameters)
    crowd.subscribe(range(60), 10.0, 5.0)
    for step in range(5):
        crowd.publish(25, float(step))
        crowd.travel(0.5, 3.0 if step % 2 else 16.0, 2.0)
        crowd.subscribe(range(60 + 20 * step, 80 + 20 * step), 10.0)
        crowd.travel(0.3, 10.0, 6.0)
        crowd.both.unsubscribe(list(range(30 * step, 30 * step + 25)))
    assert float(crowd.both.matcher.stats()["rebuilt"]) > 0


def test_nodes_that_empty_give_their_messages_back() -> None:
    crowd = Crowd(3, leaf_size=20, fanout=4, priority="keyword", rebuild="never", max_message_copies=50)
    crowd.subscribe(range(120), 10.0, 5.0)
    crowd.publish(60, 0.0)
    before = int(crowd.both.matcher.stats()["message_copies"])
    crowd.both.unsubscribe(list(range(5, 120)))
    stats = crowd.both.matcher.stats()
    assert stats["nodes"] == 1
    assert int(stats["message_copies"]) == 59 < before
    crowd.subscribe(range(200, 300), 10.0, 5.0)


def test_a_word_that_only_messages_had_leads_a_later_clause_to_them() -> None:
    crowd = Crowd(5, leaf_size=4, fanout=4, priority="keyword")
    crowd.subscribe(range(40), 10.0)
    crowd.both.publish([nc.Message(900 + i, ["new", *WORDS[:i]], (10, 10)) for i in range(6)])
    for id, words in ((800, ["new"]), (801, ["new", "w0"]), (802, ["w3", "new", "w1"])):
        assert crowd.both.subscribe([nc.Subscription(id, words, nc.Box(9, 9, 11, 11))])


def test_a_clause_with_many_keywords_travels() -> None:
    crowd = Crowd(6, leaf_size=4, fanout=4, priority="keyword")
    crowd.subscribe(range(40), 10.0)
    many = [f"long{i}" for i in range(30)]
    crowd.both.subscribe([nc.Subscription(500, many, nc.Box(0, 0, 1, 1))])
    crowd.both.publish([nc.Message(700, many, (5, 5)), nc.Message(701, many[:-1], (5, 5))])
    assert len(crowd.both.move({500: nc.Box(4, 4, 6, 6)})) == 1


@pytest.mark.parametrize("is_moving", [False, True])
def test_a_leaf_with_hundreds_of_messages_is_divided(is_moving: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # More copies than there is capacity for: the lists must grow while messages are reinserted.
    monkeypatch.setattr("nearcast.papers.moving.moving_adaptive_tree.tree_with_messages._MORE_CAPACITY", 1.0)
    matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", leaf_size=8, fanout=4, priority="space", max_copies=4.0)
    near = [nc.Box(i, 0, i + 0.5, 1) for i in range(6)]
    matcher.subscribe([nc.Subscription(i, ["a"], near[i]) for i in range(6)])
    matcher.subscribe([nc.Subscription(20 + i, ["a"], nc.Box(100 + i, 0, 100 + i + 0.5, 1)) for i in range(24)])
    places = [(i % 60) / 10 for i in range(700)]
    matcher.publish([nc.Message(i, ["a"], (x, 0.5)) for i, x in enumerate(places)])
    before = int(matcher.stats()["message_copies"])
    for i in range(24):
        if is_moving:
            matcher.move({20 + i: near[i % 6]})
        else:
            matcher.subscribe([nc.Subscription(50 + i, ["a"], near[i % 6])])
    assert int(matcher.stats()["message_copies"]) > before
    for i in range(6):
        expected = {number for number, x in enumerate(places) if i <= x <= i + 0.5}
        assert matcher.current(i) == matcher.current((20 if is_moving else 50) + i) == expected


def test_messages_with_an_area_are_found_when_the_output_starts_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.engine.kernel_calls.FIRST_CAPACITY", 1)
    matcher = nc.MovingMatcher("moving_adaptive_tree", "plane")
    matcher.subscribe([nc.Subscription(1, ["a"], nc.Box(0, 0, 1, 1))])
    matcher.publish([nc.Message(i, ["a"], nc.Box(0, 0, i, i)) for i in range(5)])
    assert matcher.current(1) == set(range(5))


def test_moves_tell_everything_when_the_output_starts_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.papers.moving.moving_adaptive_tree.tree_with_messages._FIRST_PAIRS", 1)
    crowd = Crowd(9, leaf_size=6, fanout=4, priority="space", max_copies=4.0)
    crowd.subscribe(range(40), 10.0, 5.0)
    crowd.publish(40, 0.0)
    for centre in (3.0, 16.0, 10.0):
        crowd.travel(1.0, centre, 3.0)


def test_a_tree_without_spare_room_is_given_some_when_a_clause_changes_leaves() -> None:
    crowd = Crowd(4, leaf_size=4, fanout=4, priority="space", max_copies=4.0)
    # Built at once: every array is exactly as long as it must be.
    crowd.both.subscribe([nc.Subscription(i, ["w1"], nc.Box(i, 0, i + 0.5, 1)) for i in range(32)])
    crowd.both.publish([nc.Message(i, ["w1"], (i, 0.5)) for i in range(32)])
    for i in range(32):
        crowd.both.move({i: nc.Box(31 - i, 0, 31.5 - i, 1)})


def test_room_that_lists_left_behind_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def most_bytes() -> float:
        matcher = nc.MovingMatcher("moving_adaptive_tree", "plane")
        matcher.subscribe([nc.Subscription(1, ["a"], nc.Box(0, 0, 1, 1))])
        most = 0.0
        for first in range(0, 2000, 10):
            matcher.publish([nc.Message(first + i, ["a"], (0.5, 0.5)) for i in range(10)])
            most = max(most, float(matcher.stats()["bytes"]))
        assert matcher.current(1) == set(range(2000))
        return most

    packed = most_bytes()
    monkeypatch.setattr(
        "nearcast.papers.moving.moving_adaptive_tree.tree_with_messages.TreeWithMessages._pack_lists", lambda self: None
    )
    # An entry has 20 bytes, and a list leaves four times its size behind.
    assert packed + 2000 * 20 < most_bytes()


def test_a_crowd_that_draws_together_is_still_divided_by_space() -> None:
    # A grid as fine as before would copy too many of them. By keyword, messages would stand at a node for each of their words.
    rng = np.random.default_rng(11)
    places, words = rng.random((1000, 2)), [f"w{i}" for i in range(200)]

    def box(id: int, scale: float) -> nc.Box:
        x, y = (scale * places[id]).tolist()
        return nc.Box(x, y, x + 0.02, y + 0.02)

    def some_words(n: int) -> list[str]:
        return [words[i] for i in rng.choice(len(words), n, replace=False)]

    matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", leaf_size=10, fanout=100)
    oracle = nc.MovingMatcher("moving_scan", "plane")
    subscriptions = [nc.Subscription(id, some_words(2), box(id, 1.0)) for id in range(1000)]
    messages = [nc.Message(id, some_words(9), tuple(rng.random(2).tolist())) for id in range(300)]
    for both in (matcher, oracle):
        both.subscribe(subscriptions)
        both.publish(messages)
    copies = []
    for scale in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5):
        moves: dict[int | str, Any] = {id: box(id, scale) for id in range(1000)}
        assert set(matcher.move(moves)) == set(oracle.move(moves))
        copies.append(int(matcher.stats()["message_copies"]))
    assert max(copies) < 2 * copies[0]
