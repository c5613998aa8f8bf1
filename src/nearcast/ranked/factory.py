"""Which ranked engine, with which buffer, goes with which index.

The engine that is driven message by message and its buffers are of the papers: they are loaded by name when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from nearcast.engine.registry import create
from nearcast.errors import IndexParameterError
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.index import AheadIndex, RankedIndex
from nearcast.ranked.indexes import RANKED_INDEXES
from nearcast.ranked.result_lists import BufferKind, Floor
from nearcast.ranked.tick_engine import Ranking, TickEngine
from nearcast.ranked.window_index import WindowIndex

# Module and class of each buffer, and of the engine for those other than "floor".
BUFFER_KINDS = {
    "cost_skyband": ("nearcast.papers.ranked.skyband.buffers", "CostSkyband"),
    "skyband": ("nearcast.papers.ranked.skyband.buffers", "Skyband"),
    "kmax": ("nearcast.papers.ranked.skyband.buffers", "KMax"),
    "floor": ("nearcast.ranked.result_lists", "Floor"),
}
_SKYBAND_ENGINE = ("nearcast.papers.ranked.skyband.engine", "SkybandEngine")
AUTO = "cost_skyband"
# What goes with every buffer but "floor".
TICK_INDEX = "group_pruned"


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
    if isinstance(index, AheadIndex):
        if not isinstance(kind, Floor):
            raise IndexParameterError(
                f"buffer {kind.name!r} does not go with index {index.name!r}; expected 'floor' or 'auto': "
                f"give one of these, or an index that is driven message by message, as {TICK_INDEX!r} is"
            )
        return TickEngine(window, index, kind, window_index, is_net)
    if isinstance(kind, Floor):
        raise IndexParameterError(f"buffer 'floor' does not go with index {index.name!r}; give another buffer, or 'auto'")
    engine: type[Ranking] = _load(*_SKYBAND_ENGINE)
    return engine(window, index, kind, window_index, is_net)


def buffer_kind(name: str, parameters: dict[str, Any]) -> BufferKind:
    """A kind by name."""
    if name not in BUFFER_KINDS:
        raise IndexParameterError(f"there is no buffer {name!r}; there are auto, {', '.join(BUFFER_KINDS)}")
    chosen: type[BufferKind] = _load(*BUFFER_KINDS[name])
    known = [field.name for field in fields(chosen)]
    unknown = [given for given in parameters if given not in known]
    if unknown:
        raise IndexParameterError(f"buffer {chosen.name!r} has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    return chosen(**parameters)


def buffers_for(index: str) -> list[str]:
    """The names of the buffers that go with an index, the best one first."""
    best = _automatic(create(RANKED_INDEXES, index, {}))
    return [best] if best == Floor.name else [best, *(name for name in BUFFER_KINDS if name not in (best, Floor.name))]


def saved_buffer(index: str | None, saved: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The buffer of a saved ranker that is opened with an index of this name, or with its own.

    It stays, unless it does not go with the index.
    """
    if index is not None and saved["name"] not in buffers_for(index):
        return "auto", {}
    return saved["name"], saved["parameters"]


def _automatic(index: RankedIndex) -> str:
    return Floor.name if isinstance(index, AheadIndex) else AUTO


def _load(module: str, name: str) -> Any:
    return getattr(import_module(module), name)
