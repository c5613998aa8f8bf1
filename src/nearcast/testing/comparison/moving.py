"""A moving matcher and its oracle side by side: everything is done to both; changes and all results are compared after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Region
from nearcast.model.subscription import Subscription
from nearcast.testing.oracles.moving import MovingOracle, Step

if TYPE_CHECKING:
    from nearcast.moving.engine import MovingMatcher

_SHOWN = 3
_ASKED_ALONE = 1


class MakeMovingMatcher(Protocol):
    """How the tests get an empty matcher with the index under test."""

    def __call__(self, space: str = "lonlat") -> MovingMatcher: ...


class MovingComparison:
    """Does everything twice and raises AssertionError where the matcher departs from the oracle."""

    def __init__(self, matcher: MovingMatcher, oracle: MovingOracle) -> None:
        self.matcher = matcher
        self.oracle = oracle

    def subscribe(self, subscriptions: Sequence[Subscription]) -> set[Step]:
        return self._same(self.matcher.subscribe(subscriptions), self.oracle.subscribe(subscriptions))

    def unsubscribe(self, ids: Sequence[Id]) -> None:
        self.matcher.unsubscribe(ids)
        self.oracle.unsubscribe(ids)
        self._same([], [])

    def publish(self, messages: Sequence[Message]) -> set[Step]:
        return self._same(self.matcher.publish(messages), self.oracle.publish(messages))

    def move(self, moves: Mapping[Id, Region | None]) -> set[Step]:
        return self._same(self.matcher.move(moves), self.oracle.move(moves))

    def advance(self, now: float) -> set[Step]:
        return self._same(self.matcher.advance(now), self.oracle.advance(now))

    def save_and_open(self, folder: Path) -> None:
        """Goes on with the matcher that was saved and opened again."""
        self.matcher.save(folder)
        self.matcher = type(self.matcher).open(folder)
        compare_results(self.matcher, self.oracle.results())

    def _same(self, found: Iterable[Any], expected: Sequence[Step]) -> set[Step]:
        compare_changes(found, expected)
        compare_rejected(self.matcher, self.oracle.rejected)
        compare_results(self.matcher, self.oracle.results())
        return set(expected)


def compare_changes(found: Iterable[Any], expected: Sequence[Step]) -> None:
    """AssertionError unless exactly these changes are reported, each once."""
    found_times = Counter(Step(c.subscription_id, c.message_id, c.change) for c in found)
    expected_times = Counter(expected)
    if found_times != expected_times:
        missing, extra = expected_times - found_times, found_times - expected_times
        lines = [f"{sum(expected_times.values())} changes expected, {sum(found_times.values())} found"]
        for what, steps in (("missing", missing), ("not expected, or once too often", extra)):
            lines += [f"  {what}: {step}" for step in list(steps)[:_SHOWN]]
        raise AssertionError("\n".join(lines))


def compare_rejected(matcher: MovingMatcher, expected: Sequence[int]) -> None:
    """AssertionError unless the last call left out exactly these rows."""
    rows = [row for row, _ in matcher.report.rejected]
    if rows != list(expected):
        raise AssertionError(f"rejected {matcher.report.rejected!r}; expected rows {expected!r}")


def compare_results(matcher: MovingMatcher, expected: Mapping[Id, set[Id]]) -> None:
    """AssertionError unless every subscription has exactly its result."""
    rows = matcher.current_table()
    pairs = list(zip(rows["subscription_id"].to_pylist(), rows["message_id"].to_pylist(), strict=True))
    if len(set(pairs)) < len(pairs):
        raise AssertionError("a message stands twice in a result")
    found: dict[Id, set[Id]] = {id: set() for id in expected}
    for id, message in pairs:
        found.setdefault(id, set()).add(message)
    for id, result in found.items():
        right = expected.get(id, set())
        if result != right:
            raise AssertionError(f"the result of {id!r} lacks {right - result!r} and has {result - right!r} too many")
    for id in list(expected)[:_ASKED_ALONE]:
        if matcher.current(id) != expected[id]:
            raise AssertionError(f"the result of {id!r} is {matcher.current(id)!r} when asked for alone")
