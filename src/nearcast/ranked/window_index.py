"""What every index of the window does: find the most relevant messages for a subscription."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.window_search import SearchLimits
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import MessageWindow


class BestMessages(NamedTuple):
    """The `n[i]` best messages of subscription i, best first, from `start[i]` on."""

    start: NDArray[np.int64]
    n: NDArray[np.int32]
    number: NDArray[np.int64]
    score: NDArray[np.float64]


EVERYTHING = SearchLimits(0, 1 << 62, 0.0)


class WindowIndex(ABC):
    """Holds messages by sequence number.

    Messages that have not arrived or have expired, as the window says, are never found.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str]
    summary: ClassVar[str]

    def __init__(self, distances: DistanceScale) -> None:
        self.distances = distances

    @abstractmethod
    def add(self, window: MessageWindow, first: int) -> None:
        """Index the messages from position `first` on. Those before have arrived; some may have expired."""

    @abstractmethod
    def rebuild(self, window: MessageWindow) -> None:
        """Index everything again: the weights of words changed, or nothing is indexed."""

    @abstractmethod
    def best(
        self,
        subscriptions: RankedSubscriptions,
        window: MessageWindow,
        numbers: NDArray[np.int32],
        n_best: NDArray[np.int32],
        limits: SearchLimits = EVERYTHING,
    ) -> BestMessages:
        """The best living messages of each of these subscriptions, at most `n_best` for each."""

    @abstractmethod
    def work(self) -> dict[str, int]:
        """The work of all searches so far: parts visited, entries visited, messages scored."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Memory of the structure."""
