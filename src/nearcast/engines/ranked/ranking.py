"""A ranked engine without ids: subscriptions by number, messages by sequence number; every call gives the changes it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.subscribers import SubscriberBatch, Subscribers
from nearcast.columns.window import ArrivingMessages, MessageWindow
from nearcast.engines.ranked.buffer_kinds import BufferKind
from nearcast.engines.ranked.buffers import ResultBuffers
from nearcast.engines.ranked.calendar import Calendar
from nearcast.engines.ranked.tick_state import RankChanges, TickState
from nearcast.indexes.ranked_base import RankedIndex, Rules, Scene
from nearcast.indexes.window_base import WindowIndex
from nearcast.kernels import ticks
from nearcast.kernels.journal import most_changes, reckon, remember_all
from nearcast.model.window import CountWindow, TimeWindow

_FILLED_AT_ONCE = 100_000


class Ranking:
    """Puts together what a ranked engine is made of."""

    def __init__(
        self,
        window: CountWindow | TimeWindow,
        index: RankedIndex,
        buffer: BufferKind,
        window_index: WindowIndex,
        is_net: bool,
    ) -> None:
        is_timed = isinstance(window, TimeWindow)
        self.rules = Rules(is_timed, window.n if isinstance(window, CountWindow) else 0, is_net, buffer.is_banded)
        self.ground, self.index, self.window_index = window_index.ground, index, window_index
        self.subscribers, self.window = Subscribers(), MessageWindow()
        self.buffers, self.calendar = ResultBuffers(buffer), Calendar()
        self.n_refills = 0
        self.state = TickState(window.seconds if isinstance(window, TimeWindow) else 0.0)
        self.index.build(self.subscribers, self.buffers.threshold, self.ground)

    @property
    def tick(self) -> int:
        """The sequence number of the last arrival, -1 before the first."""
        return self.window.next_number - 1

    @property
    def now(self) -> float:
        return float(self.state.clock[ticks.NOW])

    # --- what happens ------------------------------------------------------------------------------------------------

    def put(self, batch: SubscriberBatch, weights: NDArray[np.float64]) -> RankChanges:
        """Subscribe, or replace; lists are filled from the window."""
        known = batch.number[self.subscribers.is_alive(batch.number)]
        # Rows for those that are new, so that their lists, which are empty, can be remembered too.
        self._grow(max(self.subscribers.n, int(batch.number.max(initial=-1)) + 1))
        self._remember(known)
        self._forget(known)
        self.subscribers.put(batch, weights)
        self._remember(batch.number)
        self.buffers.give_room(batch.number, batch.k)
        self._refill(batch.number)
        self.index.insert(self.subscribers, self.buffers.threshold, batch.number)
        return self._tell()

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
        return self._run(ticks.ARRIVE)

    def advance(self, now: float) -> RankChanges:
        """Let what is due by then end."""
        self.state.clock[ticks.NOW] = max(self.now, now)
        return self._run(ticks.EXPIRE)

    def note_time(self, now: float) -> None:
        """Take note of a time, without anything ending by it."""
        self.state.clock[ticks.NOW] = max(self.now, now)

    def weigh(self, weights: NDArray[np.float64]) -> RankChanges:
        """Take over new weights of words: every list is filled anew."""
        numbers = self.subscribers.alive()
        self._grow(self.subscribers.n)
        self._remember(numbers)
        self.subscribers.weigh(weights)
        self.window.weigh(weights)
        self.window_index.rebuild(self.window)
        self._refill(numbers)
        self.index.build(self.subscribers, self.buffers.threshold, self.ground)
        return self._tell()

    def _run(self, phase: int) -> RankChanges:
        self._grow(self.subscribers.n)
        at = self.state.at
        at[ticks.PHASE] = phase
        while True:
            stopped = self.index.run_ticks(self._scene(), self.window.n, self.rules)
            if stopped == ticks.DONE:
                break
            if stopped == ticks.LACKS_JOURNAL:
                self.state.grow_journal()
            elif stopped == ticks.LACKS_OUTPUT:
                self._make_room_for_changes()
            else:
                self._refill_lacking()
                at[ticks.PHASE] = ticks.TELL
        self._tell_index_of_cuts()
        changes = self._tell()
        n_over = self.window.clear_over()
        if n_over:
            self.calendar.clear(n_over)
            at[ticks.PLACE] -= n_over
        return changes

    def _refill_lacking(self) -> None:
        run = self.state.run(self.buffers.kept_by_cut["kept"])
        lacking = run.lacking[: run.at[ticks.N_LACKING]].copy()
        run.is_lacking[lacking] = 0
        run.at[ticks.N_LACKING] = 0
        self.n_refills += len(lacking)
        before = self.buffers.threshold[lacking]
        self._refill(lacking)
        after = self.buffers.threshold[lacking]
        self.index.lowered(self.subscribers, self.buffers.threshold, lacking[after < before])
        self.index.raised(self.subscribers, self.buffers.threshold, lacking[after > before])

    def _tell_index_of_cuts(self) -> None:
        run = self.state.run(self.buffers.kept_by_cut["kept"])
        cut = run.cut[: run.at[ticks.N_CUT]].copy()
        run.is_cut[cut] = 0
        run.at[ticks.N_CUT] = 0
        self.index.raised(self.subscribers, self.buffers.threshold, cut)

    # --- parts of it -------------------------------------------------------------------------------------------------

    def _grow(self, n_subscribers: int) -> None:
        self.buffers.grow(n_subscribers)
        self.calendar.grow(n_subscribers, self.window.n)
        self.state.grow(n_subscribers, self.window.n, self.subscribers.most_words)

    def _refill(self, numbers: NDArray[np.int32]) -> None:
        """Fill buffers from the window; their lists were remembered before."""
        k = self.subscribers.layout().k
        # So many at once that they share the lists of the window, and that what is found takes little memory.
        for part in np.split(numbers, range(_FILLED_AT_ONCE, len(numbers), _FILLED_AT_ONCE)):
            best = self.window_index.best(self.subscribers, self.window, part, self.buffers.wanted(k[part]))
            self.buffers.fill(part, k, best, self.window.layout())
        self.calendar.wait(numbers, self.buffers.layout(), self.window.layout())

    def _forget(self, numbers: NDArray[np.int32]) -> None:
        self.index.delete(self.subscribers, numbers)
        self.calendar.forget(numbers, self.window.base)
        self.buffers.free(numbers)

    def _remember(self, numbers: NDArray[np.int32]) -> None:
        done = 0
        while True:
            done = remember_all(self.state.journal(), self.subscribers.layout(), self.buffers.layout(), numbers, done)
            if done == len(numbers):
                return
            self.state.grow_journal()

    def _scene(self) -> Scene:
        run = self.state.run(self.buffers.kept_by_cut["kept"])
        return Scene(
            self.subscribers.layout(),
            self.window.layout(),
            self.buffers.layout(),
            self.calendar.layout(),
            self.state.journal(),
            run,
            self.state.changes,
        )

    def _make_room_for_changes(self) -> None:
        self.state.grow_changes(int(most_changes(self.state.journal(), self.subscribers.layout(), self.buffers.layout())))

    def _tell(self) -> RankChanges:
        """The changes so far, with those of the lists that were remembered and not yet reckoned with."""
        parts = (self.subscribers.layout(), self.window.layout(), self.buffers.layout())
        if not reckon(self.state.journal(), *parts, self.tick, self.state.changes):
            self._make_room_for_changes()
            reckon(self.state.journal(), *parts, self.tick, self.state.changes)
        return self.state.take_changes(self.window, self.rules.is_net)

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

    def lists(self, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """The lists of these subscriptions one after the other: subscription, message, score, best first."""
        buffers = self.buffers.layout()
        n_shown = np.minimum(self.subscribers.layout().k[numbers], buffers.size[numbers]).astype(np.int64)
        first = np.cumsum(n_shown) - n_shown
        at = np.repeat(buffers.start[numbers] - first, n_shown) + np.arange(int(n_shown.sum()))
        return np.repeat(numbers, n_shown).astype(np.int32), buffers.number[at], buffers.score[at]

    def n_bytes(self) -> dict[str, int]:
        """Memory by part."""
        parts: dict[str, Any] = {"subscribers": self.subscribers, "window": self.window, "window_index": self.window_index}
        parts |= {"buffers": self.buffers, "calendar": self.calendar}
        return {name: int(part.n_bytes) for name, part in parts.items()}
