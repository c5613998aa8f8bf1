"""What it costs that clauses move, as the tree reckons it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.papers.boolean.adaptive_tree.kernels.motion import motion_cost, steps_until_drift, take_motion
from nearcast.papers.boolean.adaptive_tree.layout import DEPTH, ITEM_FIELDS, MOTION_FIELDS, NODE, START, STOP, MotionArrays
from nearcast.papers.moving.moving_adaptive_tree.parameters import MovingAdaptiveTreeParameters
from nearcast.papers.moving.moving_adaptive_tree.tree_with_messages import TreeWithMessages

N = 400


class OneNode:
    """A node with N clauses in the unit square that move by `speed`, on the work bench of a tree."""

    def __init__(self, speed: float, seed: int = 3, **parameters: object) -> None:
        own = MovingAdaptiveTreeParameters(costs="moving", is_noise_corrected=False, **parameters)  # type: ignore[arg-type]
        self.tree = TreeWithMessages(own)
        self.work = self.tree._new_work(N, N, N)
        rng = np.random.default_rng(seed)
        place, angle = rng.random((N, 2)), rng.uniform(0, 2 * np.pi, N)
        self.work.box[:] = np.concatenate([place, place], axis=1).ravel()
        self.work.order[:N] = self.work.clause[:N] = np.arange(N)
        self.work.item[:ITEM_FIELDS] = 0
        self.work.item[NODE], self.work.item[START], self.work.item[STOP], self.work.item[DEPTH] = 0, 0, N, 1
        self.work.item_region[:4] = [0, 0, 1, 1]
        velocity = (speed * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.float32).ravel()
        facts = self.tree._motion_record.arrays(N).facts
        self.motion = MotionArrays(velocity, facts)

    def cost(self, n_keys: int = 50) -> float:
        return float(motion_cost(self.tree._tree, self.motion, self.work, self.tree._options, 0, n_keys))


def test_clauses_that_rest_cost_no_updates_and_fast_ones_at_most_one_each() -> None:
    costs = [OneNode(speed, rebuild="never").cost() for speed in (0.0, 0.01, 0.1, 50.0)]
    assert costs[0] == 0.0
    assert costs == sorted(costs)
    # Equation 9 with min(1, zeta) = 1: two ways of one node each, for a fifth of the clauses, per message of the time step.
    assert costs[-1] == pytest.approx(0.2 * N * 2 * np.log2(200) / (0.1 * N))


def test_e22_the_root_is_not_free_and_only_messages_that_come_to_a_node_count() -> None:
    node = OneNode(0.1, rebuild="never")
    at_root = node.cost()
    assert at_root > 0.0
    node.work.item[DEPTH] = 2
    assert node.cost() == pytest.approx(2 * at_root)
    node.tree._tree.share[0] = 0.25
    assert node.cost() == pytest.approx(8 * at_root)


def test_what_drifts_sooner_costs_more() -> None:
    costs = [OneNode(speed).cost() for speed in (0.0, 0.002, 0.02, 0.2)]
    assert 0.0 < costs[0] < costs[1] < costs[2] <= costs[3]


@pytest.mark.parametrize("limit", [0.001, 0.05, 0.3])
def test_steps_until_drift_are_those_of_trying_one_after_the_other(limit: float) -> None:
    node = OneNode(0.02)
    n, _ = take_motion(node.work, node.motion, 0, N, 0)
    found = steps_until_drift(node.work, n, 0.2, 100.0, 200.0, limit)
    first = next((t for t in range(1, 100) if _drift(node.work.sample, t * 0.2) > limit), 100)
    assert found == first


def _drift(sample: np.ndarray, steps: float) -> float:
    """The divergence of a grid of 14 x 14 cells and one for who has left, in plain terms."""
    rows = sample.reshape(4, -1)[:, :N]
    cells = []
    for x, y in ((rows[0], rows[1]), (rows[0] + rows[2] * steps, rows[1] + rows[3] * steps)):
        is_in = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)
        cells.append(np.where(is_in, np.minimum(13, (y * 14).astype(int)) * 14 + np.minimum(13, (x * 14).astype(int)), 196))
    then, now = (np.bincount(cell, minlength=197) + 0.5 for cell in cells)
    noise = 197 * float((cells[0] != cells[1]).mean()) / N
    return float((then / then.sum() * np.log(then / now)).sum()) - noise


def test_a_node_without_width_has_a_cost() -> None:
    node = OneNode(0.1)
    node.work.item_region[:4] = [0.5, 0.5, 0.5, 0.5]
    assert np.isfinite(node.cost())


def test_without_messages_moving_costs_nothing() -> None:
    node = OneNode(0.1)
    node.motion = node.motion._replace(facts=np.zeros(MOTION_FIELDS))
    assert node.cost() == 0.0


def test_the_tree_is_rebuilt_once_most_velocities_are_known() -> None:
    matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", costs="moving", leaf_size=8, fanout=16, rebuild="never")
    rng = np.random.default_rng(5)
    low = rng.uniform(0, 100, (300, 2))
    common = {"id": range(300), "keywords": [[f"w{i % 40}"] for i in range(300)]}
    matcher.subscribe_table(pa.table({**common, **_sides(low)}))
    before = float(matcher.stats()["space_nodes"])
    assert before > 0
    matcher.move_table(pa.table({"id": range(100), **_sides(low[:100] + 30)}))
    assert float(matcher.stats()["space_nodes"]) > 0
    matcher.move_table(pa.table({"id": range(100, 300), **_sides(low[100:] + 30)}))
    # Everyone moves far: division by space is not worth it any more.
    assert float(matcher.stats()["space_nodes"]) < before


def test_arrivals_are_counted_against_moves() -> None:
    tree = TreeWithMessages(MovingAdaptiveTreeParameters(costs="moving", mobility=0.5, arrivals=0.3))
    assert tree._motion_record.arrays(1000).facts[0] == pytest.approx(300)
    tree._motion_record._count[:2] = 4000, 1000
    assert tree._motion_record.arrays(1000).facts[0] == pytest.approx(0.5 * 1000 / 4)


def _sides(low: np.ndarray) -> dict[str, np.ndarray]:
    return {"x0": low[:, 0], "y0": low[:, 1], "x1": low[:, 0] + 1, "y1": low[:, 1] + 1}
