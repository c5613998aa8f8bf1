"""Every registered boolean index, with its option variants, against the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import nearcast as nc
from nearcast.testing.budget import Budget
from nearcast.testing.conformance import BooleanIndexTests
from nearcast.testing.histories import boolean_history, run_random_worlds

# Parameters worth a run of their own; an index that is not named runs with its defaults.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "spatial_first": [{}, {"node_capacity": 4}],
}


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


ALL_VARIANTS = [Variant(name, parameters) for name in nc.indexes() for parameters in VARIANTS.get(name, [{}])]


@pytest.fixture(params=ALL_VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant:
    chosen: Variant = request.param
    return chosen


class TestEveryBooleanIndex(BooleanIndexTests):
    variant: Variant

    @pytest.fixture(autouse=True)
    def _choose(self, variant: Variant, budget: Budget) -> None:
        self.variant = variant
        self.n_many = budget.many

    def make_matcher(self, space: str = "lonlat", **options: Any) -> nc.Matcher:
        return self.variant.make_matcher(space, **options)


def test_every_variant_is_of_a_registered_index() -> None:
    assert set(VARIANTS) <= set(nc.indexes())


def test_a_random_history_gives_the_answers_of_the_oracle(variant: Variant, budget: Budget) -> None:
    phases = [Phase.generate, Phase.shrink] if budget.is_shortening else [Phase.generate]
    limits = settings(max_examples=budget.histories, stateful_step_count=budget.history_steps, phases=phases)
    run_state_machine_as_test(boolean_history(variant.make_matcher), settings=limits)


def test_random_worlds_give_the_answers_of_the_oracle(variant: Variant, budget: Budget) -> None:
    run_random_worlds(variant.make_matcher, budget.worlds, seed=2024)
