"""What every index of the window is: it finds the most relevant messages for a subscription."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.window_search import SearchLimits
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import MessageWindow


class Best(NamedTuple):
    """Of subscription i of those asked for, from `start[i]` on, `n[i]` messages, best first."""

    start: NDArray[np.int64]
    n: NDArray[np.int32]
    number: NDArray[np.int64]
    score: NDArray[np.float64]


EVERYTHING = SearchLimits(0, 1 << 62, 0.0)


class WindowIndex(ABC):
    """Holds messages by sequence number. What has not arrived yet, or is over, is told by the window and never found."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str]
    summary: ClassVar[str]

    def __init__(self, ground: DistanceScale) -> None:
        self.ground = ground

    @abstractmethod
    def add(self, window: MessageWindow, first: int) -> None:
        """File the messages from place `first` on; those before have arrived, and some may be over."""

    @abstractmethod
    def rebuild(self, window: MessageWindow) -> None:
        """File everything anew: words have other weights, or nothing is filed yet."""

    @abstractmethod
    def best(
        self,
        subscribers: RankedSubscriptions,
        window: MessageWindow,
        numbers: NDArray[np.int32],
        n_wanted: NDArray[np.int32],
        limits: SearchLimits = EVERYTHING,
    ) -> Best:
        """The best living messages of each of these subscriptions, at most `n_wanted` for each."""

    @abstractmethod
    def work(self) -> dict[str, int]:
        """What all searches so far came to: parts visited, entries looked at, messages scored."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Memory of the structure."""
