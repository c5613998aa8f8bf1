"""A seed always gives the same scenario, a wrong engine fails and its scenario is shrunk, and what is compared is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import nearcast as nc
from nearcast.testing.budget import TALLY, Tally
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.scenarios.boolean import BooleanComparison, run_boolean_worlds, write_boolean_scenario
from nearcast.testing.scenarios.moving import run_moving_worlds, write_moving_scenario
from nearcast.testing.scenarios.ranked import run_ranked_worlds, write_ranked_scenario
from nearcast.testing.scenarios.safe_regions import run_safe_region_worlds, write_safe_region_scenario
from nearcast.testing.scenarios.scenario import Scenario, name_of, run, shrink

Write = Callable[[Sequence[int]], Scenario]
WRITERS: dict[str, Write] = {
    "boolean": write_boolean_scenario,
    "moving": write_moving_scenario,
    "ranked": write_ranked_scenario,
    "safe regions": partial(write_safe_region_scenario, space="lonlat"),
}


def sizes(write: Write, n_seeds: int = 20) -> dict[str, int]:
    """Actions, rows in them, calls with tables, changes and rejected rows of the first scenarios of seed 0."""
    counts: Counter[str] = Counter()
    for number in range(n_seeds):
        for action in write([0, number]).actions:
            batch = action.arguments[0] if action.arguments else ()
            rows = len(batch) if isinstance(batch, (list, dict)) else 0
            counts.update(actions=1, rows=rows, tables=action.as_table)
            counts.update(changes=len(action.answer.changes), rejected=len(action.answer.rejected))
    return dict(counts)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("boolean", {"actions": 118, "rows": 1522, "tables": 0, "changes": 2605, "rejected": 0}),
        ("moving", {"actions": 265, "rows": 1367, "tables": 39, "changes": 1375, "rejected": 40}),
        ("ranked", {"actions": 310, "rows": 1701, "tables": 72, "changes": 11827, "rejected": 87}),
        ("safe regions", {"actions": 999, "rows": 5754, "tables": 0, "changes": 74, "rejected": 0}),
    ],
)
def test_a_seed_gives_the_scenario_it_always_gave(kind: str, expected: dict[str, int]) -> None:
    assert sizes(WRITERS[kind]) == expected


class Forgetful(nc.Matcher):
    """A matcher that loses every delivery of messages with three keywords."""

    def publish(self, messages: Any) -> list[nc.Delivery]:
        lost = {message.id for message in messages if len(message.keywords) == 3}
        return [delivery for delivery in super().publish(messages) if delivery.message_id not in lost]


def forgetful(space: str = "lonlat") -> nc.Matcher:
    return Forgetful("scan", space)


def test_a_wrong_matcher_fails_and_the_message_shows_one_subscription_and_one_message() -> None:
    with pytest.raises(
        AssertionError, match=r"^forgetful: boolean world seed=\[0, \d+\]: \d+ deliveries expected, \d+ found"
    ) as caught:
        run_boolean_worlds(forgetful, 5)
    text = str(caught.value)
    shrunk = text[text.index("shrunk to") :]
    assert shrunk.count("Subscription(") == shrunk.count("Message(") == 1
    assert [line.split("(")[0].strip() for line in shrunk.splitlines()[1:]] == ["0. subscribe", "1. publish"]


class Silent(nc.MovingMatcher):
    """A moving matcher that moves and does not say so."""

    def move(self, moves: Any) -> list[nc.Change]:
        super().move(moves)
        return []


def test_a_wrong_moving_matcher_fails() -> None:
    with pytest.raises(AssertionError, match=r"Silent.*: moving world seed=\[0, \d+\]") as caught:
        run_moving_worlds(partial(Silent, "moving_scan"), 30)
    shrunk = str(caught.value).split("shrunk to")[1]
    assert shrunk.count("move") == shrunk.count("Subscription(") == shrunk.count("Message(") == 1


class Lagging(nc.Ranker):
    """A ranker that does not advance its time."""

    def advance(self, now: Any) -> list[nc.RankChange]:
        return []


def test_a_wrong_ranker_fails() -> None:
    with pytest.raises(AssertionError, match=r"Lagging.*: ranked world seed=\[0, \d+\]: \d+ changes expected") as caught:
        run_ranked_worlds(partial(Lagging, index="ranked_scan"), 20)
    shrunk = str(caught.value).split("shrunk to")[1]
    assert "advance(" in shrunk
    assert shrunk.count("Message(") == 1


class Careless(nc.MovingMatcher):
    """A moving matcher whose safe regions are everywhere."""

    def safe_regions(self, ids: Any) -> Any:
        return {id: nc.Box(-180, -90, 180, 90) for id in super().safe_regions(ids)}


def test_a_safe_region_that_is_too_large_is_found() -> None:
    def make_matcher(space: str, positions: Any) -> nc.MovingMatcher:
        return Careless("grid_space_first", space, safe_region="cells", positions=positions)

    with pytest.raises(AssertionError, match=r"client \d+ has .*; where it is now, .* is right"):
        run_safe_region_worlds("plane", make_matcher, 3)


def test_an_engine_that_raises_is_shrunk_too() -> None:
    def crash(space: str) -> Any:
        raise ValueError("no engine")

    scenario = write_boolean_scenario([0, 0])
    assert shrink(scenario, crash).actions == []
    with pytest.raises(AssertionError, match="no engine"):
        run_boolean_worlds(crash, 1)  # type: ignore[arg-type]


def test_a_right_scenario_is_not_shrunk() -> None:
    scenario = write_boolean_scenario([0, 1])
    assert shrink(scenario, nc.Matcher) == scenario
    assert run(scenario, nc.Matcher)["actions"] == len(scenario.actions)


@pytest.mark.parametrize(
    ("report", "complaint"),
    [
        ({"matches": 2}, "report.matches is 2 for 1 deliveries"),
        ({"candidates": 0}, "1 matches out of only 0 candidates"),
        ({"rejected": [(7, "no reason")]}, "rejected .* expected rows"),
    ],
)
def test_wrong_reports_are_found(report: dict[str, Any], complaint: str) -> None:
    engine: Any = SimpleNamespace(
        report=nc.MatchReport(**{"messages": 1, "matches": 1, "candidates": 1, **report}),
        publish=lambda messages: [nc.Delivery(1, message.id) for message in messages],
    )
    both = BooleanComparison(engine, Oracle("plane"))
    both.oracle.subscribe([nc.Subscription(1, ["a"])])
    with pytest.raises(AssertionError, match=complaint):
        both.publish([nc.Message(1, ["a"], (0, 0))])


def test_engines_are_named_by_their_variant_or_their_options() -> None:
    class Variant:
        def make(self) -> None: ...

        def __str__(self) -> str:
            return "index[depth=3]"

    assert name_of(Variant().make) == "index[depth=3]"
    assert name_of(partial(forgetful, space="plane")) == "forgetful[space=plane]"


def test_what_is_compared_is_counted() -> None:
    TALLY.clear()
    counts = run_boolean_worlds([fast, scanning], 2)
    assert counts["worlds"] == TALLY.counts["boolean"]["worlds"] == 2
    assert TALLY.counts["boolean"]["deliveries"] == counts["deliveries"] > 0
    assert TALLY.configurations["boolean"] == {"fast", "scanning"}
    total = Tally()
    for _ in range(2):
        total.merge(TALLY)
    assert total.counts["boolean"]["worlds"] == 4
    (line,) = total.lines()
    assert line.startswith("boolean: 2 configurations, ")
    assert "4 worlds" in line


def scanning(space: str = "lonlat") -> nc.Matcher:
    return nc.Matcher("scan", space)


def fast(space: str = "lonlat") -> nc.Matcher:
    return nc.Matcher(space=space)
