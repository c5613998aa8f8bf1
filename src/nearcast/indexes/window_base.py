"""What every index of the window is: it finds the most relevant messages for a subscription."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.subscribers import Subscribers
from nearcast.columns.window import MessageWindow
from nearcast.indexes.ranked_base import Ground


class Best(NamedTuple):
    """Of subscription i of those asked for, from `start[i]` on, `n[i]` messages, best first."""

    start: NDArray[np.int64]
    n: NDArray[np.int32]
    number: NDArray[np.int64]
    score: NDArray[np.float64]


class WindowIndex(ABC):
    """Holds messages by sequence number. What has not arrived yet, or is over, is told by the window and never found."""

    name: ClassVar[str]

    @abstractmethod
    def add(self, window: MessageWindow, first: int) -> None:
        """File the messages from place `first` on."""

    @abstractmethod
    def rebuild(self, window: MessageWindow) -> None:
        """File everything anew: places have changed."""

    @abstractmethod
    def best(
        self,
        subscribers: Subscribers,
        window: MessageWindow,
        ground: Ground,
        numbers: NDArray[np.int32],
        n_wanted: NDArray[np.int32],
        first_number: int = 0,
    ) -> Best:
        """The best living messages of each of these subscriptions, of those from sequence number `first_number` on."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Memory of the structure."""
