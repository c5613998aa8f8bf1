"""Every registered boolean index, with its option variants, against the oracle."""

from __future__ import annotations

from typing import Any

import pytest

import nearcast as nc
from nearcast.testing.budget import SOAK, Budget, current_budget
from nearcast.testing.conformance import BooleanIndexTests
from nearcast.testing.scenarios.boolean import run_boolean_worlds
from nearcast.testing.scenarios.histories import boolean_history
from support.variants import Variant, run_histories, variants_of

# Parameters worth a run of their own; an index that is not named runs with its defaults.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "spatial_first": [{}, {"node_capacity": 4}],
    "ir_tree": [{}, {"node_capacity": 4}],
    "textual_rtree": [
        {},
        {"node_capacity": 4},
        {"node_capacity": 6, "selection": "local", "root": "packed"},
        {"node_capacity": 4, "representatives": "all"},
        *({"node_capacity": 4, "representatives": "one", "selection": s} for s in ("random", "df", "idf", "local")),
    ],
    "space_first_quadtree": [{}, {"update_cost": 0.0001}, {"max_depth": 3, "is_guessing": False}],
    "region_trie": [{}, {"probe": "tokens", "keyword_order": "rare_first"}, {"probe": "trie", "keyword_order": "id"}],
    "pivot_quadtree": [{}, {"leaf_size": 2}, {"leaf_size": 2, "storage": "mx_cif"}, {"leaf_size": 1, "max_depth": 3}],
    "cost_filter": [{}, {"calibrate": False, "leaf_size": 2}, {"leaf_size": 3, "storage": "mx_cif"}],
    "trie_quadtree": [{}, {"leaf_size": 1, "keyword_order": "rare_first"}, {"leaf_size": 2, "storage": "mx_cif"}],
    "frequency_grid": [{}, {"probe_cost": 0.0, "memory": "small"}, {"probe_cost": 0.0, "max_level": 13}],
    "keyword_first_quadtree": [{}, {"smallest_tree": 1, "update_cost": 0.001}, {"max_depth": 15, "smallest_tree": 2}],
    "frequency_pyramid": [
        {},
        {"list_size": 1, "node_size": 1, "max_depth": 4, "cleaned": 1},
        {"list_size": 2, "node_size": 2, "max_depth": 15, "is_sharing": False, "cleaned": 0},
    ],
    "adaptive_tree": [
        {},
        {"leaf_size": 2, "fanout": 4, "least_change": 0.0, "is_noise_corrected": False},
        {"leaf_size": 2, "fanout": 9, "keyword_order": "frequent_first", "is_refining": False},
        {"leaf_size": 3, "fanout": 4, "partition": "optimal"},
        {"leaf_size": 2, "fanout": 5, "priority": "keyword", "rebuild": "never"},
        {"leaf_size": 2, "priority": "space", "max_copies": 8.0, "drift_limit": 0.0},
    ],
}
WORLDS_OF_A_PART = 100

ALL_VARIANTS = variants_of(nc.Matcher, nc.indexes(), VARIANTS)
# The named cases are many: in a usual run each index goes through them with its defaults, in a soak with all its variants.
# Random worlds and histories are for every variant in every mode.
NAMED_VARIANTS = variants_of(nc.Matcher, nc.indexes(), VARIANTS, current_budget().named_variants)


@pytest.fixture(params=NAMED_VARIANTS, ids=str)
def named_variant(request: pytest.FixtureRequest) -> Variant[nc.Matcher]:
    param: Variant[nc.Matcher] = request.param
    return param


@pytest.fixture(params=ALL_VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant[nc.Matcher]:
    param: Variant[nc.Matcher] = request.param
    return param


class TestEveryBooleanIndex(BooleanIndexTests):
    variant: Variant[nc.Matcher]

    @pytest.fixture(autouse=True)
    def _choose(self, named_variant: Variant[nc.Matcher], budget: Budget) -> None:
        self.variant = named_variant
        self.n_many = budget.many

    def make_matcher(self, space: str = "lonlat", **options: Any) -> nc.Matcher:
        return self.variant.make(space, **options)


def test_every_variant_is_of_a_registered_index() -> None:
    assert set(VARIANTS) <= set(nc.indexes())


def test_a_random_history_gives_the_answers_of_the_oracle(variant: Variant[nc.Matcher], budget: Budget) -> None:
    run_histories(boolean_history(variant.make), variant.share(budget.histories, budget), budget)


@pytest.mark.skipif(current_budget().is_soak, reason="a soak runs more worlds, each with all indexes")
def test_random_worlds_give_the_answers_of_the_oracle(variant: Variant[nc.Matcher], budget: Budget) -> None:
    # Every variant runs other worlds: together those of an index are as many as the budget says.
    run_boolean_worlds(variant.make, variant.share(budget.worlds, budget), seed=ALL_VARIANTS.index(variant))


@pytest.mark.skipif(not current_budget().is_soak, reason="takes long; NEARCAST_SOAK=1 asks for it")
@pytest.mark.parametrize("part", range(SOAK.worlds // WORLDS_OF_A_PART))
def test_all_indexes_live_through_the_worlds_of_a_soak(part: int) -> None:
    # The variants of an index take the parts in turn.
    of_index = [[variant for variant in ALL_VARIANTS if variant.index == name] for name in nc.indexes()]
    makers = [variants[part % len(variants)].make for variants in of_index]
    run_boolean_worlds(makers, WORLDS_OF_A_PART, first=part * WORLDS_OF_A_PART)


def test_answers_are_right_when_every_output_starts_too_small(
    variant: Variant[nc.Matcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearcast.engine.kernel_calls.FIRST_CAPACITY", 1)
    run_boolean_worlds(variant.make, 6, seed=77)
