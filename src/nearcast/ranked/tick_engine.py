"""A ranked engine without ids: subscriptions by number, messages by sequence number; every call gives the changes it makes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.index import AheadIndex, RankedIndex
from nearcast.ranked.kernels.layouts import (
    ARRIVE,
    DONE,
    EXPIRE,
    LACKS_MESSAGES,
    LACKS_OUTPUT,
    NO_MESSAGE,
    NOTHING_FOUND,
    NOW,
    PHASE,
    PLACE,
    FoundArrays,
    Rules,
    WindowArrays,
)
from nearcast.ranked.kernels.list_layout import LAST_LATE, OLDEST, ScorerArrays
from nearcast.ranked.kernels.rank_changes import ENTERS, LEAVES, score_told
from nearcast.ranked.kernels.simd_keys_plain import KEY_LANES
from nearcast.ranked.kernels.ticks import run_floor_ticks
from nearcast.ranked.rank_changes import RankChanges
from nearcast.ranked.result_lists import BufferKind, ResultLists
from nearcast.ranked.run_state import ExpiryCalendar, FloorState
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


# -- A ranked engine for indexes that find ahead, with lists above a floor: ticks tell their changes as they make them.

# Subscriptions are found for so many messages at a time, at most. So many pairs of messages and lists that were refilled are
# looked at together; where there are more, all is looked for anew.
_MOST_AT_ONCE, _MOST_PAIRS = 4096, 1 << 22
# Lists that would lack messages before one in so many of the window has ended are refilled together.
_SOON = 1024


class TickEngine(Ranking):
    """What is found for some messages is offered to lists tick by tick."""

    buffers: ResultLists
    calendar: ExpiryCalendar
    state: FloorState
    index: AheadIndex

    def __init__(
        self,
        window: CountWindow | TimeWindow,
        index: AheadIndex,
        buffer: BufferKind,
        window_index: WindowIndex,
        is_net: bool,
    ) -> None:
        super().__init__(window, index, buffer, window_index, is_net)
        self.buffers, self.calendar, self.state = ResultLists(buffer), ExpiryCalendar(), FloorState(span_of(window))
        self._scratch = _scratch_for(0, 0)
        # Who has the best k messages and no more, or had: soon to be refilled, together with others.
        self._scarce = np.empty(0, np.int32)
        self.index.build(self.subscribers, self.buffers.threshold, self.ground)

    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
        known = batch.number[self.subscribers.is_alive(batch.number)]
        self.state.tell(self.tick, self.lists(known), LEAVES)
        self._forget(known)
        self.subscribers.put(batch, weights)
        self._grow(self.subscribers.n)
        self.buffers.give_room(batch.number, batch.k)
        self._refill(batch.number)
        self.index.insert(self.subscribers, self.buffers.threshold, batch.number)
        self.state.tell(self.tick, self.lists(batch.number), ENTERS)
        # Lists that are new cannot undo anything.
        return self.state.take_changes(self.window, self.tick, is_net=len(known) > 0)

    def weigh(self, weights: NDArray[np.float64]) -> RankChanges:
        numbers = self.subscribers.alive()
        self._grow(self.subscribers.n)
        self.state.tell(self.tick, self.lists(numbers), LEAVES)
        self.subscribers.weigh(weights)
        self.window.weigh(weights)
        self.window_index.rebuild(self.window)
        self._refill(numbers)
        self.index.build(self.subscribers, self.buffers.threshold, self.ground)
        self.state.tell(self.tick, self.lists(numbers), ENTERS)
        return self.state.take_changes(self.window, self.tick, is_net=True)

    def fill_anew(self) -> None:
        window, base = self.window.layout(), self.window.base
        alive, late = np.flatnonzero(window.is_alive), np.flatnonzero(window.time < np.maximum.accumulate(window.time))
        self.state.at[OLDEST] = base + (int(alive[0]) if len(alive) else self.window.n)
        self.state.at[LAST_LATE] = base + int(late[-1]) if len(late) else NO_MESSAGE
        numbers = self.subscribers.alive()
        self._grow(self.subscribers.n)
        self.buffers.give_room(numbers, self.subscribers.layout().k[numbers])
        self._refill(numbers)

    def _run_ticks(self, phase: int) -> None:
        self._grow(self.subscribers.n)
        state, at, last = self.state, self.state.at, self.window.n
        at[PHASE] = phase
        state.begin_tick()
        self._refill_scarce()
        found = NOTHING_FOUND
        # None of these grows or moves while ticks go.
        buffers, window, judge = self.buffers.layout(), self.window.layout(), self._judge()
        while True:
            place = int(at[PLACE])
            if at[PHASE] == ARRIVE and place < last and not found.first <= place < found.last:
                found = self._found(window, place, last)
            arrays = (buffers, window, judge, self.calendar.layout(), state.run(), state.changes)
            end = min(max(found.last, int(at[PLACE])), last)
            stopped = run_floor_ticks(found, *arrays, end, self.rules.is_timed, self.rules.n_counted)
            if stopped == DONE and int(at[PLACE]) == last:
                break
            if stopped == LACKS_OUTPUT:
                state.give_room(4 * int(self.subscribers.layout().k.max(initial=1)))
                self.calendar.give_room()
            elif stopped == LACKS_MESSAGES:
                found = self._refill_lacking(found)
        self.index.raised(self.subscribers, self.buffers.threshold, state.take_cut())

    def _tell(self) -> RankChanges:
        # What leaves, or moves up, was written down without its score.
        score_told(self._judge(), self.window.layout(), self.state.changes)
        return self.state.take_changes(self.window, self.tick, self.rules.is_net)

    def _found(self, window: WindowArrays, place: int, last: int) -> FoundArrays:
        """Whom the messages from a place on reach, some at a time."""
        end = min(place + _MOST_AT_ONCE, last)
        return self.index.find(self.subscribers.layout(), window, place, end, self.state.counters)

    def _refill_scarce(self) -> None:
        """Refill lists that would lack messages soon: many at once, and not in the middle of a run."""
        self._scarce = np.unique(np.concatenate([self._scarce, self.state.take_scarce()]))
        if not len(self._scarce):
            return
        oldest, n_to_come = int(self.state.at[OLDEST]), self.window.n - int(self.state.at[PLACE])
        ends = self.buffers.waits_at(self._scarce)
        if not (ends < oldest + n_to_come).any():
            return
        is_next = ends < oldest + max(n_to_come, self.window.n // _SOON)
        scarce, self._scarce = self._scarce[is_next], self._scarce[~is_next]
        scarce = self.buffers.without_more(scarce[self.subscribers.is_alive(scarce)], oldest)
        self.n_refills += len(scarce)
        self._refill(scarce)
        self.index.lowered(self.subscribers, self.buffers.threshold, scarce)

    def _refill_lacking(self, found: FoundArrays) -> FoundArrays:
        """Refill lists in the middle of a run; returns what is found for the messages that are still to come."""
        lacking = self.state.take_lacking()
        self.n_refills += len(lacking)
        # All that was held is shown.
        n_before = self.buffers.sizes(lacking)
        self._refill(lacking)
        self.index.lowered(self.subscribers, self.buffers.threshold, lacking)
        # What was held is at the front: the search found messages that rank behind it only.
        place, window = int(self.state.at[PLACE]), self.window.layout()
        shown = self.buffers.shown(lacking, n_before, window, self._judge(), self._living)
        self.state.tell(self.window.base + place - 1, shown, ENTERS)
        if not found.first <= place < found.last or (found.last - place) * len(lacking) > _MOST_PAIRS:
            return NOTHING_FOUND
        return self.index.find_too(self.subscribers.layout(), window, found, place, lacking)

    # --- parts of it -------------------------------------------------------------------------------------------------

    def _grow(self, n_subscribers: int) -> None:
        self.buffers.grow(n_subscribers)
        self.calendar.grow(self.window.n)
        self.state.grow(self.window.n)

    def _refill(self, numbers: NDArray[np.int32]) -> None:
        """Fill lists from the window."""
        for part in np.split(numbers, range(FILLED_AT_ONCE, len(numbers), FILLED_AT_ONCE)):
            wanted = self.buffers.wanted(part)
            best = self.window_index.best(self.subscribers, self.window, part, wanted)
            self.buffers.fill(part, best, wanted)
        self.calendar.wait(numbers, self.buffers.layout(), self.window.layout(), self._living)

    @property
    def _living(self) -> tuple[int, bool]:
        """The oldest living message, and whether all came in order."""
        oldest = int(self.state.at[OLDEST])
        return oldest, bool(self.state.at[LAST_LATE] < oldest)

    def _judge(self) -> ScorerArrays:
        n_words, n = self.subscribers.most_words, self.buffers.most_room
        if self._scratch[0].size < n_words or self._scratch[-1].size < n:
            self._scratch = _scratch_for(n_words, n)
        return self._judge_with(self._scratch)

    def _judge_with(self, scratch: tuple[NDArray[Any], ...]) -> ScorerArrays:
        return ScorerArrays((self.ground.is_lonlat, self.ground.max_distance), self.subscribers.layout(), *scratch)

    def _forget(self, numbers: NDArray[np.int32]) -> None:
        self.index.delete(self.subscribers, numbers)
        self.buffers.free(numbers)

    def lists(self, numbers: NDArray[np.int32]) -> Lists:
        # Scratch of its own: others may read beside.
        judge = self._judge_with(_scratch_for(self.subscribers.most_words, self.buffers.most_room))
        return self.buffers.shown(numbers, 0, self.window.layout(), judge, self._living)

    def take_over(self, buffers: Mapping[str, NDArray[Any]], calendar: Mapping[str, NDArray[Any]]) -> None:
        self.buffers, self.calendar = ResultLists(self.buffers.kind, buffers), ExpiryCalendar(calendar)


def _scratch_for(n_words: int, n_messages: int) -> tuple[NDArray[Any], ...]:
    """The last columns of `ScorerArrays`."""
    marked = (np.empty(n_messages + KEY_LANES, np.uint16), np.empty(n_messages, np.int32))
    return np.empty(n_words), *marked, np.empty(n_messages, np.int64), np.empty(n_messages)
