"""Road networks hang together, and the fastest ways on them are the fastest."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from nearcast.errors import WorkloadError
from nearcast.workloads import RoadNetwork
from nearcast.workloads.roads import CLASS_SPEED, NO_ARC, fastest_paths


def times_by_relaxation(network: RoadNetwork, destination: int) -> np.ndarray:
    """Bellman and Ford: relax every road until nothing changes."""
    arcs = network.arcs
    origin = np.repeat(np.arange(network.n_nodes), np.diff(arcs.node_start))
    left = np.full(network.n_nodes, np.inf)
    left[destination] = 0
    while True:
        better = left.copy()
        np.minimum.at(better, origin, left[arcs.target] + arcs.length / arcs.speed)
        if np.allclose(better, left, rtol=0, atol=0, equal_nan=True):
            return left
        left = better


@pytest.fixture(scope="module")
def network() -> RoadNetwork:
    return RoadNetwork.generate(seed=3, n_across=12, highway_every=4)


def test_times_left_equal_those_of_plain_relaxation(network: RoadNetwork) -> None:
    for destination in (0, 7, network.n_nodes - 1):
        _, left = fastest_paths(network.arcs, destination)
        assert np.allclose(left, times_by_relaxation(network, destination))


def test_following_the_next_arc_takes_the_time_left(network: RoadNetwork) -> None:
    next_arc, left = fastest_paths(network.arcs, 5)
    assert next_arc[5] == NO_ARC
    for start in range(0, network.n_nodes, 7):
        node, spent = start, 0.0
        while node != 5:
            arc = next_arc[node]
            spent += network.arcs.length[arc] / network.arcs.speed[arc]
            node = network.arcs.target[arc]
        assert np.isclose(spent, left[start])
        assert network.route(start, 5)[-1] == 5


def test_reverse_arcs_lead_back(network: RoadNetwork) -> None:
    arcs = network.arcs
    origin = np.repeat(np.arange(network.n_nodes), np.diff(arcs.node_start))
    assert np.array_equal(arcs.target[arcs.reverse], origin)
    assert np.array_equal(arcs.length[arcs.reverse], arcs.length)


def test_a_generated_network_is_connected_seeded_and_in_the_unit_square(network: RoadNetwork) -> None:
    again, other = RoadNetwork.generate(3, 12, 4), RoadNetwork.generate(4, 12, 4)
    assert np.array_equal(again.node_x, network.node_x)
    assert not np.array_equal(other.node_x, network.node_x)
    assert np.isfinite(fastest_paths(network.arcs, 0)[1]).all()
    assert network.n_nodes > 130
    assert network.n_roads > network.n_nodes
    assert 0 <= network.node_x.min() <= network.node_x.max() <= 1
    assert set(CLASS_SPEED[network.road_class]) >= {1.0, 0.25}


def test_a_network_is_read_without_its_loose_parts(tmp_path: Path) -> None:
    files = {
        "town_nodes": "id,x,y\n10,0,0\n11,100,0\n12,100,50\n13,900,900\n14,950,900\n",
        "town_edges": "id,a,b,class\n0,10,11,0\n1,12,11,6\n2,13,14,2\n3,10,10,1\n",
        "plain_nodes": "id,x,y\n0,0,0\n1,3,4\n",
        "plain_edges": "id,a,b,len\n0,0,1,5\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    town = RoadNetwork.read(tmp_path, "town")
    assert town.node_x.tolist() == [0.0, 1.0, 1.0]
    assert town.node_y.tolist() == [0.0, 0.0, 0.5]
    assert town.road_class.tolist() == [0, 6]
    assert town.route(0, 2) == [0, 1, 2]
    plain = RoadNetwork.read(tmp_path, "plain")
    assert plain.arcs.length.tolist() == [1.25, 1.25]
    with pytest.raises(WorkloadError, match="city_nodes"):
        RoadNetwork.read(tmp_path, "city")


def test_a_network_needs_some_size() -> None:
    with pytest.raises(WorkloadError, match="n_across=1"):
        RoadNetwork.generate(n_across=1)


def test_the_networks_of_the_paper_can_be_read(data_folder: Path) -> None:
    sizes = {
        name: RoadNetwork.read(data_folder / "roads", name).n_nodes
        for name in ("oldenburg", "oldenburg_brinkhoff", "sanjoaquin")
    }
    assert sizes["oldenburg"] == 6105
    assert sizes["sanjoaquin"] == 18_263
    assert sizes["oldenburg_brinkhoff"] > 6000
