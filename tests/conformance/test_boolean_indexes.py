"""Every registered boolean index, with its option variants, against the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import nearcast as nc
from nearcast.testing.budget import SOAK, Budget, current_budget
from nearcast.testing.conformance.boolean import BooleanIndexTests
from nearcast.testing.histories.boolean import boolean_history
from nearcast.testing.scenarios.boolean import run_random_worlds

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


@dataclass(frozen=True)
class Variant:
    """An index and the parameters it is made with."""

    index: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        given = ",".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.index}[{given}]" if given else self.index

    def make_matcher(self, space: str = "lonlat", **options: Any) -> nc.Matcher:
        return nc.Matcher(index=self.index, space=space, **options, **self.parameters)

    def share(self, count: int, budget: Budget) -> int:
        """This variant's part of what an index may do; a soak gives every variant the whole."""
        return count if budget.is_soak else -(-count // len(VARIANTS.get(self.index, [{}])))


ALL_VARIANTS = [Variant(name, parameters) for name in nc.indexes() for parameters in VARIANTS.get(name, [{}])]


# The named cases are many: in a usual run each index goes through them as it is by default, and where kernels are compiled once
# more with parameters that make small worlds deep. Random worlds and histories are for every variant in every mode.
NAMED_VARIANTS = [
    Variant(name, parameters)
    for name in nc.indexes()
    for parameters in VARIANTS.get(name, [{}])[: current_budget().named_variants]
]


@pytest.fixture(params=NAMED_VARIANTS, ids=str)
def named_variant(request: pytest.FixtureRequest) -> Variant:
    chosen: Variant = request.param
    return chosen


@pytest.fixture(params=ALL_VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant:
    chosen: Variant = request.param
    return chosen


class TestEveryBooleanIndex(BooleanIndexTests):
    variant: Variant

    @pytest.fixture(autouse=True)
    def _choose(self, named_variant: Variant, budget: Budget) -> None:
        self.variant = named_variant
        self.n_many = budget.many

    def make_matcher(self, space: str = "lonlat", **options: Any) -> nc.Matcher:
        return self.variant.make_matcher(space, **options)


def test_every_variant_is_of_a_registered_index() -> None:
    assert set(VARIANTS) <= set(nc.indexes())


def test_a_random_history_gives_the_answers_of_the_oracle(variant: Variant, budget: Budget) -> None:
    phases = [Phase.generate, Phase.shrink] if budget.is_soak else [Phase.generate]
    n_histories = variant.share(budget.histories, budget)
    limits = settings(max_examples=n_histories, stateful_step_count=budget.history_steps, phases=phases)
    run_state_machine_as_test(boolean_history(variant.make_matcher), settings=limits)


@pytest.mark.skipif(current_budget().is_soak, reason="a soak lives through more worlds, with all indexes side by side")
def test_random_worlds_give_the_answers_of_the_oracle(variant: Variant, budget: Budget) -> None:
    # Every variant lives through other worlds: together those of an index are as many as the budget says.
    run_random_worlds(variant.make_matcher, variant.share(budget.worlds, budget), seed=ALL_VARIANTS.index(variant))


@pytest.mark.skipif(not current_budget().is_soak, reason="takes long; NEARCAST_SOAK=1 asks for it")
@pytest.mark.parametrize("part", range(SOAK.worlds // WORLDS_OF_A_PART))
def test_all_indexes_live_through_the_worlds_of_a_soak(part: int) -> None:
    # The variants of an index take the parts in turn.
    variants = [[variant for variant in ALL_VARIANTS if variant.index == name] for name in nc.indexes()]
    makers = [own[part % len(own)].make_matcher for own in variants]
    run_random_worlds(makers, WORLDS_OF_A_PART, first=part * WORLDS_OF_A_PART)


def test_answers_are_right_when_every_output_starts_too_small(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.engine.kernel_calls.FIRST_CAPACITY", 1)
    run_random_worlds(variant.make_matcher, 6, seed=77)
