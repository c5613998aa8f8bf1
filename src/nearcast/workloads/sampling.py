"""Subscriptions made from messages: some keywords of a sampled message, a box around its location.

Paper: Wang et al. 2017 (AP-Tree), §5.1.1. The paper leaves open whether a range of 1 % is meant of the side or of the area.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.kernels.compile import kernel
from nearcast.workloads.pool import WordChooser
from nearcast.workloads.randomness import draw, high_key, integers, low_key, stream_key, uniforms
from nearcast.workloads.tables import Boxes, KeywordLists, concat_lists, starts_of

RangeReading = Literal["side", "area"]
CHUNK = 1 << 18


class MessageSource(Protocol):
    """Messages by number, synthetic or read from files."""

    @property
    def size(self) -> int: ...

    @property
    def bounds(self) -> tuple[float, float, float, float]: ...

    def keywords(self, numbers: NDArray[np.int64]) -> KeywordLists: ...

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class SubscriptionSampling:
    """The number of keywords and the size of boxes; `range_low` and `range_high` are percent of the side or of the area.

    With `square=False`, width and height are drawn independently. With `chooser`, keywords are drawn from the word
    distribution instead of the sampled message.
    """

    n_keywords: int | tuple[int, int] = (1, 5)
    range: RangeReading = "side"
    range_low: float = 0.01
    range_high: float = 1.0
    square: bool = True
    chooser: WordChooser | None = None

    def __post_init__(self) -> None:
        low, high = self.keyword_span
        if not 1 <= low <= high:
            raise WorkloadError(f"n_keywords={self.n_keywords!r} is not usable; give a number from 1 up, or (least, most)")
        if self.range not in ("side", "area"):
            raise WorkloadError(f"range={self.range!r} is unknown; give 'side' or 'area'")
        if not 0 <= self.range_low <= self.range_high:
            raise WorkloadError(
                f"range_low={self.range_low!r}, range_high={self.range_high!r} is not usable; give percent, 0 <= low <= high"
            )

    @property
    def keyword_span(self) -> tuple[int, int]:
        least, most = (self.n_keywords, self.n_keywords) if isinstance(self.n_keywords, int) else self.n_keywords
        return least, most

    def sample(self, source: MessageSource, n: int, seed: int) -> tuple[KeywordLists, Boxes]:
        """Keywords and boxes of subscriptions 0 ... n - 1."""
        lists: list[KeywordLists] = []
        boxes = Boxes(*(np.empty(n) for _ in range(4)))
        for first in range(0, n, CHUNK):
            ids = np.arange(first, min(first + CHUNK, n))
            sampled = integers(stream_key(seed, "sampled message"), ids, 0, source.size - 1)
            lists.append(self.choose_lists(source, sampled, ids, seed))
            chunk = self.boxes_around(source.locations(sampled), source.bounds, ids, seed)
            for column, values in zip(boxes, chunk, strict=True):
                column[first : first + ids.size] = values
        return concat_lists(lists), boxes

    def choose_lists(
        self, source: MessageSource, sampled: NDArray[np.int64], ids: NDArray[np.int64], seed: int
    ) -> KeywordLists:
        """The keywords of subscriptions `ids`, from the messages `sampled` for them."""
        n_keywords = integers(stream_key(seed, "keyword count"), ids, *self.keyword_span)
        if self.chooser is not None:
            return self.chooser.lists(ids, n_keywords, seed, "subscription keyword")
        lists = source.keywords(sampled)
        start = starts_of(np.minimum(n_keywords, np.diff(lists.start)))
        keyword = np.empty(int(start[-1]), np.int32)
        fill_subsets(lists, stream_key(seed, "chosen keyword"), ids, start, keyword)
        return KeywordLists(start, keyword)

    def boxes_around(
        self,
        centre: tuple[NDArray[np.float64], NDArray[np.float64]],
        bounds: tuple[float, float, float, float],
        ids: NDArray[np.int64],
        seed: int,
    ) -> Boxes:
        """A box around each centre, its size relative to `bounds`."""
        key = stream_key(seed, "range")
        half_width = self._side_share(uniforms(key, ids)) * ((bounds[2] - bounds[0]) / 2)
        half_height = self._side_share(uniforms(key, ids, slot=0 if self.square else 1)) * ((bounds[3] - bounds[1]) / 2)
        x, y = centre
        return Boxes(x - half_width, y - half_height, x + half_width, y + half_height)

    def _side_share(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        share = (self.range_low + (self.range_high - self.range_low) * uniform) / 100
        return np.sqrt(share) if self.range == "area" else share


@kernel
def fill_subsets(lists: Any, key: Any, ids: Any, start: Any, keyword: Any) -> None:
    """Write a random subset of each list. The lists are shuffled in place (Fisher and Yates, stopped early)."""
    for row in range(ids.size):
        low = low_key(key, ids[row])
        high = high_key(key, ids[row])
        first = lists.start[row]
        length = lists.start[row + 1] - first
        for position in range(start[row + 1] - start[row]):
            other = position + ((draw(low, high, position) * (length - position)) >> 32)
            drawn = lists.keyword[first + other]
            lists.keyword[first + other] = lists.keyword[first + position]
            keyword[start[row] + position] = drawn
