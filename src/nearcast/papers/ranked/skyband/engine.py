"""The ranked engine of the papers: ordered buffers, snapshots of lists before a call or tick, changes as differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.model.window import CountWindow, TimeWindow
from nearcast.papers.ranked.skyband.buffers import Calendar, ResultBuffers
from nearcast.papers.ranked.skyband.kernels.ticks import diff_snapshots, most_changes, snapshot_lists
from nearcast.papers.ranked.skyband.tick_index import SkybandRunState, TickArrays, TickIndex
from nearcast.ranked.kernels.layouts import DONE, LACKS_OUTPUT, LACKS_SNAPSHOTS, N_NEEDS_REFILL, N_TRUNCATED, PHASE, TELL
from nearcast.ranked.rank_changes import RankChanges
from nearcast.ranked.result_lists import BufferKind
from nearcast.ranked.subscriptions import RankedSubscriptionBatch
from nearcast.ranked.tick_engine import FILLED_AT_ONCE, Lists, RankedEngine, span_of
from nearcast.ranked.window_index import WindowIndex


class SkybandEngine(RankedEngine):
    """Works with indexes that find message by message, and with every buffer whose messages are ordered."""

    buffers: ResultBuffers
    calendar: Calendar
    state: SkybandRunState
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
        self.buffers, self.calendar, self.state = ResultBuffers(buffer), Calendar(), SkybandRunState(span_of(window))
        self.index.build(self.subscriptions, self.buffers.threshold, self.distances)

    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> RankChanges:
        known = batch.number[self.subscriptions.is_alive(batch.number)]
        # Rows for new subscriptions too, so that their empty lists have a snapshot.
        self._grow(max(self.subscriptions.n, int(batch.number.max(initial=-1)) + 1))
        self._snapshot(known)
        self._forget(known)
        self.subscriptions.put(batch, weights)
        self._snapshot(batch.number)
        self.buffers.reserve(batch.number, batch.k)
        self._refill(batch.number)
        self.index.insert(self.subscriptions, self.buffers.threshold, batch.number)
        return self._take_changes()

    def apply_word_weights(self, weights: NDArray[np.float64]) -> RankChanges:
        numbers = self.subscriptions.alive()
        self._grow(self.subscriptions.n)
        self._snapshot(numbers)
        self.subscriptions.apply_word_weights(weights)
        self.window.apply_word_weights(weights)
        self.window_index.rebuild(self.window)
        self._refill(numbers)
        self.index.build(self.subscriptions, self.buffers.threshold, self.distances)
        return self._take_changes()

    def refill_all(self) -> None:
        numbers = self.subscriptions.alive()
        self._grow(self.subscriptions.n)
        self.buffers.reserve(numbers, self.subscriptions.layout().k[numbers])
        self._refill(numbers)

    def _run_ticks(self, phase: int) -> None:
        self._grow(self.subscriptions.n)
        at = self.state.at
        at[PHASE] = phase
        while True:
            stopped = self.index.run_ticks(self._tick_arrays(), self.window.n, self.rules)
            if stopped == DONE:
                break
            if stopped == LACKS_SNAPSHOTS:
                self.state.grow_snapshots()
            elif stopped == LACKS_OUTPUT:
                self._reserve_changes()
            else:
                self._refill_during_run()
                at[PHASE] = TELL
        self._report_truncated()

    def _refill_during_run(self) -> None:
        run = self.state.run(self.buffers.kept_when_full["n_kept"])
        needs_refill = run.needs_refill[: run.at[N_NEEDS_REFILL]].copy()
        run.is_in_refill[needs_refill] = 0
        run.at[N_NEEDS_REFILL] = 0
        self.n_refills += len(needs_refill)
        before = self.buffers.threshold[needs_refill]
        self._refill(needs_refill)
        after = self.buffers.threshold[needs_refill]
        self.index.thresholds_lowered(self.subscriptions, self.buffers.threshold, needs_refill[after < before])
        self.index.thresholds_raised(self.subscriptions, self.buffers.threshold, needs_refill[after > before])

    def _report_truncated(self) -> None:
        run = self.state.run(self.buffers.kept_when_full["n_kept"])
        truncated = run.truncated[: run.at[N_TRUNCATED]].copy()
        run.is_truncated[truncated] = 0
        run.at[N_TRUNCATED] = 0
        self.index.thresholds_raised(self.subscriptions, self.buffers.threshold, truncated)

    # --- parts of it -------------------------------------------------------------------------------------------------

    def _grow(self, n_subscriptions: int) -> None:
        self.buffers.grow(n_subscriptions)
        self.calendar.grow(n_subscriptions, self.window.n)
        self.state.grow(n_subscriptions, self.window.n, self.subscriptions.most_words)

    def _refill(self, numbers: NDArray[np.int32]) -> None:
        """Fill buffers from the window; the caller has taken snapshots of their lists."""
        k = self.subscriptions.layout().k
        for batch in np.split(numbers, range(FILLED_AT_ONCE, len(numbers), FILLED_AT_ONCE)):
            best = self.window_index.best(self.subscriptions, self.window, batch, self.buffers.n_to_fetch(k[batch]))
            self.buffers.fill(batch, k, best, self.window.layout())
        self.calendar.schedule(numbers, self.buffers.layout(), self.window.layout())

    def _forget(self, numbers: NDArray[np.int32]) -> None:
        self.index.delete(self.subscriptions, numbers)
        self.calendar.forget(numbers, self.window.base)
        self.buffers.free(numbers)

    def _snapshot(self, numbers: NDArray[np.int32]) -> None:
        done = 0
        while True:
            done = snapshot_lists(self.state.snapshots(), self.subscriptions.layout(), self.buffers.layout(), numbers, done)
            if done == len(numbers):
                return
            self.state.grow_snapshots()

    def _tick_arrays(self) -> TickArrays:
        run = self.state.run(self.buffers.kept_when_full["n_kept"])
        return TickArrays(
            self.subscriptions.layout(),
            self.window.layout(),
            self.buffers.layout(),
            self.calendar.layout(),
            self.state.snapshots(),
            run,
            self.state.changes,
        )

    def _reserve_changes(self) -> None:
        self.state.grow_changes(int(most_changes(self.state.snapshots(), self.subscriptions.layout(), self.buffers.layout())))

    def _take_changes(self) -> RankChanges:
        """The changes so far, with those of snapshots that were not compared yet."""
        parts = (self.subscriptions.layout(), self.window.layout(), self.buffers.layout())
        if not diff_snapshots(self.state.snapshots(), *parts, self.tick, self.state.changes):
            self._reserve_changes()
            diff_snapshots(self.state.snapshots(), *parts, self.tick, self.state.changes)
        return self.state.take_changes(self.window, self.rules.is_net)

    def lists(self, numbers: NDArray[np.int32]) -> Lists:
        buffers = self.buffers.layout()
        n_shown = np.minimum(self.subscriptions.layout().k[numbers], buffers.size[numbers]).astype(np.int64)
        first = np.cumsum(n_shown) - n_shown
        at = np.repeat(buffers.start[numbers] - first, n_shown) + np.arange(int(n_shown.sum()))
        return np.repeat(numbers, n_shown).astype(np.int32), buffers.number[at], buffers.score[at]

    def restore_lists(self, buffers: Mapping[str, NDArray[Any]], calendar: Mapping[str, NDArray[Any]]) -> None:
        self.buffers, self.calendar = ResultBuffers(self.buffers.kind, buffers), Calendar(calendar)
