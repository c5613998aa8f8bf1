"""What an index is that is driven message by message: the ticks run in its kernel, around its own search for candidates."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from nearcast.indexes.ranked_base import RankedIndex
from nearcast.kernels.calendar import CalendarArrays
from nearcast.kernels.journal import JournalArrays
from nearcast.kernels.ranked_layouts import ChangeArrays, SubscriberArrays, WindowArrays
from nearcast.kernels.result_buffers import BufferArrays
from nearcast.kernels.run_layout import Rules
from nearcast.kernels.ticks import RunArrays


class Scene(NamedTuple):
    """Everything a run of ticks reads and writes."""

    subscribers: SubscriberArrays
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
        """Let messages arrive up to place `last`, or what is due end; returns why it stopped (`kernels/run_layout.py`)."""
