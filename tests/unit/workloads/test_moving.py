"""Travellers stay on the roads, keep to their speed, and travel the same way every time."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.errors import WorkloadError
from nearcast.workloads import MovingSubscribers, RoadNetwork, open_workload
from nearcast.workloads.moving import MEDIUM_SPEED


@pytest.fixture(scope="module")
def network() -> RoadNetwork:
    return RoadNetwork.generate(seed=3, n_across=12, highway_every=4)


def positions_of(subscribers: MovingSubscribers) -> np.ndarray:
    table = subscribers.positions()
    return np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)


def test_equal_arguments_give_equal_journeys(network: RoadNetwork) -> None:
    first, second = (MovingSubscribers(network, 100, seed=5, mobility=0.5, n_destinations=8) for _ in range(2))
    for _ in range(10):
        assert first.advance().equals(second.advance())
    assert first.time_s == 300.0
    other = MovingSubscribers(network, 100, seed=6, n_destinations=8)
    assert not other.positions().equals(MovingSubscribers(network, 100, seed=5, n_destinations=8).positions())


def test_everybody_is_on_a_road(network: RoadNetwork) -> None:
    subscribers = MovingSubscribers(network, 60, seed=5, speed=1.3, n_destinations=8)
    for _ in range(5):
        subscribers.advance()
    start = np.stack([network.node_x[network.road_from], network.node_y[network.road_from]], 1)
    stop = np.stack([network.node_x[network.road_to], network.node_y[network.road_to]], 1)
    for position in positions_of(subscribers):
        along = np.clip(((position - start) * (stop - start)).sum(1) / ((stop - start) ** 2).sum(1), 0, 1)
        assert np.hypot(*(position - start - along[:, None] * (stop - start)).T).min() < 1e-9


@pytest.mark.parametrize("speed", [0.5, 4.0])
def test_nobody_is_faster_than_allowed(network: RoadNetwork, speed: float) -> None:
    subscribers = MovingSubscribers(network, 200, seed=5, speed=speed, n_destinations=8)
    steps = []
    for _ in range(10):
        before = positions_of(subscribers)
        subscribers.advance()
        steps.append(np.hypot(*(positions_of(subscribers) - before).T))
    assert np.max(steps) <= MEDIUM_SPEED * speed + 1e-12
    assert np.mean(steps) > MEDIUM_SPEED * speed * 0.1


def test_mobility_is_the_share_that_moves(network: RoadNetwork) -> None:
    subscribers = MovingSubscribers(network, 1000, seed=5, mobility=0.2, n_destinations=8)
    before = positions_of(subscribers)
    moved = subscribers.advance()
    still = np.setdiff1d(np.arange(1000), moved["id"].to_numpy())
    assert 150 < moved.num_rows < 250
    assert np.array_equal(positions_of(subscribers)[still], before[still])
    assert MovingSubscribers(network, 50, mobility=0.0, n_destinations=2).advance().num_rows == 0


def test_those_who_leave_are_replaced_by_new_ids(network: RoadNetwork) -> None:
    subscribers = MovingSubscribers(network, 400, seed=5, lifetime=4.0, n_destinations=8)
    known = set(subscribers.ids.tolist())
    for _ in range(3):
        changed = subscribers.advance()["id"].to_pylist()
        departed = set(subscribers.departed.tolist())
        assert 50 < len(departed) < 150
        assert not departed & set(changed)
        assert {gone + 400 for gone in departed} <= set(changed)
        known = (known - departed) | set(changed)
        assert known == set(subscribers.ids.tolist())


def test_a_single_destination_is_reached_and_kept(network: RoadNetwork) -> None:
    subscribers = MovingSubscribers(network, 20, seed=5, speed=4.0, n_destinations=1)
    for _ in range(300):
        subscribers.advance()
    goal = subscribers.destination_node[0]
    assert np.allclose(positions_of(subscribers), [network.node_x[goal], network.node_y[goal]])


def test_trips_go_on_after_arrival(network: RoadNetwork) -> None:
    subscribers = MovingSubscribers(network, 20, seed=5, speed=4.0, n_destinations=3)
    for _ in range(250):
        subscribers.advance()
    assert subscribers._state.n_trips.min() >= 1


def test_unusable_arguments_are_refused(network: RoadNetwork) -> None:
    for arguments in ({"mobility": 1.5}, {"speed": -1.0}, {"lifetime": 0.5}, {"n_destinations": 0}):
        with pytest.raises(WorkloadError, match="not usable"):
            MovingSubscribers(network, 1, **arguments)
    for parameters, complaint in (
        ({"network": "oldenburg"}, "give folder="),
        ({"over": "gazetteer"}, "give folder="),
        ({"over": "x"}, "unknown"),
    ):
        with pytest.raises(WorkloadError, match=complaint):
            open_workload("moving", **parameters)


def test_the_workload_centres_regions_on_the_travellers_and_keeps_their_size() -> None:
    workload = open_workload(
        "moving", vocabulary_size=4000, pool=20_000, frequencies="curve", range_high=1.0, n_across=10, n_destinations=5
    )
    subscriptions = workload.subscriptions(50)
    subscribers = workload.subscribers(50)  # type: ignore[attr-defined]
    assert np.allclose((subscriptions["x0"].to_numpy() + subscriptions["x1"].to_numpy()) / 2, positions_of(subscribers)[:, 0])
    moves = workload.moves(subscribers.advance())  # type: ignore[attr-defined]
    assert moves.schema.names == ["id", "x0", "y0", "x1", "y1"]
    side = subscriptions["x1"].to_numpy() - subscriptions["x0"].to_numpy()
    assert np.allclose(moves["x1"].to_numpy() - moves["x0"].to_numpy(), side[moves["id"].to_numpy()])
