"""Random histories of one matcher, compared with the oracle after each publish; Hypothesis shortens what fails."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nearcast.testing import strategies
from nearcast.testing.comparison.boolean import Comparison, MakeMatcher
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.strategies import Traits


def boolean_history(make_matcher: MakeMatcher) -> type[RuleBasedStateMachine]:
    """A state machine that subscribes, replaces, unsubscribes, publishes, saves and opens at random."""

    class BooleanHistory(_History):
        def new_matcher(self, space: str) -> Any:
            return make_matcher(space)

    return BooleanHistory


class _History(RuleBasedStateMachine):
    """The rules; the pool of ids is small, so that subscribing often replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(prefix="nearcast-history-")
        self.traits = Traits()
        self.is_saved = False

    def new_matcher(self, space: str) -> Any:
        raise NotImplementedError

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(traits=strategies.traits())
    def begin(self, traits: Traits) -> None:
        self.traits = traits
        self.both = Comparison(self.new_matcher(traits.space), Oracle(traits.space))

    @rule(data=st.data())
    def subscribe(self, data: st.DataObject) -> None:
        """Ids may repeat within the batch (rejected) and be known (replaced)."""
        batch = data.draw(st.lists(strategies.subscriptions(self.traits), max_size=10), label="subscriptions")
        self.both.subscribe(batch)
        self.is_saved = False

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        """Ids may repeat and be unknown."""
        self.both.unsubscribe(data.draw(st.lists(strategies.ids(self.traits.has_text_ids), max_size=6), label="ids"))
        self.is_saved = False

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        batch = data.draw(strategies.batches_of_messages(self.traits), label="messages")
        self.both.publish(batch)
        report = self.both.matcher.report
        most = self.both.most_candidates(len(batch))
        assert report.candidates <= most, f"{report.candidates} candidates verified; a scan verifies {most}"

    # Not again and again: a history should be about what happens in between.
    @precondition(lambda self: not self.is_saved)
    @rule()
    def save_and_open(self) -> None:
        self.both.save_and_open(Path(self.folder.name) / "saved")
        self.is_saved = True
