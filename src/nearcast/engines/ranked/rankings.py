"""Which ranked engine, with which buffer, goes with which index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearcast.engines.ranked.buffer_kinds import BUFFER_KINDS, Floor, buffer_kind
from nearcast.engines.ranked.buffered_ranking import BufferedRanking
from nearcast.engines.ranked.floor_ranking import FloorRanking
from nearcast.engines.ranked.ranking import Ranking
from nearcast.engines.registry import create
from nearcast.errors import IndexParameterError
from nearcast.indexes.ranked_base import AheadIndex, RankedIndex
from nearcast.indexes.ranked_indexes import RANKED_INDEXES
from nearcast.indexes.window_base import WindowIndex
from nearcast.model.window import CountWindow, TimeWindow

AUTO = "cost_skyband"


def make_ranking(
    window: CountWindow | TimeWindow,
    index: RankedIndex,
    buffer: tuple[str, Mapping[str, Any]],
    window_index: WindowIndex,
    is_net: bool,
) -> Ranking:
    """An empty ranking; `buffer` is a name with options, "auto" the best one that goes with the index."""
    name, options = buffer
    kind = buffer_kind(_automatic(index) if name == "auto" else name, dict(options))
    if not isinstance(kind, Floor):
        return BufferedRanking(window, index, kind, window_index, is_net)
    if not isinstance(index, AheadIndex):
        raise IndexParameterError(f"buffer 'floor' does not go with index {index.name!r}; give another buffer, or 'auto'")
    return FloorRanking(window, index, kind, window_index, is_net)


def buffers_for(index: str) -> list[str]:
    """The names of the buffers that go with an index, the best one first."""
    best = _automatic(create(RANKED_INDEXES, index, {}))
    others = [name for name in BUFFER_KINDS if name not in (best, Floor.name)]
    return [best, *others]


def saved_buffer(index: str | None, saved: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The buffer of a saved ranker that is opened with an index of this name, or with its own.

    It stays, unless it does not go with the index, or the index has one of its own.
    """
    if index is not None:
        best, *others = buffers_for(index)
        if saved["name"] != best and (best == Floor.name or saved["name"] not in others):
            return "auto", {}
    return saved["name"], saved["parameters"]


def _automatic(index: RankedIndex) -> str:
    return Floor.name if isinstance(index, AheadIndex) else AUTO
