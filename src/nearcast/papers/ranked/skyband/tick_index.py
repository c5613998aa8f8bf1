"""What an index is that is driven message by message: the ticks run in its kernel, around its own search for candidates."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from nearcast.papers.ranked.skyband.kernels.buffers import BufferArrays
from nearcast.papers.ranked.skyband.kernels.calendar import CalendarArrays
from nearcast.papers.ranked.skyband.kernels.list_snapshots import JournalArrays
from nearcast.papers.ranked.skyband.kernels.ticks import RunArrays
from nearcast.ranked.index import RankedIndex
from nearcast.ranked.kernels.layouts import ChangeArrays, RankedSubscriptionArrays, WindowArrays
from nearcast.ranked.kernels.run_layout import Rules


class Scene(NamedTuple):
    """Everything a run of ticks reads and writes."""

    subscribers: RankedSubscriptionArrays
    window: WindowArrays
    buffers: BufferArrays
    calendar: CalendarArrays
    journal: JournalArrays
    run: RunArrays
    changes: ChangeArrays


class TickIndex(RankedIndex):
    """A ranked index that finds the subscriptions of a message when it arrives, with the thresholds of that moment."""

    @abstractmethod
    def run_ticks(self, scene: Scene, last: int, rules: Rules) -> int:
        """Let messages arrive up to place `last`, or what is due end; returns why it stopped (see `run_layout.py`)."""
