"""Hypothesis histories: random calls of one engine, compared with the oracle after each. Hypothesis shrinks what fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nearcast.testing import strategies
from nearcast.testing.budget import TALLY
from nearcast.testing.scenarios.boolean import BooleanComparison, MakeMatcher
from nearcast.testing.scenarios.moving import MakeMovingMatcher, MovingComparison
from nearcast.testing.scenarios.ranked import MakeRanker, RankedComparison
from nearcast.testing.scenarios.scenario import Comparison, name_of
from nearcast.testing.strategies import Traits


def boolean_history(make_matcher: MakeMatcher) -> type[RuleBasedStateMachine]:
    """A state machine that subscribes, replaces, unsubscribes, publishes, saves and opens at random."""
    return type("BooleanHistory", (_BooleanHistory,), {"make_engine": staticmethod(make_matcher)})


def moving_history(make_matcher: MakeMovingMatcher) -> type[RuleBasedStateMachine]:
    """As `boolean_history`; it also moves subscriptions and advances the time."""
    return type("MovingHistory", (_MovingHistory,), {"make_engine": staticmethod(make_matcher)})


def ranked_history(make_ranker: MakeRanker) -> type[RuleBasedStateMachine]:
    """As `boolean_history`; it also advances the time and refreshes the weights of words."""
    return type("RankedHistory", (_RankedHistory,), {"make_engine": staticmethod(make_ranker)})


class _History(RuleBasedStateMachine):
    """The rules of all kinds. Ids are few, so that subscribing often replaces, and ids of messages repeat."""

    make_engine: ClassVar[Callable[..., Any]]
    comparison: ClassVar[type[Comparison[Any, Any, Any]]]

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(prefix="nearcast-history-")
        self.traits = Traits()
        self.is_saved = False

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(data=st.data(), traits=strategies.traits())
    def begin(self, data: st.DataObject, traits: Traits) -> None:
        self.traits = traits
        options = data.draw(self.options(), label="options")
        run_class = self.comparison.run_class
        self.both = self.comparison(self.make_engine(**options), run_class.make_oracle(**options))
        TALLY.add(run_class.kind, histories=1)
        TALLY.add_configuration(run_class.kind, name_of(self.make_engine))

    @rule(data=st.data())
    def subscribe(self, data: st.DataObject) -> None:
        """Ids may repeat within the batch (rejected) and be known (replaced)."""
        self.both.subscribe(data.draw(st.lists(self.subscriptions(), max_size=10), label="subscriptions"))
        self.is_saved = False

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        """Ids may repeat and be unknown."""
        self.both.unsubscribe(data.draw(st.lists(strategies.ids(self.traits.has_text_ids), max_size=6), label="ids"))
        self.is_saved = False

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        batch = data.draw(self.batches(), label="messages")
        self.both.publish(batch)
        self.check_published(len(batch))
        self.is_saved = False

    # Not twice in a row: a history should be about what happens in between.
    @precondition(lambda self: not self.is_saved)
    @rule()
    def save_and_open(self) -> None:
        self.both.save_and_open(Path(self.folder.name) / "saved")
        self.is_saved = True

    def options(self) -> st.SearchStrategy[dict[str, Any]]:
        """What the engine and the oracle are made with."""
        return st.just({"space": self.traits.space})

    def subscriptions(self) -> st.SearchStrategy[Any]:
        return strategies.subscriptions(self.traits)

    def batches(self) -> st.SearchStrategy[list[Any]]:
        return st.lists(strategies.timed_messages(self.traits), max_size=8)

    def check_published(self, n_messages: int) -> None:
        """What else must hold after publishing."""


class _BooleanHistory(_History):
    comparison = BooleanComparison

    def batches(self) -> st.SearchStrategy[list[Any]]:
        return strategies.batches_of_messages(self.traits)

    def check_published(self, n_messages: int) -> None:
        assert isinstance(self.both, BooleanComparison)
        candidates, most = self.both.matcher.report.candidates, self.both.most_candidates(n_messages)
        assert candidates <= most, f"{candidates} candidates verified; a scan verifies {most}"


class _MovingHistory(_History):
    comparison = MovingComparison

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        ids, regions = strategies.ids(self.traits.has_text_ids), strategies.regions(self.traits.space)
        self.both.do("move", data.draw(st.dictionaries(ids, regions, max_size=6), label="moves"))
        self.is_saved = False

    @rule(now=st.integers(0, 30))
    def advance(self, now: int) -> None:
        self.both.do("advance", float(now))


class _RankedHistory(_History):
    comparison = RankedComparison

    def options(self) -> st.SearchStrategy[dict[str, Any]]:
        return strategies.ranked_options(self.traits)

    def subscriptions(self) -> st.SearchStrategy[Any]:
        return strategies.ranked_subscriptions(self.traits)

    def batches(self) -> st.SearchStrategy[list[Any]]:
        return st.lists(strategies.arriving_messages(self.traits), max_size=8)

    @rule(now=st.integers(0, 30))
    def advance(self, now: int) -> None:
        self.both.do("advance", float(now))

    @rule(data=st.data())
    def refresh_idf(self, data: st.DataObject) -> None:
        idf, n_documents = data.draw(strategies.document_frequencies(self.traits), label="idf")
        self.both.do("refresh_idf", idf, n_documents)
        self.is_saved = False
