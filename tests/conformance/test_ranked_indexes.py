"""Every registered ranked index with every kind of buffer that goes with it, against the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import nearcast as nc
from nearcast.ranked.factory import BUFFER_KINDS
from nearcast.testing.budget import Budget, current_budget
from nearcast.testing.conformance import RankedIndexTests
from nearcast.testing.scenarios.histories import ranked_history
from nearcast.testing.scenarios.ranked import run_ranked_worlds
from support.variants import listed, run_histories

# Options worth a run of their own: buffers that are often refilled, and buffers that are often full.
BUFFERS: dict[str, list[dict[str, Any]]] = {
    "cost_skyband": [{}, {"refill_cost": 10.0}],
    "skyband": [{}, {"ratio": 1.0}],
    "kmax": [{}, {"factor": 1.0}],
    "floor": [{}, {"spare": 0.0}],
}
# Parameters that make the parts of an index small: most worlds have fewer subscriptions than fit into one group.
INDEXES: dict[str, list[dict[str, Any]]] = {
    "individually_pruned": [{"group_size": 2, "weight_groups": 1}, {}],
    "group_pruned": [{"group_size": 2, "weight_groups": 3}, {}, {"group_size": 5, "weight_groups": 100}],
    "covering_quadtree": [{}, {"levels": 1}],
    "impact_grid": [{"fresh": 0, "cell_cost": 1e-9}, {}],
}
# A ranked world has about a hundred ticks, each compared; half of them have a window of time.
SHARE_OF_WORLDS = 0.2
WORLDS_OF_A_SOAK = 600
WORLDS_OF_A_PART = 20


@dataclass(frozen=True)
class Variant:
    """An index with its parameters, a buffer with its options."""

    index: str
    parameters: Mapping[str, Any]
    buffer: str
    options: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.index}{listed(self.parameters)}-{self.buffer}{listed(self.options)}"

    def make(self, **options: Any) -> nc.Ranker:
        """An empty ranker."""
        return nc.Ranker(
            index=self.index, buffer=self.buffer, buffer_parameters=dict(self.options), **options, **self.parameters
        )


def _variants(index: str, is_soak: bool) -> list[Variant]:
    """Every buffer with every set of parameters, or, where time matters, with one of them in turn."""
    fitting = [buffer for buffer in BUFFERS if (buffer == "floor") == (index == "impact_grid")]
    buffers = [(buffer, options) for buffer in fitting for options in BUFFERS[buffer]]
    parameters = INDEXES.get(index, [{}])
    if is_soak:
        return [Variant(index, values, *buffer) for buffer in buffers for values in parameters]
    return [Variant(index, parameters[i % len(parameters)], *buffer) for i, buffer in enumerate(buffers)]


ALL_VARIANTS = [variant for index in nc.indexes("ranked") for variant in _variants(index, current_budget().is_soak)]
# The second options of each buffer: they are refilled most often.
CHOSEN_VARIANTS = ALL_VARIANTS if current_budget().is_soak else ALL_VARIANTS[1::2]
NAMED_VARIANTS = [
    variant for index in nc.indexes("ranked") for variant in _variants(index, False)[: current_budget().named_variants]
]


@pytest.fixture(params=CHOSEN_VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant:
    param: Variant = request.param
    return param


class TestEveryRankedIndex(RankedIndexTests):
    variant: Variant

    @pytest.fixture(autouse=True, params=NAMED_VARIANTS, ids=str)
    def _choose(self, request: pytest.FixtureRequest) -> None:
        self.variant = request.param

    def make_ranker(self, **options: Any) -> nc.Ranker:
        return self.variant.make(**options)


def test_every_buffer_takes_part() -> None:
    assert set(BUFFERS) == set(BUFFER_KINDS)


def test_a_random_history_gives_the_answers_of_the_oracle(variant: Variant, budget: Budget) -> None:
    n_of_index = sum(other.index == variant.index for other in CHOSEN_VARIANTS)
    n_histories = budget.histories if budget.is_soak else -(-budget.histories // n_of_index)
    run_histories(ranked_history(variant.make), n_histories, budget)


@pytest.mark.skipif(current_budget().is_soak, reason="a soak runs more worlds")
def test_random_worlds_give_the_answers_of_the_oracle(budget: Budget) -> None:
    # The oracle is asked once for all indexes; the variants of each take the worlds in turn.
    of_index = [[variant for variant in ALL_VARIANTS if variant.index == name] for name in nc.indexes("ranked")]
    for number in range(int(SHARE_OF_WORLDS * budget.worlds)):
        run_ranked_worlds([variants[number % len(variants)].make for variants in of_index], 1, first=number)


@pytest.mark.skipif(not current_budget().is_soak, reason="takes long; NEARCAST_SOAK=1 asks for it")
@pytest.mark.parametrize("first", range(0, WORLDS_OF_A_SOAK, WORLDS_OF_A_PART))
def test_all_variants_live_through_the_worlds_of_a_soak(first: int) -> None:
    run_ranked_worlds([variant.make for variant in ALL_VARIANTS], WORLDS_OF_A_PART, seed=1, first=first)


def test_answers_are_right_when_room_is_always_short(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("papers.ranked.skyband.tick_index", "ranked.run_state", "ranked.impact_grid.index"):
        monkeypatch.setattr(f"nearcast.{module}._FIRST_CAPACITY", 1)
    monkeypatch.setattr("nearcast.ranked.run_state._FIRST_CHUNKS", 1)
    run_ranked_worlds(variant.make, 2, seed=77)


def test_answers_are_right_when_what_is_over_is_cleared_away_at_once(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.window._MIN_EXPIRED", 0)
    monkeypatch.setattr("nearcast.ranked.subscriptions._LEAST_WASTE", 0)
    run_ranked_worlds(variant.make, 3, seed=78)


@pytest.mark.parametrize("threads", [2, 5])
def test_shards_give_the_answers_of_the_oracle(threads: int) -> None:
    run_ranked_worlds(partial(nc.Ranker, threads=threads), 4, seed=79)
