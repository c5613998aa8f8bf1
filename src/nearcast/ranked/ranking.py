"""A ranked engine without ids: subscriptions by number, messages by sequence number; every call gives the changes it makes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.buffer_kind import BufferKind
from nearcast.ranked.index import RankedIndex
from nearcast.ranked.kernels.run_layout import ARRIVE, EXPIRE, NOW, PLACE, Rules
from nearcast.ranked.rank_changes import RankChanges
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions
from nearcast.ranked.window import ArrivingMessages, MessageWindow
from nearcast.ranked.window_index import WindowIndex

FILLED_AT_ONCE = 100_000
"""So many lists at once that they share the lists of the window, and that what is found takes little memory."""
Lists = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]


class Buffers(Protocol):
    """Where messages are held by subscription."""

    kind: BufferKind

    @property
    def threshold(self) -> NDArray[np.float64]: ...
    @property
    def n_bytes(self) -> int: ...
    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[Any]: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...


class Calendars(Protocol):
    """Who waits for the end of which message."""

    @property
    def n_bytes(self) -> int: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def clear(self, n_over: int) -> None: ...


class States(Protocol):
    """Where ticks stand."""

    at: NDArray[np.int64]
    clock: NDArray[np.float64]
    counters: NDArray[np.int64]

    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...


class Ranking(ABC):
    """Puts together what a ranked engine is made of; how lists are held and ticks go is up to its kinds."""

    buffers: Buffers
    calendar: Calendars
    state: States

    def __init__(
        self,
        window: CountWindow | TimeWindow,
        index: RankedIndex,
        buffer: BufferKind,
        window_index: WindowIndex,
        is_net: bool,
    ) -> None:
        self.rules = Rules(*_lengths(window), is_net, buffer.is_banded)
        self.ground, self.index, self.window_index = window_index.ground, index, window_index
        self.subscribers, self.window = RankedSubscriptions(), MessageWindow(self.rules.n_counted)
        self.n_refills = 0
        # Spent on finding whom messages reach and on keeping lists; the rest is what comes in and goes out.
        self.list_seconds = 0.0

    @property
    def tick(self) -> int:
        """The sequence number of the last arrival, -1 before the first."""
        return self.window.next_number - 1

    @property
    def now(self) -> float:
        return float(self.state.clock[NOW])

    # --- what happens ------------------------------------------------------------------------------------------------

    @abstractmethod
    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
        """Subscribe, or replace; lists are filled from the window."""

    def remove(self, numbers: NDArray[np.int32]) -> None:
        """Unsubscribe; numbers of nobody are ignored."""
        gone = numbers[self.subscribers.is_alive(numbers)]
        self._forget(gone)
        self.subscribers.remove(gone)

    def arrive(self, messages: ArrivingMessages, weights: NDArray[np.float64]) -> RankChanges:
        """One tick for each message."""
        first = self.window.n
        self.window.append(messages, weights)
        self.window_index.add(self.window, first)
        changes = self._run(ARRIVE)
        self.index.learn(self.subscribers, self.window.layout())
        return changes

    def advance(self, now: float) -> RankChanges:
        """Let what is due by then end."""
        self.note_time(now)
        changes = self._run(EXPIRE)
        # Lest it holds on to what was cleared away.
        self.index.learn(self.subscribers, self.window.layout())
        return changes

    def note_time(self, now: float) -> None:
        """Take note of a time, without anything ending by it."""
        self.state.clock[NOW] = max(self.now, now)

    @abstractmethod
    def weigh(self, weights: NDArray[np.float64]) -> RankChanges:
        """Take over new weights of words: every list is filled anew."""

    @abstractmethod
    def fill_anew(self) -> None:
        """Fill every list from the window, without a word: what was held before is not known."""

    def _run(self, phase: int) -> RankChanges:
        """Let ticks go, from this phase on."""
        begin = time.perf_counter()
        self._run_ticks(phase)
        self.list_seconds += time.perf_counter() - begin
        changes = self._tell()
        n_over = self.window.clear_over()
        if n_over:
            self.calendar.clear(n_over)
            self.state.at[PLACE] -= n_over
        return changes

    @abstractmethod
    def _run_ticks(self, phase: int) -> None:
        """Let ticks go, and write down what changes."""

    @abstractmethod
    def _tell(self) -> RankChanges:
        """What was written down, with ids and scores."""

    @abstractmethod
    def _forget(self, numbers: NDArray[np.int32]) -> None:
        """Give up what is held for subscriptions, and unfile them."""

    # --- insight -----------------------------------------------------------------------------------------------------

    @property
    def shards(self) -> tuple[Ranking, ...]:
        """Itself: it is in one piece."""
        return (self,)

    def holder_of(self, number: int) -> tuple[Ranking, int]:
        """Who has a subscription, and its number there."""
        return self, number

    def alive(self) -> NDArray[np.int32]:
        """The numbers of all living subscriptions."""
        return self.subscribers.alive()

    def are_alive(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these are numbers of living subscriptions."""
        return self.subscribers.is_alive(numbers)

    def take_counters(self) -> NDArray[np.int64]:
        """The work since the last time: parts of the index looked at, messages scored."""
        taken = self.state.counters.copy()
        self.state.counters[:] = 0
        return taken

    @abstractmethod
    def lists(self, numbers: NDArray[np.int32]) -> Lists:
        """The lists of these subscriptions one after the other: subscription, message, score, best first."""

    def n_bytes(self) -> dict[str, int]:
        """Memory by part."""
        parts: dict[str, Any] = {"subscribers": self.subscribers, "window": self.window, "window_index": self.window_index}
        parts |= {"buffers": self.buffers, "calendar": self.calendar}
        return {name: int(part.n_bytes) for name, part in parts.items()}

    @abstractmethod
    def take_over(self, buffers: Mapping[str, NDArray[Any]], calendar: Mapping[str, NDArray[Any]]) -> None:
        """Hold what was saved of `buffers` and `calendar`."""


def span_of(window: CountWindow | TimeWindow) -> float:
    """Seconds of a window of time, 0 of one that counts."""
    return window.seconds if isinstance(window, TimeWindow) else 0.0


def _lengths(window: CountWindow | TimeWindow) -> tuple[bool, int]:
    return isinstance(window, TimeWindow), window.n if isinstance(window, CountWindow) else 0
