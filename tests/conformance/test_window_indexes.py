"""Every index of the window, against the definition of relevance, while messages arrive and expire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import nearcast as nc
from nearcast.engine.registry import index_class
from nearcast.engine.threads import BackgroundTask
from nearcast.model.relevance import distance, relevance, spatial_proximity, text_similarity
from nearcast.model.spaces import Space
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.indexes import WINDOW_INDEXES
from nearcast.ranked.kernels.window_search import SearchLimits
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions
from nearcast.ranked.window import ArrivingMessages, MessageWindow
from nearcast.ranked.window_index import EVERYTHING, BestMessages, WindowIndex
from nearcast.ranked.window_segments import Segment
from nearcast.testing.budget import Budget
from nearcast.testing.scenarios.ranked import run_ranked_worlds

NAMES = list(WINDOW_INDEXES.classes)
N_SUBSCRIPTIONS = 8
ScoredMessages = list[tuple[int, float]]


class World:
    """A window that slides, subscriptions, and the right answers; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([42, seed])
        self.is_crowded = seed % 3 == 2
        is_lonlat = bool(self.rng.integers(2))
        self.space = Space.LONLAT if is_lonlat else Space.PLANE
        reach = (2e7, 1e6) if is_lonlat else (1.4, 0.3)
        self.distances = DistanceScale(is_lonlat, float(reach[int(self.rng.integers(2))]))
        self.n_words = 3 if self.is_crowded else int(self.rng.integers(3, 30))
        self.weights = self.rng.uniform(1, 5, self.n_words) if seed % 2 else np.ones(self.n_words)
        self.subscriptions, self.window = RankedSubscriptions(), MessageWindow()
        x, y = self.locations(N_SUBSCRIPTIONS)
        spatial = self.rng.choice([0.0, 0.2, 0.5, 0.9, 1.0], N_SUBSCRIPTIONS)
        numbers, k = np.arange(N_SUBSCRIPTIONS, dtype=np.int32), np.ones(N_SUBSCRIPTIONS, np.int32)
        # Words that no message has, too.
        self.weights = np.append(self.weights, 1.0)
        words = self.words(N_SUBSCRIPTIONS, 4, self.n_words + 1)
        self.subscriptions.put(RankedSubscriptionBatch(numbers, x, y, spatial, k, *words), self.weights)

    def locations(self, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        drawn = self.rng.uniform(-1, 1, (2, n))
        # Often the same few locations: equal scores.
        drawn = np.round(drawn * 2) / 2 if self.rng.random() < 0.5 else drawn
        x, y = drawn * np.array([[180.0], [90.0]]) if self.distances.is_lonlat else drawn
        return x, y

    def words(self, n: int, most: int, n_words: int, least: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        drawn = [np.unique(self.rng.integers(0, n_words, int(self.rng.integers(least, most + 1)))) for _ in range(n)]
        start = np.concatenate([[0], np.cumsum([len(words) for words in drawn])]).astype(np.int64)
        return start, np.concatenate(drawn).astype(np.int32)

    def arrive(self, indexes: list[WindowIndex]) -> None:
        """Messages arrive, and then some expire: the oldest, or all but a few of them."""
        self.append(indexes, int(self.rng.integers(60, 120)) if self.is_crowded else int(self.rng.integers(1, 40)))
        alive = self.window.layout().is_alive
        if self.rng.random() < 0.7:
            n_expired = max(0, self.window.n - int(self.rng.integers(20, 150)))
            alive[:n_expired] &= self.rng.random(n_expired) < (0.05 if self.rng.random() < 0.3 else 0.0)
        if self.rng.random() < 0.05:
            alive[:] = 0
        if self.rng.random() < 0.3:
            self.window.drop_expired()

    def append(self, indexes: list[WindowIndex], n: int) -> None:
        """Some messages arrive."""
        first, (x, y) = self.window.n, self.locations(n)
        # Some messages have no words.
        start, keyword = self.words(n, 6 if n > 3 else 1, self.n_words, least=0)
        ids = pa.array(np.arange(n) + self.window.next_number)
        n_times, time = self.rng.integers(1, 3, len(keyword)).astype(np.int32), self.rng.integers(0, 3, n).astype(float)
        self.window.append(ArrivingMessages(ids, time, x, y, start, keyword, n_times), self.weights)
        for index in indexes:
            index.add(self.window, first)
        self.window.layout().is_alive[first:] = 1

    def expected(self, s: int, n: int, limits: SearchLimits) -> ScoredMessages:
        rows, window = self.subscriptions.layout(), self.window.layout()
        words = rows.keyword[rows.first[s] : rows.first[s] + rows.n_words[s]].tolist()
        scored = []
        for row in np.flatnonzero(window.is_alive).tolist():
            number = self.window.base + row
            run = slice(window.keyword_start[row], window.keyword_start[row + 1])
            counts = dict(zip(window.keyword[run].tolist(), window.n_times[run].tolist(), strict=True))
            if not limits.first <= number < limits.end or not counts.keys() & set(words):
                continue
            apart = distance(self.space, float(rows.x[s]), float(rows.y[s]), float(window.x[row]), float(window.y[row]))
            near = spatial_proximity(apart, self.distances.max_distance)
            similar = text_similarity(counts, words, lambda word: float(self.weights[word]))
            score = relevance(float(rows.spatial_weight[s]), near, similar)
            if score >= limits.least_score:
                scored.append((score, float(window.time[row]), number))
        return [(number, score) for score, _, number in sorted(scored, reverse=True)[:n]]

    def limits(self) -> SearchLimits:
        if self.rng.random() < 0.6:
            return EVERYTHING
        last = self.window.next_number
        ends = sorted((last - int(self.rng.integers(0, 100)), last - int(self.rng.integers(0, 40))))
        return SearchLimits(ends[0], ends[1], float(self.rng.uniform(0, 0.6)))


def messages_of(best: BestMessages, i: int) -> ScoredMessages:
    run = slice(best.start[i], best.start[i] + best.n[i])
    return list(zip(best.number[run].tolist(), best.score[run].tolist(), strict=True))


@pytest.fixture(autouse=True)
def _clears_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.window._MIN_EXPIRED", 0)


def check_worlds(n_worlds: int, monkeypatch: pytest.MonkeyPatch, n_rounds: int = 8) -> None:
    numbers = np.arange(N_SUBSCRIPTIONS, dtype=np.int32)
    n_expected = 0
    for seed in range(n_worlds):
        monkeypatch.setattr("nearcast.ranked.window_segments.TAIL", (1, 4, 16, 64)[seed % 4])
        world = World(seed)
        indexes = [index_class(WINDOW_INDEXES, name)(world.distances) for name in NAMES]
        for _ in range(n_rounds):
            world.arrive(indexes)
            k, limits = world.rng.integers(1, 25, N_SUBSCRIPTIONS).astype(np.int32), world.limits()
            if world.rng.random() < 0.1:
                for index in indexes:
                    index.rebuild(world.window)
            answers = [index.best(world.subscriptions, world.window, numbers, k, limits) for index in indexes]
            for s in range(N_SUBSCRIPTIONS):
                expected = world.expected(s, int(k[s]), limits)
                n_expected += len(expected)
                for name, best in zip(NAMES, answers, strict=True):
                    assert messages_of(best, s) == expected, (seed, name, s, limits)
    assert n_expected > 100


def test_every_index_finds_the_best_while_the_window_slides(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    check_worlds(max(6, budget.worlds // 8), monkeypatch)


def test_answers_are_right_when_many_searches_leave_no_tail(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_SHORT_TAIL", 0), ("_COST_OF_FRAGMENTS", 1000)):
        monkeypatch.setattr(f"nearcast.ranked.window_segments.{name}", value)
    check_worlds(max(6, budget.worlds // 32), monkeypatch)
    world = World(3)
    index = index_class(WINDOW_INDEXES, "window_grid")(world.distances)
    world.append([index], 5)
    numbers = np.arange(N_SUBSCRIPTIONS, dtype=np.int32)
    index.best(world.subscriptions, world.window, numbers, np.full(N_SUBSCRIPTIONS, 3, np.int32))
    assert index.n_tail == 0  # type: ignore[attr-defined]


class Counted(BackgroundTask[Segment]):
    """A thread whose piece is taken over whenever `turns` says so."""

    begun = 0
    turns: Iterator[bool]

    def __init__(self, make: Callable[[], Segment]) -> None:
        super().__init__(make)
        Counted.begun += 1

    @property
    def is_done(self) -> bool:
        return next(Counted.turns)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces become larger ones soon, in a thread, and not because of a search."""
    for name, value in (("_MIN_IN_THREAD", 1), ("_GROWTH", 1), ("_LARGEST_SHARE", 1), ("_COST_OF_FRAGMENTS", 0)):
        monkeypatch.setattr(f"nearcast.ranked.window_segments.{name}", value)
    monkeypatch.setattr("nearcast.ranked.window_segments.BackgroundTask", Counted)


# Taken over at the next piece, or some pieces later.
@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("turns", [[True], [False, True], [False, False, False, True]], ids=str)
def test_answers_are_right_whenever_a_piece_made_in_a_thread_is_taken_over(
    turns: list[bool], budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    Counted.begun, Counted.turns = 0, cycle(turns)
    check_worlds(max(6, budget.worlds // 32), monkeypatch, n_rounds=30)
    assert Counted.begun > 10


@pytest.mark.usefixtures("beside")
def test_without_room_for_a_larger_piece_the_smaller_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room() -> Segment:
        raise MemoryError("no room")

    monkeypatch.setattr("nearcast.ranked.window_segments.BackgroundTask", lambda make: Counted(no_room))
    Counted.turns = cycle([True])
    with pytest.warns(UserWarning, match="no room"):
        check_worlds(4, monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_many_are_searched_for_as_one_by_one(name: str) -> None:
    world = World(2)
    index = index_class(WINDOW_INDEXES, name)(world.distances)
    for _ in range(8):
        world.arrive([index])
    n = 270
    x, y = world.locations(n)
    numbers = np.arange(n, dtype=np.int32)
    words = world.words(n, 3, world.n_words)
    world.subscriptions.put(
        RankedSubscriptionBatch(numbers, x, y, world.rng.uniform(0, 1, n), np.ones(n, np.int32), *words), world.weights
    )
    k = np.full(n, 3, np.int32)
    alone = [index.best(world.subscriptions, world.window, numbers[s : s + 1], k[s : s + 1]) for s in range(n)]
    together = index.best(world.subscriptions, world.window, numbers, k)
    assert [messages_of(together, s) for s in range(n)] == [messages_of(best, 0) for best in alone]
    assert index.work()["scored"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_long_lists_are_searched_from_the_most_promising_part_down(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.window_segments.TAIL", 8)
    world = World(2)
    index = index_class(WINDOW_INDEXES, name)(world.distances)
    # Pieces of two thousand and less; in the larger ones each word has more messages than a group of blocks.
    for n in (4000, 600):
        world.append([index], n)
    if name == "window_grid":
        assert index.columns["group"].n > 0  # type: ignore[attr-defined]
    numbers, k = np.arange(N_SUBSCRIPTIONS, dtype=np.int32), np.full(N_SUBSCRIPTIONS, 12, np.int32)
    best = index.best(world.subscriptions, world.window, numbers, k)
    for s in range(N_SUBSCRIPTIONS):
        assert messages_of(best, s) == world.expected(s, 12, EVERYTHING)
    assert index.work()["entries"] < N_SUBSCRIPTIONS * world.window.n


@pytest.mark.parametrize("name", NAMES)
def test_an_index_stays_small_while_the_window_slides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.window_segments.TAIL", 4)
    world = World(1)
    index = index_class(WINDOW_INDEXES, name)(world.distances)
    sizes = []
    for _ in range(60):
        world.arrive([index])
        world.window.layout().is_alive[: max(0, world.window.n - 50)] = 0
        sizes.append(index.n_bytes)
    assert max(sizes[30:]) < 2 * max(sizes[:30])


@pytest.mark.parametrize("name", NAMES)
def test_small_pieces_become_one_where_somebody_searches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("TAIL", 2), ("_COST_OF_FRAGMENTS", 0)):
        monkeypatch.setattr(f"nearcast.ranked.window_segments.{limit}", value)
    options: dict[str, Any] = {"index": "ranked_scan", "space": "plane", "max_distance": 100.0, "window_index": name}
    ranker, n_segments = nc.Ranker(nc.CountWindow(80), **options), []
    segments: Any = ranker._engine.shards[0].window_index
    for number in range(60):
        ranker.publish([nc.Message(number, ["a"], (number, 0))])
        n_segments.append(len(segments.table))
        if number >= 40:
            ranker.subscribe([nc.RankedSubscription(1, ["a"], (0, 0), k=60, spatial_weight=1.0)])
            assert [message for message, _ in ranker.top(1)] == list(range(number + 1))
    assert n_segments[39] == 20
    assert min(n_segments[40:]) < 20


def test_nobody_finds_anything_in_an_empty_window() -> None:
    world = World(0)
    for name in NAMES:
        index = index_class(WINDOW_INDEXES, name)(world.distances)
        index.rebuild(world.window)
        best = index.best(world.subscriptions, world.window, np.arange(2, dtype=np.int32), np.full(2, 3, np.int32))
        assert best.n.tolist() == [0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_a_ranker_gives_the_answers_of_the_oracle(name: str, monkeypatch: pytest.MonkeyPatch, budget: Budget) -> None:
    monkeypatch.setattr("nearcast.ranked.window_segments.TAIL", 8)

    def make_ranker(**options: Any) -> nc.Ranker:
        few: dict[str, Any] = {"buffer": "kmax", "buffer_parameters": {"factor": 1.0}, **options}
        return nc.Ranker(index="ranked_scan", window_index=name, **few)

    run_ranked_worlds(make_ranker, max(2, budget.worlds // 20), seed=5)


def test_a_saved_ranker_is_opened_with_another_index(tmp_path: Path) -> None:
    ranker = nc.Ranker(nc.CountWindow(5), "ranked_scan", space="plane", max_distance=10.0, window_index="window_ir_tree")
    ranker.publish([nc.Message(i, ["a", f"w{i}"], (i, 0)) for i in range(6)])
    ranker.subscribe([nc.RankedSubscription(s, ["a", f"w{s}"], (s, 0), k=2) for s in range(4)])
    ranker.save(tmp_path / "saved")
    for index, is_mapped in ((None, True), ("covering_quadtree", False)):
        opened = nc.Ranker.open(tmp_path / "saved", index, is_mapped)
        assert opened.stats()["index"] == (index or "ranked_scan")
        assert opened.top_table().equals(ranker.top_table())
        changes = opened.publish([nc.Message(7, ["a"], (1, 0))])
        assert {change.message_id for change in changes} >= {7}


def test_an_unknown_index_of_the_window_is_named() -> None:
    with pytest.raises(nc.NearcastError, match="no window index 'nope'; expected 'auto' or one of window_grid, window_ir_tree"):
        nc.Ranker(nc.CountWindow(5), window_index="nope")
