"""A matcher and the oracle side by side: everything is done to both, and every answer is compared.

Deliveries are compared as a list without order: one too many is as wrong as one missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Region
from nearcast.model.subscription import Subscription
from nearcast.testing.oracles.boolean import Oracle, Pair

if TYPE_CHECKING:
    from nearcast.boolean.engine import Matcher

_SHOWN = 3


class MakeMatcher(Protocol):
    """How the tests get an empty matcher with the index under test."""

    def __call__(self, space: str = "lonlat") -> Matcher: ...


class Comparison:
    """Does everything twice and raises AssertionError where the matcher departs from the oracle."""

    def __init__(self, matcher: Matcher, oracle: Oracle) -> None:
        self.matcher = matcher
        self.oracle = oracle

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        self.matcher.subscribe(subscriptions)
        self.oracle.subscribe(subscriptions)
        check_rejected(self.matcher, "subscribe", self.oracle.rejected)

    def unsubscribe(self, ids: Sequence[Id]) -> None:
        self.matcher.unsubscribe(ids)
        self.oracle.unsubscribe(ids)

    def publish(self, messages: Sequence[Message]) -> set[Pair]:
        """The pairs both agree on."""
        expected = self.oracle.publish(messages)
        check_published(self.matcher, messages, expected, self.oracle.rejected, self.oracle.subscriptions)
        return set(expected)

    def save_and_open(self, folder: Path) -> None:
        """Goes on with the matcher that was saved and opened again."""
        self.matcher.save(folder)
        self.matcher = type(self.matcher).open(folder)

    def most_candidates(self, n_messages: int) -> int:
        """What a scan would verify: every clause of every subscription, once per box that covers its region."""
        oracle = self.oracle
        n_clauses = sum(
            len(s.clauses(oracle.analysis)) * _n_covering_boxes(s.region, oracle.space) for s in oracle.subscriptions.values()
        )
        return n_clauses * n_messages


def check_rejected(matcher: Matcher, call: str, expected: Sequence[int]) -> None:
    """AssertionError unless the last call left out exactly these rows."""
    rows = [row for row, _ in matcher.report.rejected]
    if sorted(rows) != list(expected):
        raise AssertionError(f"{call} rejected {matcher.report.rejected!r}; expected rows {expected!r}")


def check_published(
    matcher: Matcher,
    messages: Sequence[Message],
    expected: Sequence[Pair],
    rejected: Sequence[int],
    known: Mapping[Id, Subscription],
) -> None:
    """Publish; AssertionError unless exactly these pairs are delivered and exactly these rows rejected."""
    found = [Pair(d.subscription_id, d.message_id) for d in matcher.publish(messages)]
    compare_pairs(found, expected, known, messages)
    check_rejected(matcher, "publish", rejected)
    report = matcher.report
    if report.matches != len(expected):
        raise AssertionError(f"report.matches is {report.matches} for {len(expected)} deliveries")
    if report.candidates < report.matches:
        raise AssertionError(f"report: {report.matches} matches out of only {report.candidates} candidates")


@lru_cache(maxsize=4096)
def _n_covering_boxes(where: Region | None, space: str) -> int:
    # Cached, since a history asks for the same regions after each step.
    return 1 if where is None else len(where.covering_boxes(space))


def compare_pairs(
    found: Iterable[Pair], expected: Iterable[Pair], known: Mapping[Id, Subscription], messages: Sequence[Message]
) -> None:
    """AssertionError that names the first pairs that differ, with the subscription and the message of each."""
    found_times, expected_times = Counter(found), Counter(expected)
    if found_times != expected_times:
        missing, extra = expected_times - found_times, found_times - expected_times
        lines = [f"{sum(expected_times.values())} deliveries expected, {sum(found_times.values())} found"]
        for what, pairs in (("missing", missing), ("not expected, or once too often", extra)):
            lines += [f"  {what}: {_described(pair, known, messages)}" for pair in list(pairs)[:_SHOWN]]
        raise AssertionError("\n".join(lines))
    odd = [pair for pair in found_times if not all(type(id) in (int, str) for id in pair)]
    if odd:
        raise AssertionError(f"ids changed their type: {odd[:_SHOWN]!r}")


def _described(pair: Pair, known: Mapping[Id, Subscription], messages: Sequence[Message]) -> str:
    message = next((m for m in messages if m.id == pair.message_id), None)
    return f"{known.get(pair.subscription_id, pair.subscription_id)!r} <- {message!r}"
