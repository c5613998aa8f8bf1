"""Everything is filed again in a thread, while messages come and subscriptions change."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.ranked.impact_grid.rebuild import BackgroundRebuild, RebuildInput, RebuildResult
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.testing.budget import current_budget
from nearcast.testing.scenarios.ranked import run_ranked_worlds


@pytest.fixture
def in_thread(monkeypatch: pytest.MonkeyPatch) -> list[BackgroundRebuild]:
    """Rebuilds start as soon as there is anything to file; returns all that were started."""
    begun: list[BackgroundRebuild] = []
    for name, value in (("_MIN_IN_THREAD", 1), ("_LEAST_DELTA", 1), ("_LEAST_LATER", 4), ("_SAMPLES_LATER", 0)):
        monkeypatch.setattr(f"nearcast.ranked.impact_grid.index.{name}", value)

    class Counted(BackgroundRebuild):
        def __init__(self, source: RebuildInput) -> None:
            super().__init__(source)
            begun.append(self)

    monkeypatch.setattr("nearcast.ranked.impact_grid.index.BackgroundRebuild", Counted)
    return begun


# Installed at the next messages, or some messages later.
@pytest.mark.parametrize("turns", [[True], [False, True], [False, False, False, True]], ids=str)
def test_answers_are_right_whenever_it_is_taken_over(
    turns: list[bool], in_thread: list[BackgroundRebuild], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_done = cycle(turns)
    monkeypatch.setattr(BackgroundRebuild, "is_done", property(lambda rebuild: next(is_done)))
    make = partial(nc.Ranker, index="impact_grid", fresh=1)
    n_worlds = 4 if current_budget().many > 1000 else 1
    run_ranked_worlds([make, partial(make, buffer_parameters={"spare": 0.5})], n_worlds, seed=6)
    assert len(in_thread) > 2 * n_worlds
    assert sum(len(rebuild.changed) for rebuild in in_thread) > 0


def test_it_is_taken_over_when_it_is_done(in_thread: list[BackgroundRebuild]) -> None:
    ranker = nc.Ranker(nc.CountWindow(50), "impact_grid", space="plane", max_distance=10.0)
    ranker.subscribe([nc.RankedSubscription(n, ["a"], (float(n), 0.0), k=3) for n in range(80)])
    index: Any = ranker._engine.shards[0].index
    for number in range(12):
        ranker.publish([nc.Message(number, ["a"], (float(number), 1.0))])
    first = in_thread[0]
    first.result()
    ranker.publish([nc.Message(12, ["a"], (0.0, 1.0))])
    assert index._background_rebuild is not first
    assert [ranker.stats()[name] for name in ("filed", "filed_later", "fresh")] == [80, 0, 0]


def test_without_room_for_it_the_lists_there_are_go_on(
    in_thread: list[BackgroundRebuild], monkeypatch: pytest.MonkeyPatch
) -> None:
    rankers = [
        nc.Ranker(nc.CountWindow(50), index, space="plane", max_distance=10.0) for index in ("impact_grid", "ranked_scan")
    ]
    for ranker in rankers:
        ranker.subscribe([nc.RankedSubscription(n, ["a"], (float(n), 0.0), k=3) for n in range(80)])
        ranker.publish([nc.Message(-1, ["a"], (0.0, 0.0))])

    def rebuild(source: RebuildInput) -> RebuildResult:
        raise MemoryError("no room")

    monkeypatch.setattr(RebuildInput, "rebuild", rebuild)
    monkeypatch.setattr(BackgroundRebuild, "is_done", True)

    def publish_all() -> None:
        for first in range(0, 100, 10):
            messages = [nc.Message(n, ["a"], (float(n % 70), 1.0)) for n in range(first, first + 10)]
            changes = [sorted(map(str, ranker.publish(messages))) for ranker in rankers]
            assert changes[0] == changes[1]

    with pytest.warns(UserWarning, match="no room"):
        publish_all()
    assert len(in_thread) > 5


def test_a_copy_stays_as_it_was() -> None:
    subscriptions = RankedSubscriptions()
    source: Any = RebuildInput(DistanceScale(False, 1.0), subscriptions, None, 1e-3).copy()
    assert source.window is None
    assert source.rebuild().numbers.tolist() == []
    assert source.subscriptions is not subscriptions
    source.subscriptions.threshold[:] = 1.0
    assert np.all(subscriptions.threshold == 0.0)
