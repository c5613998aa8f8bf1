"""Boolean scenarios: a matcher compared with its oracle, and random worlds that are built, changed and matched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Region
from nearcast.model.subscription import Subscription
from nearcast.testing.oracles.boolean import Oracle, Pair
from nearcast.testing.scenarios.scenario import (
    SAVE_AND_OPEN,
    Action,
    Comparison,
    Run,
    Scenario,
    ScenarioWriter,
    compare_changes,
    run_worlds,
)
from nearcast.testing.scenarios.worlds import SPACES, WorldMaker

if TYPE_CHECKING:
    from nearcast.boolean.engine import Matcher

_LARGEST_WORLD = 40
_SHARE_SAVED = 0.05


class MakeMatcher(Protocol):
    """How the tests get an empty matcher with the index under test."""

    def __call__(self, space: str = "lonlat") -> Matcher: ...


class BooleanRun(Run["Matcher"]):
    """A matcher that goes through a scenario."""

    kind = "boolean"
    change_type = Pair
    changes_name = "deliveries"

    def __init__(self, engine: Matcher) -> None:
        super().__init__(engine)
        self._subscriptions: dict[Id, Subscription] = {}

    @staticmethod
    def make_oracle(**options: Any) -> Oracle:
        return Oracle(**options)

    def call(self, action: Action) -> None:
        if action.name == "subscribe":
            self._subscriptions.update((s.id, s) for s in action.arguments[0])
        super().call(action)

    def check_changes(self, action: Action, changes: Sequence[Any]) -> None:
        if action.name != "publish":
            return
        compare_pairs(changes, action.answer.changes, self._subscriptions, action.arguments[0])
        report = self.engine.report
        if report.matches != len(changes):
            raise AssertionError(f"report.matches is {report.matches} for {len(changes)} deliveries")
        if report.candidates < report.matches:
            raise AssertionError(f"report: {report.matches} matches out of only {report.candidates} candidates")


def compare_pairs(
    pairs: Iterable[Pair], expected: Iterable[Pair], subscriptions: Mapping[Id, Subscription], messages: Sequence[Message]
) -> None:
    """AssertionError that shows the first pairs that differ, with the subscription and the message of each."""
    by_id = {message.id: message for message in messages}

    def describe(pair: Pair) -> str:
        return f"{subscriptions.get(pair.subscription_id, pair.subscription_id)!r} <- {by_id.get(pair.message_id)!r}"

    pairs = list(pairs)
    compare_changes(pairs, expected, "deliveries", describe)
    if not all(type(id) in (int, str) for pair in pairs for id in pair):
        raise AssertionError(f"ids changed their type: {pairs!r}")


class BooleanComparison(Comparison["Matcher", Oracle, Pair]):
    """A matcher and its oracle."""

    run_class = BooleanRun

    @property
    def matcher(self) -> Matcher:
        return self.run.engine

    def most_candidates(self, n_messages: int) -> int:
        """How many candidates a scan verifies: every clause of every subscription, once per box that covers its region."""
        oracle = self.oracle
        n_clauses = sum(
            len(s.clauses(oracle.analysis)) * _n_covering_boxes(s.region, oracle.space) for s in oracle.subscriptions.values()
        )
        return n_clauses * n_messages


@lru_cache(maxsize=4096)
def _n_covering_boxes(region: Region | None, space: str) -> int:
    # Cached, since a history asks for the same regions after each step.
    return 1 if region is None else len(region.covering_boxes(space))


def run_boolean_worlds(
    make_matchers: MakeMatcher | Sequence[MakeMatcher], n_worlds: int, seed: int = 0, first: int = 0
) -> Counter[str]:
    """`run_worlds` of `write_boolean_scenario`."""
    return run_worlds(write_boolean_scenario, make_matchers, n_worlds, seed, first)


def write_boolean_scenario(seed: Sequence[int]) -> Scenario:
    """Build, publish, change, publish, perhaps save and open, publish. The same scenario for the same seed."""
    return _Writer(np.random.default_rng(seed)).write()


class _Writer(ScenarioWriter):
    def __init__(self, rng: np.random.Generator) -> None:
        space = SPACES[int(rng.integers(2))]
        super().__init__(BooleanRun, {"space": space})
        self.maker = WorldMaker(rng, space)
        self._messages = self.maker.messages(1 + self.maker.below(_LARGEST_WORLD // 2))
        self._ids: list[Id] = []

    def write(self) -> Scenario:
        self._subscribe()
        self._publish()
        self._replace()
        self._subscribe()
        self._unsubscribe()
        self._publish()
        if self.maker.chance(_SHARE_SAVED):
            self.add(SAVE_AND_OPEN)
            self._replace()
            self._publish()
        return self.scenario()

    def _subscribe(self) -> None:
        new = self.maker.subscriptions(self.maker.below(_LARGEST_WORLD))
        self._ids += [s.id for s in new]
        self._add_subscriptions(new)

    def _replace(self) -> None:
        self._add_subscriptions([self.maker.subscription(id) for id in self.maker.some(self._ids, 0.2)])

    def _add_subscriptions(self, subscriptions: list[Subscription]) -> None:
        if subscriptions:
            self.add("subscribe", subscriptions)

    def _unsubscribe(self) -> None:
        ids = self.maker.some(self._ids, 0.3)
        self.add("unsubscribe", [*ids, *ids[-2:], self.maker.new_id("unknown")])

    def _publish(self) -> None:
        self.add("publish", self._messages)
