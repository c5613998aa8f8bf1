"""Small random lives of ranked subscriptions, with ties and late messages: written down with the oracle's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box
from nearcast.model.subscription import RankedSubscription
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.testing.oracles.ranked import Lists, RankedOracle, RankStep
from nearcast.testing.scenarios.worlds import NUMBERS, WORDS, WorldMaker, message_table

if TYPE_CHECKING:
    from nearcast.ranked.engine import Ranker

_SPACES = ("plane", "lonlat")
_STEPS = 14
_LARGEST = 16
_SHOWN = 3
_WEIGHTS = (0.0, 0.25, 0.5, 0.5, 0.9, 1.0)


class MakeRanker(Protocol):
    """How the tests get an empty ranker with the index under test; `options` are those of `Ranker` itself."""

    def __call__(self, **options: Any) -> Ranker: ...


class RankedDeed(NamedTuple):
    """One thing that happens, as a call of a ranker, with what the oracle expects of it."""

    name: str
    arguments: tuple[Any, ...]
    changes: Sequence[RankStep]
    rejected: Sequence[int]
    lists: Lists


class RankedLife(NamedTuple):
    """The story of one world: the options of its ranker, and what happens."""

    options: dict[str, Any]
    deeds: list[RankedDeed]


def run_ranked_worlds(
    make_rankers: MakeRanker | Sequence[MakeRanker], n_worlds: int, seed: int = 0, first: int = 0
) -> tuple[int, int]:
    """Live through worlds `first` … `first + n_worlds - 1` of a seed with every ranker; returns ticks and changes compared."""
    makers = make_rankers if isinstance(make_rankers, Sequence) else [make_rankers]
    n_ticks = n_changes = 0
    for number in range(first, first + n_worlds):
        life = write_ranked_life([seed, number])
        for make_ranker in makers:
            _live_or_tell(life, make_ranker, [seed, number])
            n_ticks += sum(len(d.arguments[0]) for d in life.deeds if d.name.startswith("publish"))
            n_changes += sum(len(deed.changes) for deed in life.deeds)
    return n_ticks, n_changes


def write_ranked_life(seed: Sequence[int]) -> RankedLife:
    """The same life for the same seed."""
    return _Writer(np.random.default_rng(seed)).write()


class _Writer:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        space = _SPACES[int(rng.integers(2))]
        self._maker = WorldMaker(rng, space)
        self._maker.is_plain = True
        reach = self._maker.step * self._maker.span if space == "plane" else 111_000.0 * self._maker.span
        # A reach that some pairs are beyond, and one that none is.
        max_distance = float(reach * (0.7, 2.0)[int(rng.integers(2))])
        window = CountWindow(1 + int(rng.integers(25))) if self._chance(0.5) else TimeWindow(float(1 + rng.integers(8)))
        idf, n_documents = self._idf()
        is_net = self._chance(0.3)
        self._oracle = RankedOracle(window, space, max_distance, idf, n_documents, is_net)
        self._options: dict[str, Any] = {"window": window, "space": space, "max_distance": max_distance}
        self._options |= {"idf": idf, "n_documents": n_documents, "changes": "net" if is_net else "tick"}
        self._ids: list[Id] = []
        self._sent: list[Message] = []
        self._time = float(rng.integers(0, 5))
        self._deeds: list[RankedDeed] = []

    def write(self) -> RankedLife:
        acts: list[Callable[[], None]] = [
            self._subscribe,
            *[self._publish] * 5,
            self._advance,
            self._replace,
            self._unsubscribe,
        ]
        self._subscribe()
        for choice in self._rng.integers(0, len(acts), _STEPS).tolist():
            acts[choice]()
            if self._chance(0.02):
                self._note("save and open", (), [])
            if self._chance(0.03):
                idf = self._idf()
                self._note("refresh_idf", idf, self._oracle.refresh_idf(*idf))
        return RankedLife(self._options, self._deeds)

    def _idf(self) -> tuple[dict[Any, int] | None, int]:
        """None; or a table in which the most frequent word is in every document."""
        if self._chance(0.4):
            return None, 0
        words = NUMBERS if self._maker.has_numbers else WORDS
        frequencies = [20, 20, 9, 3, 1]
        return dict(zip(words, frequencies, strict=False)), 20

    def _subscribe(self) -> None:
        new = [self._subscription(self._maker.new_id("s")) for _ in range(int(self._rng.integers(_LARGEST)))]
        self._ids += [s.id for s in new]
        self._note("subscribe", (new,), self._oracle.subscribe(new))

    def _replace(self) -> None:
        new = [self._subscription(id) for id in self._some(self._ids, 0.2)]
        self._note("subscribe", (new,), self._oracle.subscribe(new))

    def _subscription(self, id: Id) -> RankedSubscription:
        words = self._maker.keywords(1 + int(self._rng.integers(4)))
        k = int(self._rng.integers(1, 5)) if self._chance(0.8) else 40
        weight = _WEIGHTS[int(self._rng.integers(len(_WEIGHTS)))]
        return RankedSubscription(id, words, self._maker.point(), k, weight)

    def _unsubscribe(self) -> None:
        gone = [*self._some(self._ids, 0.15), self._maker.new_id("unknown")]
        self._oracle.unsubscribe(gone)
        self._note("unsubscribe", (gone,), [])

    def _publish(self) -> None:
        messages = [self._message() for _ in range(int(self._rng.integers(_LARGEST)))]
        self._sent += messages
        self._note("publish", (messages,), self._oracle.publish(messages))

    def _message(self) -> Message:
        again = self._sent and self._chance(0.08)
        id = self._sent[int(self._rng.integers(len(self._sent)))].id if again else self._maker.new_id("m")
        drawn = self._maker.message(id)
        words, location = drawn.keywords, drawn.location
        if isinstance(location, Box) and self._chance(0.9):
            location = self._maker.point()
        if self._sent and self._chance(0.25):
            # The same once more: equal scores.
            repeated = self._sent[int(self._rng.integers(len(self._sent)))]
            words, location = repeated.keywords, repeated.location
        # Late ones too, and some that are out of the window when they come.
        time = None if self._chance(0.05) else self._time + float(self._rng.integers(-3, 3))
        self._time = max(self._time, self._time if time is None else time)
        return Message(id, keywords=words, location=location, time=time)

    def _advance(self) -> None:
        now = self._time + float(self._rng.integers(-1, 4))
        self._time = max(self._time, now)
        self._note("advance", (now,), self._oracle.advance(now))

    def _note(self, name: str, arguments: tuple[Any, ...], changes: Sequence[RankStep]) -> None:
        listed = arguments[0] if name in ("subscribe", "publish") else []
        if listed and self._chance(0.3) and (not self._maker.has_numbers or any(row.keywords for row in listed)):
            name, arguments = f"{name}_table", (_TABLES[name](listed),)
        self._deeds.append(RankedDeed(name, arguments, changes, self._oracle.rejected, self._oracle.lists()))

    def _some(self, ids: Sequence[Id], share: float) -> list[Id]:
        return [id for id, drawn in zip(ids, self._rng.random(len(ids)).tolist(), strict=True) if drawn < share]

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)


def ranked_subscription_table(subscriptions: Sequence[RankedSubscription]) -> pa.Table:
    """Ranked subscriptions as a table."""
    columns: dict[str, Any] = {
        "id": [s.id for s in subscriptions],
        "keywords": pa.array([list(s.keywords) for s in subscriptions], pa.list_(_keyword_type(subscriptions))),
        "x": [s.location[0] for s in subscriptions],
        "y": [s.location[1] for s in subscriptions],
        "k": [s.k for s in subscriptions],
        "spatial_weight": [s.spatial_weight for s in subscriptions],
    }
    return pa.table(columns)


def timed_message_table(messages: Sequence[Message]) -> pa.Table:
    """Messages as a table with their times: of points, or of boxes if some are."""
    table = message_table(messages, as_points=all(isinstance(m.location, tuple) for m in messages))
    return table.append_column("time", pa.array([m.time for m in messages], pa.float64()))


def _keyword_type(subscriptions: Sequence[RankedSubscription]) -> pa.DataType:
    return pa.int32() if any(isinstance(word, int) for s in subscriptions for word in s.keywords) else pa.string()


_TABLES: dict[str, Callable[[Any], pa.Table]] = {"subscribe": ranked_subscription_table, "publish": timed_message_table}


def _live_or_tell(life: RankedLife, make_ranker: MakeRanker, seed: Sequence[int]) -> None:
    ranker, name, number = make_ranker(**life.options), "", 0
    try:
        for number, deed in enumerate(life.deeds):  # noqa: B007 - told when it fails
            name = deed.name
            ranker = live(deed, ranker)
    except Exception as error:
        raise AssertionError(f"{make_ranker}: ranked world seed={list(seed)}, step {number} ({name!r}): {error!r}") from error


def live(deed: RankedDeed, ranker: Ranker) -> Ranker:
    """Let it happen to a ranker and compare; returns the one to go on with."""
    if deed.name == "save and open":
        with TemporaryDirectory(prefix="nearcast-ranked-") as folder:
            ranker.save(Path(folder) / "saved")
            ranker = type(ranker).open(Path(folder) / "saved")
    else:
        found = getattr(ranker, deed.name)(*deed.arguments)
        if isinstance(found, pa.Table):
            found = [RankStep(**row) for row in found.to_pylist()]
        compare_steps(found or [], deed.changes)
        rows = [row for row, _ in ranker.report.rejected]
        if rows != list(deed.rejected):
            raise AssertionError(f"rejected {ranker.report.rejected!r}; expected rows {deed.rejected!r}")
    compare_lists(ranker, deed.lists)
    return ranker


def compare_steps(found: Iterable[Any], expected: Sequence[RankStep]) -> None:
    """AssertionError unless exactly these changes are reported, each once, scores to the last bit."""
    found_times = Counter(RankStep(c.tick, c.subscription_id, c.message_id, c.change, c.score) for c in found)
    expected_times = Counter(expected)
    if found_times != expected_times:
        lines = [f"{sum(expected_times.values())} changes expected, {sum(found_times.values())} found"]
        for what, steps in (("missing", expected_times - found_times), ("not expected", found_times - expected_times)):
            lines += [f"  {what}: {step}" for step in list(steps)[:_SHOWN]]
        raise AssertionError("\n".join(lines))


def compare_lists(ranker: Ranker, expected: Lists) -> None:
    """AssertionError unless every subscription has exactly its list, best first."""
    rows = ranker.top_table()
    columns = [rows[name].to_pylist() for name in ("subscription_id", "message_id", "score")]
    found: Lists = {id: [] for id in expected}
    for id, message, score in zip(*columns, strict=True):
        found.setdefault(id, []).append((message, score))
    for id, listed in found.items():
        if listed != expected.get(id, []):
            raise AssertionError(f"the best of {id!r} are {listed!r}; expected {expected.get(id, [])!r}")
    for id in list(expected)[:1]:
        if list(ranker.top(id)) != expected[id]:
            raise AssertionError(f"the best of {id!r} are {ranker.top(id)!r} when asked for alone")
