"""Indexes with the parameters that are worth a run of their own, as conformance tests take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from nearcast.testing.budget import Budget

EngineT = TypeVar("EngineT")
Parameters = Mapping[str, Sequence[Mapping[str, Any]]]
"""By index; one that is not listed runs with its defaults."""


@dataclass(frozen=True)
class Variant(Generic[EngineT]):
    """An index of a kind of engine, and the parameters it is made with."""

    engine: Callable[..., EngineT]
    index: str
    parameters: Mapping[str, Any]
    n_of_index: int
    """Variants of this index."""

    def __str__(self) -> str:
        return self.index + listed(self.parameters)

    def make(self, space: str = "lonlat", **options: Any) -> EngineT:
        """An empty engine."""
        return self.engine(index=self.index, space=space, **options, **self.parameters)

    def share(self, count: int, budget: Budget) -> int:
        """This variant's part of what an index may do; a soak gives every variant the whole."""
        return count if budget.is_soak else -(-count // self.n_of_index)


def listed(parameters: Mapping[str, Any]) -> str:
    """Parameters as they stand in the id of a test."""
    text = ",".join(f"{name}={value}" for name, value in parameters.items())
    return f"[{text}]" if text else ""


def variants_of(
    engine: Callable[..., EngineT], indexes: Iterable[str], parameters: Parameters, most: int | None = None
) -> list[Variant[EngineT]]:
    """All variants of these indexes, or the first `most` of each."""
    return [
        Variant(engine, index, values, len(parameters.get(index, [{}])))
        for index in indexes
        for values in parameters.get(index, [{}])[:most]
    ]


def run_histories(history: type[RuleBasedStateMachine], n_histories: int, budget: Budget) -> None:
    """Hypothesis histories of one engine; a failing one is shrunk in a soak only, since that takes minutes."""
    phases = [Phase.generate, Phase.shrink] if budget.is_soak else [Phase.generate]
    limits = settings(max_examples=n_histories, stateful_step_count=budget.history_steps, phases=phases)
    run_state_machine_as_test(history, settings=limits)
