"""Random histories of one moving matcher, compared with the oracle after each step; Hypothesis shortens what fails."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nearcast.model.message import Message
from nearcast.testing import strategies
from nearcast.testing.comparison.moving import MakeMovingMatcher, MovingComparison
from nearcast.testing.oracles.moving import MovingOracle
from nearcast.testing.strategies import Traits

_TIMES = st.one_of(st.none(), st.integers(0, 20).map(float))


def moving_history(make_matcher: MakeMovingMatcher) -> type[RuleBasedStateMachine]:
    """A state machine that subscribes, publishes, moves, lets time pass, unsubscribes, saves and opens at random."""

    class MovingHistory(_History):
        def new_matcher(self, space: str) -> Any:
            return make_matcher(space)

    return MovingHistory


class _History(RuleBasedStateMachine):
    """The rules; the pools of ids are small, so that subscribing often replaces and messages often have the id of others."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(prefix="nearcast-moving-")
        self.traits = Traits()
        self.is_saved = False

    def new_matcher(self, space: str) -> Any:
        raise NotImplementedError

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(traits=strategies.traits())
    def begin(self, traits: Traits) -> None:
        self.traits = traits
        self.both = MovingComparison(self.new_matcher(traits.space), MovingOracle(traits.space))

    @rule(data=st.data())
    def subscribe(self, data: st.DataObject) -> None:
        self.both.subscribe(data.draw(st.lists(strategies.subscriptions(self.traits), max_size=8), label="subscriptions"))
        self.is_saved = False

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        self.both.unsubscribe(data.draw(st.lists(strategies.ids(self.traits.has_text_ids), max_size=4), label="ids"))
        self.is_saved = False

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        drawn = data.draw(st.lists(strategies.messages(self.traits), max_size=8), label="messages")
        batch = []
        for message in drawn:
            time = data.draw(_TIMES)
            life = data.draw(st.one_of(st.none(), st.integers(1, 9).map(float)))
            expires = None if life is None else (time or 0.0) + life
            batch.append(Message(message.id, message.keywords, message.location, time=time, expires=expires))
        self.both.publish(batch)
        self.is_saved = False

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        ids, where = strategies.ids(self.traits.has_text_ids), strategies.regions(self.traits.space)
        self.both.move(data.draw(st.dictionaries(ids, where, max_size=6), label="moves"))
        self.is_saved = False

    @rule(now=st.integers(0, 30))
    def advance(self, now: int) -> None:
        self.both.advance(float(now))

    @precondition(lambda self: not self.is_saved)
    @rule()
    def save_and_open(self) -> None:
        self.both.save_and_open(Path(self.folder.name) / "saved")
        self.is_saved = True
