"""What every ranked index is: it finds the subscriptions an arriving message may be among the best of.

`AheadIndex` finds for many messages at once. Indexes that the ticks of the papers go through message by message are
`TickIndex` (`papers/ranked/skyband/tick_index.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.registry import Parameters
from nearcast.ranked.kernels.layouts import FoundArrays, RankedSubscriptionArrays, WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptions


class DistanceScale(NamedTuple):
    """What distances mean here."""

    is_lonlat: bool
    max_distance: float


class RankedIndex(ABC):
    """Files subscriptions by words, place and threshold: the score below which a message is of no use to them.

    Subscriptions live in `RankedSubscriptions`, thresholds in the result lists; the engine owns both. A threshold that falls
    must be reported before the next message (`lowered`); one that rises may be reported any time later, or never (`raised`).
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str]
    summary: ClassVar[str]
    parameters_class: ClassVar[type[Parameters]] = Parameters

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def learn(self, subscribers: RankedSubscriptions, window: WindowArrays) -> None:  # noqa: B027 - most have nothing to learn
        """Look at the messages there are, between calls: some indexes put themselves in order by what messages are like."""

    @abstractmethod
    def build(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], ground: DistanceScale) -> None:
        """File every living subscription, forgetting what was filed before."""

    @abstractmethod
    def insert(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """File these subscriptions."""

    @abstractmethod
    def delete(self, subscribers: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """Unfile these subscriptions; their rows are still those they were filed with."""

    @abstractmethod
    def lowered(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Take note of lower thresholds."""

    @abstractmethod
    def raised(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Take note of higher thresholds."""

    @abstractmethod
    def explain(self, subscribers: RankedSubscriptions, number: int) -> list[str]:
        """Where a subscription is filed, in words."""

    def stats(self) -> dict[str, int | float]:
        """Sizes of the structure: bytes, and what else is worth plotting."""
        return {"bytes": sum(array.nbytes for array in self.arrays().values())}

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that must be saved to open the index again."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]], ground: DistanceScale) -> None:
        """Take over arrays that `arrays` gave, possibly memory-mapped."""

    def facts(self) -> dict[str, Any]:
        """Name and parameters, as saved beside the arrays."""
        return {"name": self.name, "parameters": asdict(self.parameters)}


class AheadIndex(RankedIndex):
    """A ranked index that finds the subscriptions of several messages before the first of them arrives.

    What it found holds until a threshold falls (`find_too`) or a subscription comes.
    """

    @abstractmethod
    def find(
        self, subscribers: RankedSubscriptionArrays, window: WindowArrays, first: int, last: int, counters: NDArray[np.int64]
    ) -> FoundArrays:
        """Whose thresholds the messages at places `first` … `last - 1` reach; the work is added to `counters`.

        If they reach many it may be fewer messages, at least one: `last` of what is found tells. It holds until the next is.
        """

    @abstractmethod
    def find_too(
        self,
        subscribers: RankedSubscriptionArrays,
        window: WindowArrays,
        found: FoundArrays,
        place: int,
        numbers: NDArray[np.int32],
    ) -> FoundArrays:
        """What was found from `place` on, and the same for these subscriptions, whose thresholds are others now."""


def with_more(found: FoundArrays, place: int, more: FoundArrays) -> FoundArrays:
    """What was found from `place` on, and what more was found for the same messages."""
    start = found.start[place - found.first :]
    begin = int(start[0])
    behind = np.repeat(start[1:] - begin, np.diff(more.start))
    subscriber = np.insert(found.subscriber[begin:], behind, more.subscriber)
    score = np.insert(found.score[begin:], behind, more.score)
    return FoundArrays(place, found.last, start - begin + more.start, subscriber, score)
