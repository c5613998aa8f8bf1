"""Every registered moving index, with its option variants, against the oracle."""

from __future__ import annotations

from typing import Any

import pytest

import nearcast as nc
from nearcast.testing.budget import Budget, current_budget
from nearcast.testing.conformance import MovingIndexTests
from nearcast.testing.scenarios.histories import moving_history
from nearcast.testing.scenarios.moving import run_moving_worlds
from support.variants import Variant, run_histories, variants_of

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

ALL_VARIANTS = variants_of(nc.MovingMatcher, nc.indexes("moving"), VARIANTS)
NAMED_VARIANTS = variants_of(nc.MovingMatcher, nc.indexes("moving"), VARIANTS, current_budget().named_variants)


@pytest.fixture(params=ALL_VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant[nc.MovingMatcher]:
    param: Variant[nc.MovingMatcher] = request.param
    return param


class TestEveryMovingIndex(MovingIndexTests):
    variant: Variant[nc.MovingMatcher]

    @pytest.fixture(autouse=True, params=NAMED_VARIANTS, ids=str)
    def _choose(self, request: pytest.FixtureRequest, budget: Budget) -> None:
        self.variant = request.param
        self.n_many = budget.many // 12

    def make_matcher(self, space: str = "lonlat", **options: Any) -> nc.MovingMatcher:
        return self.variant.make(space, **options)


def test_every_variant_is_of_a_registered_index() -> None:
    assert set(VARIANTS) <= set(nc.indexes("moving"))


def test_a_random_history_gives_the_answers_of_the_oracle(variant: Variant[nc.MovingMatcher], budget: Budget) -> None:
    run_histories(moving_history(variant.make), variant.share(budget.histories, budget), budget)


@pytest.mark.skipif(current_budget().is_soak, reason="a soak runs more worlds, each with all variants")
def test_random_worlds_give_the_answers_of_the_oracle(budget: Budget) -> None:
    # The oracle is asked once for all indexes; the variants of each take the worlds in turn.
    of_index = [[variant for variant in ALL_VARIANTS if variant.index == name] for name in nc.indexes("moving")]
    for number in range(int(SHARE_OF_WORLDS * budget.worlds)):
        run_moving_worlds([variants[number % len(variants)].make for variants in of_index], 1, first=number)


@pytest.mark.skipif(not current_budget().is_soak, reason="takes long; NEARCAST_SOAK=1 asks for it")
@pytest.mark.parametrize("first", range(0, WORLDS_OF_A_SOAK, WORLDS_OF_A_PART))
def test_all_variants_live_through_the_worlds_of_a_soak(first: int) -> None:
    run_moving_worlds([variant.make for variant in ALL_VARIANTS], WORLDS_OF_A_PART, seed=1, first=first)


def test_answers_are_right_when_every_output_starts_too_small(
    variant: Variant[nc.MovingMatcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearcast.engine.kernel_calls.FIRST_CAPACITY", 1)
    run_moving_worlds(variant.make, 1, seed=77)


def test_answers_are_right_when_the_dead_are_cleared_away_at_once(
    variant: Variant[nc.MovingMatcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearcast.moving.state._LEAST_DEAD", 0)
    run_moving_worlds(variant.make, 2, seed=78)
