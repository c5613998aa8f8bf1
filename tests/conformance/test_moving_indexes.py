"""Every registered moving index, with its option variants, against the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import nearcast as nc
from nearcast.testing.budget import Budget, current_budget
from nearcast.testing.conformance.moving import MovingIndexTests
from nearcast.testing.histories.moving import moving_history
from nearcast.testing.scenarios.moving import run_moving_worlds

# Parameters worth a run of their own; an index that is not named runs with its defaults.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "grid_space_first": [{}, {"side": 3, "most_cells": 2}],
    "grid_keyword_first": [{}, {"side": 3, "most_cells": 2}],
    "moving_grid": [{}, {"smallest_clause_grid": 2, "smallest_message_grid": 1, "first_level": 1, "growth": 2}],
    "moving_adaptive_tree": [
        {},
        {"leaf_size": 2, "fanout": 4, "priority": "keyword", "max_message_copies": 6},
        {"leaf_size": 2, "fanout": 4, "least_change": 0.0, "is_noise_corrected": False, "max_copies": 4.0},
        {"leaf_size": 3, "fanout": 4, "max_message_copies": 1},
        {"leaf_size": 2, "fanout": 9, "keyword_order": "frequent_first", "is_refining": False, "max_message_copies": 500},
        {"leaf_size": 2, "fanout": 9, "message_lists": "keyword_grid"},
        {"leaf_size": 2, "fanout": 4, "message_lists": "space_grid"},
        {"leaf_size": 2, "fanout": 4, "costs": "moving", "speed": 1.0, "rebuild_weight": 0.01, "max_copies": 3.0},
    ],
    "moving_space_first_quadtree": [{}, {"max_depth": 3, "update_cost": 0.01}],
    "moving_keyword_first_quadtree": [{}, {"max_depth": 4, "update_cost": 0.005, "smallest_tree": 1}],
}
# A moving world is longer than a boolean one.
SHARE_OF_WORLDS = 0.3
WORLDS_OF_A_SOAK = 5000
WORLDS_OF_A_PART = 250


@dataclass(frozen=True)
class Variant:
    """An index and the parameters it is made with."""

    index: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        given = ",".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.index}[{given}]" if given else self.index

    def make_matcher(self, space: str = "lonlat", **options: Any) -> nc.MovingMatcher:
        return nc.MovingMatcher(index=self.index, space=space, **options, **self.parameters)

    def share(self, count: float, budget: Budget) -> int:
        """This variant's part of what an index may do; a soak gives every variant the whole."""
        return int(count if budget.is_soak else -(-count // len(VARIANTS.get(self.index, [{}]))))


ALL_VARIANTS = [Variant(name, parameters) for name in nc.indexes("moving") for parameters in VARIANTS.get(name, [{}])]
# The deep ones come second: where kernels are compiled, each index goes through the named cases by default and deep.
NAMED_VARIANTS = [
    Variant(name, parameters)
    for name in nc.indexes("moving")
    for parameters in VARIANTS.get(name, [{}])[: current_budget().named_variants]
]


@pytest.fixture(params=ALL_VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant:
    chosen: Variant = request.param
    return chosen


class TestEveryMovingIndex(MovingIndexTests):
    variant: Variant

    @pytest.fixture(autouse=True, params=NAMED_VARIANTS, ids=str)
    def _choose(self, request: pytest.FixtureRequest, budget: Budget) -> None:
        self.variant = request.param
        self.n_many = budget.many // 12

    def make_matcher(self, space: str = "lonlat", **options: Any) -> nc.MovingMatcher:
        return self.variant.make_matcher(space, **options)


def test_every_variant_is_of_a_registered_index() -> None:
    assert set(VARIANTS) <= set(nc.indexes("moving"))


def test_a_random_history_gives_the_answers_of_the_oracle(variant: Variant, budget: Budget) -> None:
    phases = [Phase.generate, Phase.shrink] if budget.is_soak else [Phase.generate]
    n_histories = variant.share(budget.histories, budget)
    limits = settings(max_examples=n_histories, stateful_step_count=budget.history_steps, phases=phases)
    run_state_machine_as_test(moving_history(variant.make_matcher), settings=limits)


@pytest.mark.skipif(current_budget().is_soak, reason="a soak lives through more worlds, with all variants side by side")
def test_random_worlds_give_the_answers_of_the_oracle(budget: Budget) -> None:
    # The oracle is asked once for all indexes; the variants of each take the worlds in turn.
    own = [[variant for variant in ALL_VARIANTS if variant.index == name] for name in nc.indexes("moving")]
    for number in range(int(SHARE_OF_WORLDS * budget.worlds)):
        run_moving_worlds([variants[number % len(variants)].make_matcher for variants in own], 1, first=number)


@pytest.mark.skipif(not current_budget().is_soak, reason="takes long; NEARCAST_SOAK=1 asks for it")
@pytest.mark.parametrize("first", range(0, WORLDS_OF_A_SOAK, WORLDS_OF_A_PART))
def test_all_variants_live_through_the_worlds_of_a_soak(first: int) -> None:
    run_moving_worlds([variant.make_matcher for variant in ALL_VARIANTS], WORLDS_OF_A_PART, seed=1, first=first)


def test_answers_are_right_when_every_output_starts_too_small(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.engine.kernel_calls.FIRST_CAPACITY", 1)
    run_moving_worlds(variant.make_matcher, 1, seed=77)


def test_answers_are_right_when_the_dead_are_cleared_away_at_once(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.moving.state._LEAST_DEAD", 0)
    run_moving_worlds(variant.make_matcher, 2, seed=78)
