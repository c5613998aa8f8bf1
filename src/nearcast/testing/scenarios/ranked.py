"""Ranked scenarios: a ranker compared with its oracle, and random worlds with ties, late messages and both kinds of window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.normalise import Keyword
from nearcast.model.regions import Box
from nearcast.model.subscription import RankedSubscription
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.testing.oracles.ranked import Lists, RankedOracle, RankStep
from nearcast.testing.scenarios.scenario import SAVE_AND_OPEN, Comparison, Run, Scenario, ScenarioWriter, Tables, run_worlds
from nearcast.testing.scenarios.worlds import (
    NUMBERS,
    SPACES,
    WORDS,
    WorldMaker,
    message_table,
    ranked_subscription_table,
)

if TYPE_CHECKING:
    from nearcast.ranked.engine import Ranker

_STEPS = 14
_LARGEST = 16
_WEIGHTS = (0.0, 0.25, 0.5, 0.5, 0.9, 1.0)


class MakeRanker(Protocol):
    """How the tests get an empty ranker with the index under test; `options` are those of `Ranker` itself."""

    def __call__(self, **options: Any) -> Ranker: ...


def _message_table(messages: Sequence[Message]) -> pa.Table:
    return message_table(messages, as_points=all(isinstance(m.location, tuple) for m in messages), times=("time",))


class RankedRun(Run["Ranker"]):
    """A ranker that goes through a scenario; scores are compared to the last bit, and all lists after each action."""

    kind = "ranked"
    change_type = RankStep
    tables: ClassVar[Tables] = {
        "subscribe": ranked_subscription_table,
        "publish": _message_table,
    }

    @staticmethod
    def make_oracle(**options: Any) -> RankedOracle:
        is_net = options.pop("changes", "tick") == "net"
        return RankedOracle(**options, is_net=is_net)

    def check_results(self, results: Mapping[Id, list[tuple[Id, float]]]) -> None:
        rows = self.engine.top_table()
        columns = [rows[name].to_pylist() for name in ("subscription_id", "message_id", "score")]
        lists: Lists = {id: [] for id in results}
        for id, message, score in zip(*columns, strict=True):
            lists.setdefault(id, []).append((message, score))
        for id, best in lists.items():
            if best != results.get(id, []):
                raise AssertionError(f"the best of {id!r} are {best!r}; expected {results.get(id, [])!r}")
        for id in list(results)[:1]:
            if list(self.engine.top(id)) != results[id]:
                raise AssertionError(f"the best of {id!r} are {self.engine.top(id)!r} when asked for alone")


class RankedComparison(Comparison["Ranker", RankedOracle, RankStep]):
    """A ranker and its oracle."""

    run_class = RankedRun

    @property
    def ranker(self) -> Ranker:
        return self.run.engine

    def advance(self, now: float) -> set[RankStep]:
        return self.do("advance", now)

    def refresh_idf(self, idf: Mapping[Keyword, int] | None, n_documents: int = 0) -> set[RankStep]:
        return self.do("refresh_idf", idf, n_documents)


def run_ranked_worlds(
    make_rankers: MakeRanker | Sequence[MakeRanker], n_worlds: int, seed: int = 0, first: int = 0
) -> Counter[str]:
    """`run_worlds` of `write_ranked_scenario`."""
    return run_worlds(write_ranked_scenario, make_rankers, n_worlds, seed, first)


def write_ranked_scenario(seed: Sequence[int]) -> Scenario:
    """The same scenario for the same seed."""
    rng = np.random.default_rng(seed)
    maker = WorldMaker(rng, SPACES[int(rng.integers(2))])
    maker.is_plain = True
    return _Writer(maker, _draw_options(maker)).write()


def _draw_options(maker: WorldMaker) -> dict[str, Any]:
    extent = maker.step * maker.span if maker.space == "plane" else 111_000.0 * maker.span
    # A maximal distance that some pairs are beyond, or one that none is.
    max_distance = float(extent * (0.7, 2.0)[maker.below(2)])
    window = CountWindow(1 + maker.below(25)) if maker.chance(0.5) else TimeWindow(float(1 + maker.below(8)))
    idf, n_documents = _draw_idf(maker)
    return {
        "window": window,
        "space": maker.space,
        "max_distance": max_distance,
        "idf": idf,
        "n_documents": n_documents,
        "changes": "net" if maker.chance(0.3) else "tick",
    }


def _draw_idf(maker: WorldMaker) -> tuple[dict[Any, int] | None, int]:
    """None, or document frequencies in which the two most frequent words are in every document."""
    if maker.chance(0.4):
        return None, 0
    words = NUMBERS if maker.has_numbers else WORDS
    return dict(zip(words, [20, 20, 9, 3, 1], strict=False)), 20


class _Writer(ScenarioWriter):
    def __init__(self, maker: WorldMaker, options: Mapping[str, Any]) -> None:
        super().__init__(RankedRun, options)
        self.maker = maker
        self._ids: list[Id] = []
        self._sent: list[Message] = []
        self._time = float(maker.below(5))

    def write(self) -> Scenario:
        steps: list[Callable[[], None]] = [self._subscribe, *[self._publish] * 5]
        steps += [self._advance, self._replace, self._unsubscribe]
        self._subscribe()
        for choice in self.maker.rng.integers(0, len(steps), _STEPS).tolist():
            steps[choice]()
            if self.maker.chance(0.02):
                self.add(SAVE_AND_OPEN)
            if self.maker.chance(0.03):
                self.add("refresh_idf", *_draw_idf(self.maker))
        return self.scenario()

    def _subscribe(self) -> None:
        new = [self._subscription(self.maker.new_id("s")) for _ in range(self.maker.below(_LARGEST))]
        self._ids += [s.id for s in new]
        self.add("subscribe", new)

    def _replace(self) -> None:
        self.add("subscribe", [self._subscription(id) for id in self.maker.some(self._ids, 0.2)])

    def _subscription(self, id: Id) -> RankedSubscription:
        maker = self.maker
        words = maker.keywords(1 + maker.below(4))
        k = int(maker.rng.integers(1, 5)) if maker.chance(0.8) else 40
        weight = _WEIGHTS[maker.below(len(_WEIGHTS))]
        return RankedSubscription(id, words, maker.point(), k, weight)

    def _unsubscribe(self) -> None:
        self.add("unsubscribe", [*self.maker.some(self._ids, 0.15), self.maker.new_id("unknown")])

    def _publish(self) -> None:
        messages = [self._message() for _ in range(self.maker.below(_LARGEST))]
        self._sent += messages
        self.add("publish", messages)

    def _message(self) -> Message:
        maker = self.maker
        repeats = self._sent and maker.chance(0.08)
        id = self._sent[maker.below(len(self._sent))].id if repeats else maker.new_id("m")
        drawn = maker.message(id)
        words, location = drawn.keywords, drawn.location
        if isinstance(location, Box) and maker.chance(0.9):
            location = maker.point()
        if self._sent and maker.chance(0.25):
            # The same words and location again: equal scores.
            equal = self._sent[maker.below(len(self._sent))]
            words, location = equal.keywords, equal.location
        # Some are late, and some are out of the window when they arrive.
        time = None if maker.chance(0.05) else self._time + float(maker.rng.integers(-3, 3))
        self._time = max(self._time, self._time if time is None else time)
        return Message(id, keywords=words, location=location, time=time)

    def _advance(self) -> None:
        now = self._time + float(self.maker.rng.integers(-1, 4))
        self._time = max(self._time, now)
        self.add("advance", now)
