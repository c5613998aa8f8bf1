"""The ranked engine without ids: subscriptions by number, messages by sequence number. Every call returns the changes it makes.

`TickEngine` is the loop of this package. `RankedEngine` is what it shares with the engine of the papers
(`papers/ranked/skyband/engine.py`), which holds lists and runs ticks in another way.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.index import RankedIndex
from nearcast.ranked.kernels.layouts import (
    ARRIVE,
    DONE,
    EXPIRE,
    LACKS_MESSAGES,
    LACKS_OUTPUT,
    NO_MATCHES,
    NO_MESSAGE,
    NOW,
    PHASE,
    POSITION,
    ScoredMatches,
    TickRules,
    WindowArrays,
)
from nearcast.ranked.kernels.list_layout import LAST_LATE, OLDEST, ScorerArrays
from nearcast.ranked.kernels.rank_changes import ENTERS, LEAVES, score_changes
from nearcast.ranked.kernels.simd_keys_plain import KEY_LANES
from nearcast.ranked.kernels.ticks import run_tick_loop
from nearcast.ranked.rank_changes import RankChanges
from nearcast.ranked.result_lists import BufferKind, ResultLists
from nearcast.ranked.run_state import ExpiryCalendar, RunState
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions
from nearcast.ranked.window import ArrivingMessages, MessageWindow
from nearcast.ranked.window_index import WindowIndex

FILLED_AT_ONCE = 100_000
"""Lists are filled this many at a time: searches for many share lists of the window, and their results take little memory."""
# The most messages for which subscriptions are found at a time, and the most pairs of messages and refilled lists that are
# scored together. If there are more pairs, all matches are found again.
_MOST_AT_ONCE, _MOST_PAIRS = 4096, 1 << 22
# Lists are refilled together if they would need it before this fraction (one in) of the window has expired.
_SOON = 1024

Lists = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]
"""Columns subscription, message, score."""


class Buffers(Protocol):
    """The messages held for each subscription."""

    kind: BufferKind

    @property
    def threshold(self) -> NDArray[np.float64]: ...
    @property
    def n_bytes(self) -> int: ...
    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[Any]: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...


class Calendars(Protocol):
    """Which subscriptions to look after when a message expires."""

    @property
    def n_bytes(self) -> int: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def clear(self, n_expired: int) -> None: ...


class States(Protocol):
    """Where the run of ticks stands."""

    at: NDArray[np.int64]
    clock: NDArray[np.float64]
    counters: NDArray[np.int64]

    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...


class RankedEngine(ABC):
    """The parts of a ranked engine and how calls go through them. Subclasses hold the lists and run the ticks."""

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
        self.rules = TickRules(*_lengths(window), is_net, buffer.is_banded)
        self.distances, self.index, self.window_index = window_index.distances, index, window_index
        self.subscriptions, self.window = RankedSubscriptions(), MessageWindow(self.rules.n_counted)
        self.n_refills = 0
        # Seconds spent on finding matches and keeping lists; reading messages and returning changes is not included.
        self.list_seconds = 0.0

    @property
    def tick(self) -> int:
        """The sequence number of the last arrival, -1 before the first."""
        return self.window.next_number - 1

    @property
    def now(self) -> float:
        return float(self.state.clock[NOW])

    # --- changes -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
        """Add or replace subscriptions; their lists are filled from the window."""

    def remove(self, numbers: NDArray[np.int32]) -> None:
        """Remove subscriptions; unknown numbers are ignored."""
        gone = numbers[self.subscriptions.is_alive(numbers)]
        self._forget(gone)
        self.subscriptions.remove(gone)

    def arrive(self, messages: ArrivingMessages, weights: NDArray[np.float64]) -> RankChanges:
        """Add messages, one tick each."""
        first = self.window.n
        self.window.append(messages, weights)
        self.window_index.add(self.window, first)
        changes = self._run(ARRIVE)
        self.index.learn(self.subscriptions, self.window.layout())
        return changes

    def advance(self, now: float) -> RankChanges:
        """Set the clock to `now`; messages that are due expire."""
        self.note_time(now)
        changes = self._run(EXPIRE)
        # So that the index keeps no arrays that were dropped.
        self.index.learn(self.subscriptions, self.window.layout())
        return changes

    def note_time(self, now: float) -> None:
        """Note a time; nothing expires by it."""
        self.state.clock[NOW] = max(self.now, now)

    @abstractmethod
    def apply_word_weights(self, weights: NDArray[np.float64]) -> RankChanges:
        """Use new weights of words: every list is filled again."""

    @abstractmethod
    def refill_all(self) -> None:
        """Fill every list from the window and record no changes: the lists before are not known."""

    def _run(self, phase: int) -> RankChanges:
        """Run ticks, from this phase on."""
        begin = time.perf_counter()
        self._run_ticks(phase)
        self.list_seconds += time.perf_counter() - begin
        changes = self._take_changes()
        n_expired = self.window.drop_expired()
        if n_expired:
            self.calendar.clear(n_expired)
            self.state.at[POSITION] -= n_expired
        return changes

    @abstractmethod
    def _run_ticks(self, phase: int) -> None:
        """Run ticks, and record what changes."""

    @abstractmethod
    def _take_changes(self) -> RankChanges:
        """The changes recorded so far, with ids and scores."""

    @abstractmethod
    def _forget(self, numbers: NDArray[np.int32]) -> None:
        """Free what is held for subscriptions, and remove them from the index."""

    # --- insight -----------------------------------------------------------------------------------------------------

    @property
    def shards(self) -> tuple[RankedEngine, ...]:
        """Itself: it is not divided."""
        return (self,)

    def holder_of(self, number: int) -> tuple[RankedEngine, int]:
        """The engine that holds a subscription, and its number there."""
        return self, number

    def alive(self) -> NDArray[np.int32]:
        """The numbers of all living subscriptions."""
        return self.subscriptions.alive()

    def are_alive(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these are numbers of living subscriptions."""
        return self.subscriptions.is_alive(numbers)

    def take_counters(self) -> NDArray[np.int64]:
        """The work since the last call: parts of the index visited, messages scored."""
        work = self.state.counters.copy()
        self.state.counters[:] = 0
        return work

    @abstractmethod
    def lists(self, numbers: NDArray[np.int32]) -> Lists:
        """The lists of these subscriptions, one after the other: subscription, message, score, best first."""

    def n_bytes(self) -> dict[str, int]:
        """Memory by part."""
        parts: dict[str, Any] = {"subscribers": self.subscriptions, "window": self.window, "window_index": self.window_index}
        parts |= {"buffers": self.buffers, "calendar": self.calendar}
        return {name: int(batch.n_bytes) for name, batch in parts.items()}

    @abstractmethod
    def restore_lists(self, buffers: Mapping[str, NDArray[Any]], calendar: Mapping[str, NDArray[Any]]) -> None:
        """Take over the saved arrays of `buffers` and `calendar`."""


