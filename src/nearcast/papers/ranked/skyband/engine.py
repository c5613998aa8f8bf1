"""The ranked engine of the papers: lists in order, what they were before in a journal, changes as the difference of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.model.window import CountWindow, TimeWindow
from nearcast.papers.ranked.skyband.buffers import Calendar, ResultBuffers
from nearcast.papers.ranked.skyband.kernels.ticks import most_changes, reckon, remember_all
from nearcast.papers.ranked.skyband.tick_index import Scene, TickIndex, TickState
from nearcast.ranked.kernels.layouts import DONE, LACKS_JOURNAL, LACKS_OUTPUT, N_CUT, N_LACKING, PHASE, TELL
from nearcast.ranked.rank_changes import RankChanges
from nearcast.ranked.result_lists import BufferKind
from nearcast.ranked.subscriptions import RankedSubscriptionBatch
from nearcast.ranked.tick_engine import FILLED_AT_ONCE, Lists, Ranking, span_of
from nearcast.ranked.window_index import WindowIndex


class SkybandEngine(Ranking):
    """Works with indexes that are driven message by message, and with every kind of buffer that is in order."""

    buffers: ResultBuffers
    calendar: Calendar
    state: TickState
    index: TickIndex

    def __init__(
        self,
        window: CountWindow | TimeWindow,
        index: TickIndex,
        buffer: BufferKind,
        window_index: WindowIndex,
        is_net: bool,
    ) -> None:
        super().__init__(window, index, buffer, window_index, is_net)
        self.buffers, self.calendar, self.state = ResultBuffers(buffer), Calendar(), TickState(span_of(window))
        self.index.build(self.subscribers, self.buffers.threshold, self.ground)

    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
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

    def weigh(self, weights: NDArray[np.float64]) -> RankChanges:
        numbers = self.subscribers.alive()
        self._grow(self.subscribers.n)
        self._remember(numbers)
        self.subscribers.weigh(weights)
        self.window.weigh(weights)
        self.window_index.rebuild(self.window)
        self._refill(numbers)
        self.index.build(self.subscribers, self.buffers.threshold, self.ground)
        return self._tell()

    def fill_anew(self) -> None:
        numbers = self.subscribers.alive()
        self._grow(self.subscribers.n)
        self.buffers.give_room(numbers, self.subscribers.layout().k[numbers])
        self._refill(numbers)

    def _run_ticks(self, phase: int) -> None:
        self._grow(self.subscribers.n)
        at = self.state.at
        at[PHASE] = phase
        while True:
            stopped = self.index.run_ticks(self._scene(), self.window.n, self.rules)
            if stopped == DONE:
                break
            if stopped == LACKS_JOURNAL:
                self.state.grow_journal()
            elif stopped == LACKS_OUTPUT:
                self._make_room_for_changes()
            else:
                self._refill_lacking()
                at[PHASE] = TELL
        self._tell_index_of_cuts()

    def _refill_lacking(self) -> None:
        run = self.state.run(self.buffers.kept_by_cut["kept"])
        lacking = run.lacking[: run.at[N_LACKING]].copy()
        run.is_lacking[lacking] = 0
        run.at[N_LACKING] = 0
        self.n_refills += len(lacking)
        before = self.buffers.threshold[lacking]
        self._refill(lacking)
        after = self.buffers.threshold[lacking]
        self.index.lowered(self.subscribers, self.buffers.threshold, lacking[after < before])
        self.index.raised(self.subscribers, self.buffers.threshold, lacking[after > before])

    def _tell_index_of_cuts(self) -> None:
        run = self.state.run(self.buffers.kept_by_cut["kept"])
        cut = run.cut[: run.at[N_CUT]].copy()
        run.is_cut[cut] = 0
        run.at[N_CUT] = 0
        self.index.raised(self.subscribers, self.buffers.threshold, cut)

    # --- parts of it -------------------------------------------------------------------------------------------------

    def _grow(self, n_subscribers: int) -> None:
        self.buffers.grow(n_subscribers)
        self.calendar.grow(n_subscribers, self.window.n)
        self.state.grow(n_subscribers, self.window.n, self.subscribers.most_words)

    def _refill(self, numbers: NDArray[np.int32]) -> None:
        """Fill buffers from the window; their lists were remembered before."""
        k = self.subscribers.layout().k
        for part in np.split(numbers, range(FILLED_AT_ONCE, len(numbers), FILLED_AT_ONCE)):
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

    def lists(self, numbers: NDArray[np.int32]) -> Lists:
        buffers = self.buffers.layout()
        n_shown = np.minimum(self.subscribers.layout().k[numbers], buffers.size[numbers]).astype(np.int64)
        first = np.cumsum(n_shown) - n_shown
        at = np.repeat(buffers.start[numbers] - first, n_shown) + np.arange(int(n_shown.sum()))
        return np.repeat(numbers, n_shown).astype(np.int32), buffers.number[at], buffers.score[at]

    def take_over(self, buffers: Mapping[str, NDArray[Any]], calendar: Mapping[str, NDArray[Any]]) -> None:
        self.buffers, self.calendar = ResultBuffers(self.buffers.kind, buffers), Calendar(calendar)
