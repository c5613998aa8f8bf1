"""Thousands of small random worlds: each is written down with the answers of the oracle, then any number of matchers live it.

Faster than histories, by far: the oracle is asked once for all matchers. What fails names its seed and is repeated alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.subscription import Subscription
from nearcast.testing.comparison.boolean import Comparison, MakeMatcher, check_published, check_rejected
from nearcast.testing.oracles.boolean import Oracle, Pair
from nearcast.testing.scenarios.worlds import WorldMaker

if TYPE_CHECKING:
    from nearcast.boolean.engine import Matcher

_SPACES = ("plane", "lonlat")
_LARGEST_WORLD = 40
_SHARE_SAVED = 0.05


class Step(NamedTuple):
    """One thing that happens: subscriptions come, ids go, messages are published; or, with none of them, save and open."""

    name: str
    subscriptions: Sequence[Subscription] = ()
    gone: Sequence[Id] = ()
    messages: Sequence[Message] = ()
    pairs: Sequence[Pair] = ()
    """What the oracle delivers."""
    known: Mapping[Id, Subscription] = {}
    """Who was subscribed then."""
    rejected: Sequence[int] = ()


class Story(NamedTuple):
    """The life of one world."""

    space: str
    steps: list[Step]


def run_random_worlds(make_matchers: MakeMatcher | Sequence[MakeMatcher], n_worlds: int, seed: int = 0, first: int = 0) -> int:
    """Live through worlds `first` … `first + n_worlds - 1` of a seed with every matcher; returns the deliveries compared.

    A failure names the seed of its world, which `write_story` repeats, and the first wrong pairs.
    """
    makers = make_matchers if isinstance(make_matchers, Sequence) else [make_matchers]
    n_deliveries = 0
    for number in range(first, first + n_worlds):
        story = write_story([seed, number])
        for make_matcher in makers:
            _live_or_tell(story, make_matcher, [seed, number])
            n_deliveries += sum(len(step.pairs) for step in story.steps)
    return n_deliveries


def write_story(seed: Sequence[int]) -> Story:
    """Build, publish, change, publish, perhaps save and open, publish; with the right answers."""
    return _Writer(np.random.default_rng(seed)).write()


class _Writer:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        space = _SPACES[int(rng.integers(2))]
        self._maker = WorldMaker(rng, space)
        self._messages = self._maker.messages(1 + int(rng.integers(_LARGEST_WORLD // 2)))
        self._oracle = Oracle(space)
        self._ids: list[Id] = []
        self._steps: list[Step] = []

    def write(self) -> Story:
        self._subscribe("build")
        self._publish("publish what was built")
        self._replace("replace")
        self._subscribe("insert")
        self._unsubscribe("unsubscribe")
        self._publish("publish after changes")
        if self._rng.random() < _SHARE_SAVED:
            self._steps.append(Step("save and open"))
            self._replace("subscribe again")
            self._publish("publish after opening")
        return Story(self._oracle.space, self._steps)

    def _subscribe(self, name: str) -> None:
        new = self._maker.subscriptions(int(self._rng.integers(_LARGEST_WORLD)))
        self._ids += [s.id for s in new]
        self._file(name, new)

    def _replace(self, name: str) -> None:
        self._file(name, [self._maker.subscription(id) for id in self._some_ids(0.2)])

    def _file(self, name: str, subscriptions: Sequence[Subscription]) -> None:
        if subscriptions:
            self._oracle.subscribe(subscriptions)
            self._steps.append(Step(name, subscriptions=subscriptions, rejected=self._oracle.rejected))

    def _unsubscribe(self, name: str) -> None:
        some = self._some_ids(0.3)
        gone = [*some, *some[-2:], self._maker.new_id("unknown")]
        self._oracle.unsubscribe(gone)
        self._steps.append(Step(name, gone=gone))

    def _publish(self, name: str) -> None:
        pairs = self._oracle.publish(self._messages)
        known = dict(self._oracle.subscriptions)
        self._steps.append(
            Step(name, messages=self._messages, pairs=pairs, known=known, rejected=self._oracle.rejected),
        )

    def _some_ids(self, share: float) -> list[Id]:
        return [id for id, drawn in zip(self._ids, self._rng.random(len(self._ids)).tolist(), strict=True) if drawn < share]


def _live_or_tell(story: Story, make_matcher: MakeMatcher, seed: Sequence[int]) -> None:
    matcher, name = make_matcher(story.space), ""
    try:
        for step in story.steps:
            name = step.name
            matcher = live(step, matcher)
    except Exception as error:
        where = f"{make_matcher}: random world seed={list(seed)}, space={story.space!r}, in step {name!r}"
        raise AssertionError(f"{where}: {error}\n{_first_lonely_failure(make_matcher, story)}") from error


def live(step: Step, matcher: Matcher) -> Matcher:
    """Let it happen to a matcher and compare; returns the one to go on with."""
    if step.subscriptions:
        matcher.subscribe(step.subscriptions)
        check_rejected(matcher, "subscribe", step.rejected)
    elif step.gone:
        matcher.unsubscribe(step.gone)
    elif step.messages:
        check_published(matcher, step.messages, step.pairs, step.rejected, step.known)
    else:
        with TemporaryDirectory(prefix="nearcast-world-") as folder:
            matcher.save(Path(folder) / "saved")
            return type(matcher).open(Path(folder) / "saved")
    return matcher


def _first_lonely_failure(make_matcher: Callable[[str], Matcher], story: Story) -> str:
    """Whether a single subscription with a single message is wrong too: the shortest way to reproduce."""
    subscriptions = [subscription for step in story.steps for subscription in step.subscriptions]
    messages = next(step.messages for step in story.steps if step.messages)
    for subscription in subscriptions:
        for message in messages:
            both = Comparison(make_matcher(story.space), Oracle(story.space))
            try:
                both.subscribe([subscription])
                both.publish([message])
            except Exception as error:  # noqa: BLE001 - a crash is a failure to show as well
                return f"already wrong alone: {subscription!r} with {message!r}: {error!r}"
    return "every subscription is right alone with every message: it takes the history"
