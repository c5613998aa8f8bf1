"""What every index of ranked subscriptions does: find the subscriptions that a message may be among the best k of.

A `RankedIndex` finds for many messages at once. The indexes of the papers find message by message; they are `TickIndex`es
(`papers/ranked/skyband/tick_index.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.registry import Parameters
from nearcast.ranked.kernels.layouts import RankedSubscriptionArrays, ScoredMatches, WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptions


class DistanceScale(NamedTuple):
    """How distances are measured, and the distance at which proximity is 0."""

    is_lonlat: bool
    max_distance: float


class RankedIndex(ABC):
    """Files subscriptions by keywords, location and threshold: the score below which a message is of no use to them.

    Subscriptions live in `RankedSubscriptions`, thresholds in the result lists; the engine owns both. A lower threshold must
    be reported before the next message (`thresholds_lowered`). A higher one may be reported at any time later, or never
    (`thresholds_raised`).
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str]
    summary: ClassVar[str]
    parameters_class: ClassVar[type[Parameters]] = Parameters
    finds_ahead: ClassVar[bool] = True
    """Whether it has `find`. Indexes of papers that find message by message do not."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def learn(self, subscriptions: RankedSubscriptions, window: WindowArrays) -> None:  # noqa: B027 - most have nothing to learn
        """Look at the messages of the window, between calls. Some indexes arrange themselves by what messages are like."""

    @abstractmethod
    def build(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], distances: DistanceScale) -> None:
        """File every living subscription, and drop what was filed before."""

    @abstractmethod
    def insert(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """File these subscriptions."""

    @abstractmethod
    def delete(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """Remove these subscriptions; their rows are still those they were filed with."""

    @abstractmethod
    def thresholds_lowered(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        """These thresholds have fallen."""

    @abstractmethod
    def thresholds_raised(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        """These thresholds have risen."""

    @abstractmethod
    def find(
        self, subscriptions: RankedSubscriptionArrays, window: WindowArrays, first: int, last: int, counters: NDArray[np.int64]
    ) -> ScoredMatches:
        """The subscriptions whose thresholds the messages at positions `first` … `last - 1` reach, with scores.

        The work is added to `counters`. If the messages reach many subscriptions the result may cover fewer messages, at least
        one (see its `last`). It is valid until a threshold falls (`find_more`), a subscription comes, or the next call.
        """

    @abstractmethod
    def find_more(
        self,
        subscriptions: RankedSubscriptionArrays,
        window: WindowArrays,
        matches: ScoredMatches,
        position: int,
        numbers: NDArray[np.int32],
    ) -> ScoredMatches:
        """The matches from `position` on, and those of these subscriptions, whose thresholds have fallen."""

    @abstractmethod
    def explain(self, subscriptions: RankedSubscriptions, number: int) -> list[str]:
        """Where a subscription is filed, in words."""

    def stats(self) -> dict[str, int | float]:
        """Sizes of the structure: bytes, and other figures worth plotting."""
        return {"bytes": sum(array.nbytes for array in self.arrays().values())}

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that must be saved to open the index again."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]], distances: DistanceScale) -> None:
        """Take over the arrays that `arrays` returned, possibly memory-mapped."""

    def facts(self) -> dict[str, Any]:
        """Name and parameters, as saved with the arrays."""
        return {"name": self.name, "parameters": asdict(self.parameters)}


def with_more(matches: ScoredMatches, position: int, more: ScoredMatches) -> ScoredMatches:
    """The matches from `position` on, joined with more matches for the same messages."""
    start = matches.start[position - matches.first :]
    begin = int(start[0])
    insert_at = np.repeat(start[1:] - begin, np.diff(more.start))
    subscription = np.insert(matches.subscription[begin:], insert_at, more.subscription)
    score = np.insert(matches.score[begin:], insert_at, more.score)
    return ScoredMatches(position, matches.last, start - begin + more.start, subscription, score)
