"""Random histories of one matcher, compared with the oracle after each publish.

`boolean_history` is a Hypothesis state machine, which shortens what fails; `run_random_worlds` is faster, for thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from nearcast.model.ids import Id
from nearcast.model.message import Message
from nearcast.testing import strategies
from nearcast.testing.comparison import Comparison, MakeMatcher
from nearcast.testing.oracle import Oracle
from nearcast.testing.strategies import Traits
from nearcast.testing.worlds import WorldMaker

_SPACES = ("plane", "lonlat")
_LARGEST_WORLD = 40
_SHARE_SAVED = 0.05


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

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        """Ids may repeat and be unknown."""
        self.both.unsubscribe(data.draw(st.lists(strategies.ids(self.traits.has_text_ids), max_size=6), label="ids"))

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        batch = data.draw(strategies.batches_of_messages(self.traits), label="messages")
        self.both.publish(batch)
        report = self.both.matcher.report
        most = self.both.most_candidates(len(batch))
        assert report.candidates <= most, f"{report.candidates} candidates verified; a scan verifies {most}"

    @rule()
    def save_and_open(self) -> None:
        self.both.save_and_open(Path(self.folder.name) / "saved")


def run_random_worlds(make_matcher: MakeMatcher, n_worlds: int, seed: int = 0) -> int:
    """Live through `n_worlds` small worlds; returns how many deliveries were compared.

    A failure names the seed of its world, which `run_random_world` repeats, and the first wrong pairs.
    """
    return sum(run_random_world(make_matcher, [seed, number]) for number in range(n_worlds))


def run_random_world(make_matcher: MakeMatcher, seed: list[int]) -> int:
    """One world: build, publish, change, publish, perhaps save and open, publish; returns the number of deliveries."""
    rng = np.random.default_rng(seed)
    space = _SPACES[int(rng.integers(2))]
    maker = WorldMaker(rng, space)
    messages = maker.messages(1 + int(rng.integers(_LARGEST_WORLD // 2)))
    both = Comparison(make_matcher(space), Oracle(space))
    steps = _Steps(both, maker, messages)
    try:
        steps.run()
    except Exception as error:
        lonely = _first_lonely_failure(make_matcher, both.oracle, messages)
        raise AssertionError(f"random world seed={seed}, space={space!r}, in step {steps.name!r}: {error}\n{lonely}") from error
    return steps.n_deliveries


class _Steps:
    """What happens in one random world, step by step."""

    def __init__(self, both: Comparison, maker: WorldMaker, messages: list[Message]) -> None:
        self.both = both
        self.maker = maker
        self.rng = maker.rng
        self.messages = messages
        self.name = ""
        self.n_deliveries = 0
        self.known: list[Id] = []

    def run(self) -> None:
        self._do("build", self._subscribe)
        self._do("publish what was built", self._publish)
        self._do("replace", self._replace)
        self._do("insert", self._subscribe)
        self._do("unsubscribe", self._unsubscribe)
        self._do("publish after changes", self._publish)
        if self.rng.random() < _SHARE_SAVED:
            self._do("save and open", self._save_and_open)
            self._do("subscribe again", self._replace)
            self._do("publish after opening", self._publish)

    def _do(self, name: str, step: Callable[[], None]) -> None:
        self.name = name
        step()

    def _subscribe(self) -> None:
        batch = self.maker.subscriptions(int(self.rng.integers(_LARGEST_WORLD)))
        self.known += [s.id for s in batch]
        self.both.subscribe(batch)

    def _replace(self) -> None:
        self.both.subscribe([self.maker.subscription(id) for id in self._some_known(0.2)])

    def _unsubscribe(self) -> None:
        gone = self._some_known(0.3)
        self.both.unsubscribe([*gone, *gone[-2:], self.maker.new_id("unknown")])

    def _publish(self) -> None:
        self.n_deliveries += len(self.both.publish(self.messages))

    def _save_and_open(self) -> None:
        with TemporaryDirectory(prefix="nearcast-world-") as folder:
            self.both.save_and_open(Path(folder) / "saved")

    def _some_known(self, share: float) -> list[Id]:
        return [id for id, drawn in zip(self.known, self.rng.random(len(self.known)).tolist(), strict=True) if drawn < share]


def _first_lonely_failure(make_matcher: MakeMatcher, oracle: Oracle, messages: list[Message]) -> str:
    """Whether a single subscription with a single message is wrong too: the shortest way to reproduce."""
    for subscription in oracle.subscriptions.values():
        for message in messages:
            both = Comparison(make_matcher(oracle.space), Oracle(oracle.space))
            try:
                both.subscribe([subscription])
                both.publish([message])
            except Exception as error:  # noqa: BLE001 - a crash is a failure to show as well
                return f"already wrong alone: {subscription!r} with {message!r}: {error!r}"
    return "every subscription is right alone with every message: it takes the history"
