"""Subscriptions made from messages: some keywords of a sampled message, a box around its place.

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
from nearcast.workloads.randomness import draw, integers, lane_of, stream_key, twist_of, uniforms
from nearcast.workloads.tables import Boxes, KeywordLists, joined, starts_of

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
    """How many keywords and how large a box; `range_low` and `range_high` in percent of the side or of the area.

    `square=False` gives width and height a size of their own each. With `chooser`, keywords are drawn from the word
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
            piece = self.boxes_around(source.locations(sampled), source.bounds, ids, seed)
            for column, values in zip(boxes, piece, strict=True):
                column[first : first + ids.size] = values
        return joined(lists), boxes

    def choose_lists(
        self, source: MessageSource, sampled: NDArray[np.int64], ids: NDArray[np.int64], seed: int
    ) -> KeywordLists:
        """The keywords of subscriptions `ids`, from the messages `sampled` for them."""
        wanted = integers(stream_key(seed, "keyword count"), ids, *self.keyword_span)
        if self.chooser is not None:
            return self.chooser.lists(ids, wanted, seed, "subscription keyword")
        offered = source.keywords(sampled)
        start = starts_of(np.minimum(wanted, np.diff(offered.start)))
        keyword = np.empty(int(start[-1]), np.int32)
        fill_chosen(offered, stream_key(seed, "chosen keyword"), ids, start, keyword)
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
        across = self._side_share(uniforms(key, ids)) * ((bounds[2] - bounds[0]) / 2)
        upright = self._side_share(uniforms(key, ids, slot=0 if self.square else 1)) * ((bounds[3] - bounds[1]) / 2)
        x, y = centre
        return Boxes(x - across, y - upright, x + across, y + upright)

    def _side_share(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        share = (self.range_low + (self.range_high - self.range_low) * uniform) / 100
        return np.sqrt(share) if self.range == "area" else share


@kernel
def fill_chosen(offered: Any, key: Any, ids: Any, start: Any, keyword: Any) -> None:
    """Write a random subset of each offered list; the offered lists are shuffled in place (Fisher and Yates, cut short)."""
    for row in range(ids.size):
        lane = lane_of(key, ids[row])
        twist = twist_of(key, ids[row])
        first = offered.start[row]
        n_offered = offered.start[row + 1] - first
        for taken in range(start[row + 1] - start[row]):
            other = taken + ((draw(lane, twist, taken) * (n_offered - taken)) >> 32)
            chosen = offered.keyword[first + other]
            offered.keyword[first + other] = offered.keyword[first + taken]
            keyword[start[row] + taken] = chosen