def span_of(window: CountWindow | TimeWindow) -> float:
    """The length of a time window in seconds; 0 for a count window."""
    return window.seconds if isinstance(window, TimeWindow) else 0.0


def _lengths(window: CountWindow | TimeWindow) -> tuple[bool, int]:
    return isinstance(window, TimeWindow), window.n if isinstance(window, CountWindow) else 0


class TickEngine(RankedEngine):
    """Finds the matches of many messages at once and offers them to result lists, tick by tick.

    Changes are recorded as they happen.
    """

    buffers: ResultLists
    calendar: ExpiryCalendar
    state: RunState

    def __init__(
        self,
        window: CountWindow | TimeWindow,
        index: RankedIndex,
        buffer: BufferKind,
        window_index: WindowIndex,
        is_net: bool,
    ) -> None:
        super().__init__(window, index, buffer, window_index, is_net)
        self.buffers, self.calendar, self.state = ResultLists(buffer), ExpiryCalendar(), RunState(span_of(window))
        self._scratch = _scratch_for(0, 0)
        # Subscriptions that hold, or held, only their best k messages. They are refilled soon, many together.
        self._low_reserve = np.empty(0, np.int32)
        self.index.build(self.subscriptions, self.buffers.threshold, self.distances)

    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
        known = batch.number[self.subscriptions.is_alive(batch.number)]
        self.state.record(self.tick, self.lists(known), LEAVES)
        self._forget(known)
        self.subscriptions.put(batch, weights)
        self._grow(self.subscriptions.n)
        self.buffers.reserve(batch.number, batch.k)
        self._refill(batch.number)
        self.index.insert(self.subscriptions, self.buffers.threshold, batch.number)
        self.state.record(self.tick, self.lists(batch.number), ENTERS)
        # Changes of new lists cannot cancel out.
        return self.state.take_changes(self.window, self.tick, is_net=len(known) > 0)

    def apply_word_weights(self, weights: NDArray[np.float64]) -> RankChanges:
        numbers = self.subscriptions.alive()
        self._grow(self.subscriptions.n)
        self.state.record(self.tick, self.lists(numbers), LEAVES)
        self.subscriptions.apply_word_weights(weights)
        self.window.apply_word_weights(weights)
        self.window_index.rebuild(self.window)
        self._refill(numbers)
        self.index.build(self.subscriptions, self.buffers.threshold, self.distances)
        self.state.record(self.tick, self.lists(numbers), ENTERS)
        return self.state.take_changes(self.window, self.tick, is_net=True)

    def refill_all(self) -> None:
        window, base = self.window.layout(), self.window.base
        alive, late = np.flatnonzero(window.is_alive), np.flatnonzero(window.time < np.maximum.accumulate(window.time))
        self.state.at[OLDEST] = base + (int(alive[0]) if len(alive) else self.window.n)
        self.state.at[LAST_LATE] = base + int(late[-1]) if len(late) else NO_MESSAGE
        numbers = self.subscriptions.alive()
        self._grow(self.subscriptions.n)
        self.buffers.reserve(numbers, self.subscriptions.layout().k[numbers])
        self._refill(numbers)

    def _run_ticks(self, phase: int) -> None:
        self._grow(self.subscriptions.n)
        state, at, last = self.state, self.state.at, self.window.n
        at[PHASE] = phase
        state.begin_tick()
        self._refill_low_reserve()
        matches = NO_MATCHES
        # None of these arrays grows or moves while ticks run.
        buffers, window, scorer = self.buffers.layout(), self.window.layout(), self._scorer()
        while True:
            position = int(at[POSITION])
            if at[PHASE] == ARRIVE and position < last and not matches.first <= position < matches.last:
                matches = self._find_matches(window, position, last)
            arrays = (buffers, window, scorer, self.calendar.layout(), state.run(), state.changes)
            end = min(max(matches.last, int(at[POSITION])), last)
            stopped = run_tick_loop(matches, *arrays, end, self.rules.is_timed, self.rules.n_counted)
            if stopped == DONE and int(at[POSITION]) == last:
                break
            if stopped == LACKS_OUTPUT:
                state.reserve(4 * int(self.subscriptions.layout().k.max(initial=1)))
                self.calendar.reserve()
            elif stopped == LACKS_MESSAGES:
                matches = self._refill_during_run(matches)
        self.index.thresholds_raised(self.subscriptions, self.buffers.threshold, state.take_truncated())

    def _take_changes(self) -> RankChanges:
        # Messages that leave, or move up, were recorded without their score.
        score_changes(self._scorer(), self.window.layout(), self.state.changes)
        return self.state.take_changes(self.window, self.tick, self.rules.is_net)

    def _find_matches(self, window: WindowArrays, position: int, last: int) -> ScoredMatches:
        """The matches of the messages from a position on, a batch at a time."""
        end = min(position + _MOST_AT_ONCE, last)
        return self.index.find(self.subscriptions.layout(), window, position, end, self.state.counters)

    def _refill_low_reserve(self) -> None:
        """Refill lists that would need it soon: many at once, and not in the middle of a run."""
        self._low_reserve = np.unique(np.concatenate([self._low_reserve, self.state.take_low_reserve()]))
        if not len(self._low_reserve):
            return
        oldest, n_to_come = int(self.state.at[OLDEST]), self.window.n - int(self.state.at[POSITION])
        ends = self.buffers.scheduled_at(self._low_reserve)
        if not (ends < oldest + n_to_come).any():
            return
        is_next = ends < oldest + max(n_to_come, self.window.n // _SOON)
        low_reserve, self._low_reserve = self._low_reserve[is_next], self._low_reserve[~is_next]
        low_reserve = self.buffers.with_low_reserve(low_reserve[self.subscriptions.is_alive(low_reserve)], oldest)
        self.n_refills += len(low_reserve)
        self._refill(low_reserve)
        self.index.thresholds_lowered(self.subscriptions, self.buffers.threshold, low_reserve)

    def _refill_during_run(self, matches: ScoredMatches) -> ScoredMatches:
        """Refill lists in the middle of a run; returns the matches of the messages that are still to come."""
        needs_refill = self.state.take_needs_refill()
        self.n_refills += len(needs_refill)
        # Everything such a list held is among its best k.
        n_before = self.buffers.sizes(needs_refill)
        self._refill(needs_refill)
        self.index.thresholds_lowered(self.subscriptions, self.buffers.threshold, needs_refill)
        # The old messages are at the front: the search found only messages that rank behind them.
        position, window = int(self.state.at[POSITION]), self.window.layout()
        best = self.buffers.best(needs_refill, n_before, window, self._scorer(), self._message_order)
        self.state.record(self.window.base + position - 1, best, ENTERS)
        if not matches.first <= position < matches.last or (matches.last - position) * len(needs_refill) > _MOST_PAIRS:
            return NO_MATCHES
        return self.index.find_more(self.subscriptions.layout(), window, matches, position, needs_refill)

    # --- parts of it -------------------------------------------------------------------------------------------------

    def _grow(self, n_subscriptions: int) -> None:
        self.buffers.grow(n_subscriptions)
        self.calendar.grow(self.window.n)
        self.state.grow(self.window.n)

    def _refill(self, numbers: NDArray[np.int32]) -> None:
        """Fill lists from the window."""
        for batch in np.split(numbers, range(FILLED_AT_ONCE, len(numbers), FILLED_AT_ONCE)):
            n_to_fetch = self.buffers.n_to_fetch(batch)
            best = self.window_index.best(self.subscriptions, self.window, batch, n_to_fetch)
            self.buffers.fill(batch, best, n_to_fetch)
        self.calendar.schedule(numbers, self.buffers.layout(), self.window.layout(), self._message_order)

    @property
    def _message_order(self) -> tuple[int, bool]:
        """The oldest living message, and whether all messages arrived in the order of their times."""
        oldest = int(self.state.at[OLDEST])
        return oldest, bool(self.state.at[LAST_LATE] < oldest)

    def _scorer(self) -> ScorerArrays:
        n_words, n = self.subscriptions.most_words, self.buffers.max_capacity
        if self._scratch[0].size < n_words or self._scratch[-1].size < n:
            self._scratch = _scratch_for(n_words, n)
        return self._scorer_with(self._scratch)

    def _scorer_with(self, scratch: tuple[NDArray[Any], ...]) -> ScorerArrays:
        return ScorerArrays((self.distances.is_lonlat, self.distances.max_distance), self.subscriptions.layout(), *scratch)

    def _forget(self, numbers: NDArray[np.int32]) -> None:
        self.index.delete(self.subscriptions, numbers)
        self.buffers.free(numbers)

    def lists(self, numbers: NDArray[np.int32]) -> Lists:
        # Its own scratch: other threads may read at the same time.
        scorer = self._scorer_with(_scratch_for(self.subscriptions.most_words, self.buffers.max_capacity))
        return self.buffers.best(numbers, 0, self.window.layout(), scorer, self._message_order)

    def restore_lists(self, buffers: Mapping[str, NDArray[Any]], calendar: Mapping[str, NDArray[Any]]) -> None:
        self.buffers, self.calendar = ResultLists(self.buffers.kind, buffers), ExpiryCalendar(calendar)


def _scratch_for(n_words: int, n_messages: int) -> tuple[NDArray[Any], ...]:
    """The last fields of `ScorerArrays`."""
    marked = (np.empty(n_messages + KEY_LANES, np.uint16), np.empty(n_messages, np.int32))
    return np.empty(n_words), *marked, np.empty(n_messages, np.int64), np.empty(n_messages)
