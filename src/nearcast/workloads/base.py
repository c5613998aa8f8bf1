"""What every workload offers: a stream of messages, a history before it, subscriptions, and the words of keyword ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.randomness import integers, stream_key
from nearcast.workloads.sampling import MessageSource, SubscriptionSampling
from nearcast.workloads.tables import Boxes, KeywordLists, keywords_as_words, message_table, subscription_table

Space = Literal["plane", "lonlat"]
HISTORY_SHARE = 0.05
LONLAT = (-180.0, -90.0, 180.0, 90.0)


class Workload(ABC):
    """A pool of numbered messages, and the stream, the history and the subscriptions that follow from it.

    A concrete workload is a frozen dataclass: its fields are the parameters, and equal parameters give equal tables. It defines
    the pool (`source`) and how subscriptions are sampled (`sampling`). Messages are numbered 0 ... size - 1; the number is the
    `id`.

    Messages have the columns `id`, `keywords`, `x`, `y` (or `x0`, `y0`, `x1`, `y1`) and `time`; subscriptions `id`, `keywords`,
    `x0`, `y0`, `x1`, `y1`. Keywords are ids that index `words`, unless the workload says otherwise.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    space: ClassVar[Space]

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """The number of words."""

    @property
    @abstractmethod
    def words(self) -> pa.Array:
        """The word of every keyword id, all distinct."""

    @property
    @abstractmethod
    def source(self) -> MessageSource:
        """The numbered messages."""

    @property
    @abstractmethod
    def sampling(self) -> SubscriptionSampling:
        """How subscriptions are made from them."""

    @property
    def sampling_source(self) -> MessageSource:
        """The messages that subscriptions are made from: all of them, unless a workload says otherwise."""
        return self.source

    @property
    def n_history(self) -> int:
        """The number of messages before the stream."""
        return int(self.source.size * HISTORY_SHARE)

    def messages_at(self, numbers: NDArray[np.int64]) -> pa.Table:
        """The messages with these numbers, in this order."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        if numbers.size and (int(numbers.min()) < 0 or int(numbers.max()) >= self.source.size):
            span = f"{numbers.min()} to {numbers.max()}"
            raise WorkloadError(
                f"the messages {span} were requested; {self.name} has 0 to {self.source.size - 1}; ask for those"
            )
        return message_table(numbers, self.source.keywords(numbers), self._extent(numbers), self.source.times(numbers))

    def messages(self, n: int, seed: int = 1) -> pa.Table:
        """The stream: `n` messages of the last 95 % of the pool, in time order; `seed` chooses where it starts."""
        n_stream = self.source.size - self.n_history
        if not 0 <= n <= n_stream:
            raise WorkloadError(
                f"n={n} messages asked for; the stream of {self.name} has {n_stream}; ask for fewer or for a larger pool"
            )
        start = integers(stream_key(seed, "stream"), np.zeros(1, np.int64), 0, n_stream - n)[0]
        return self.messages_at(self.n_history + start + np.arange(n))

    def history(self, n: int) -> pa.Table:
        """The first `n` messages of the first 5 % of the pool."""
        if not 0 <= n <= self.n_history:
            raise WorkloadError(f"n={n} messages asked for; the history of {self.name} has {self.n_history}; ask for fewer")
        return self.messages_at(np.arange(n))

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        """`n` subscriptions with ids 0 ... n - 1; a larger `n` keeps the earlier ones."""
        keywords, boxes = self.sample_subscriptions(n, seed)
        return subscription_table(np.arange(n), keywords, boxes)

    def sample_subscriptions(self, n: int, seed: int) -> tuple[KeywordLists, Boxes]:
        """Keywords and boxes as arrays, clipped to what the space allows."""
        if n < 0:
            raise WorkloadError(f"n={n} subscriptions cannot be made; give 0 or more")
        keywords, boxes = self.sampling.sample(self.sampling_source, n, seed)
        return keywords, clip_to_lonlat(boxes) if self.space == "lonlat" else boxes

    def _extent(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | Boxes:
        """A point for each message; workloads with range messages override this."""
        return self.source.locations(numbers)

    def word(self, keyword: int) -> str:
        """The word behind a keyword id."""
        if not 0 <= keyword < self.vocabulary_size:
            raise WorkloadError(f"keyword {keyword!r} is not an id of {self.name}; ids go from 0 to {self.vocabulary_size - 1}")
        return str(self.words[keyword].as_py())

    def with_words(self, table: pa.Table) -> pa.Table:
        """The same table with words (list<string>) in place of keyword ids."""
        return keywords_as_words(table, self.words)

    def describe(self) -> dict[str, Any]:
        """Name, space, vocabulary size and every parameter: what a report about the workload must state."""
        parameters: dict[str, Any] = (
            {field.name: getattr(self, field.name) for field in fields(self)} if is_dataclass(self) else {}
        )
        return {"name": self.name, "space": self.space, "vocabulary_size": self.vocabulary_size, **parameters}


def clip_to_lonlat(boxes: Boxes) -> Boxes:
    """The boxes, cut at the edge of the lon/lat plane."""
    lows = [np.maximum(column, edge) for column, edge in zip(boxes[:2], LONLAT[:2], strict=True)]
    highs = [np.minimum(column, edge) for column, edge in zip(boxes[2:], LONLAT[2:], strict=True)]
    return Boxes(*lows, *highs)
