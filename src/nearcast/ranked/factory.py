"""Which engine and which buffer go with an index.

The engine and the buffers of the papers are loaded by name when they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from nearcast.engine.registry import create
from nearcast.errors import IndexParameterError
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.index import RankedIndex
from nearcast.ranked.indexes import RANKED_INDEXES
from nearcast.ranked.result_lists import AboveThreshold, BufferKind
from nearcast.ranked.tick_engine import RankedEngine, TickEngine
from nearcast.ranked.window_index import WindowIndex

# Module and class of each buffer, and of the engine for all buffers but "floor".
BUFFER_KINDS = {
    "cost_skyband": ("nearcast.papers.ranked.skyband.buffers", "CostSkyband"),
    "skyband": ("nearcast.papers.ranked.skyband.buffers", "Skyband"),
    "kmax": ("nearcast.papers.ranked.skyband.buffers", "KMax"),
    "floor": ("nearcast.ranked.result_lists", "AboveThreshold"),
}
_SKYBAND_ENGINE = ("nearcast.papers.ranked.skyband.engine", "SkybandEngine")
AUTO = "cost_skyband"
# The index that goes with all buffers but "floor".
TICK_INDEX = "group_pruned"


def make_engine(
    window: CountWindow | TimeWindow,
    index: RankedIndex,
    buffer: tuple[str, Mapping[str, Any]],
    window_index: WindowIndex,
    is_net: bool,
) -> RankedEngine:
    """An empty engine. `buffer` is a name with options; "auto" is the best one for the index."""
    name, options = buffer
    kind = buffer_kind(_automatic(index) if name == "auto" else name, dict(options))
    if index.finds_ahead:
        if not isinstance(kind, AboveThreshold):
            raise IndexParameterError(
                f"buffer {kind.name!r} does not go with index {index.name!r}; expected 'floor' or 'auto': "
                f"give one of these, or an index that is driven message by message, as {TICK_INDEX!r} is"
            )
        return TickEngine(window, index, kind, window_index, is_net)
    if isinstance(kind, AboveThreshold):
        raise IndexParameterError(f"buffer 'floor' does not go with index {index.name!r}; give another buffer, or 'auto'")
    engine: type[RankedEngine] = _load(*_SKYBAND_ENGINE)
    return engine(window, index, kind, window_index, is_net)


def buffer_kind(name: str, parameters: dict[str, Any]) -> BufferKind:
    """A buffer kind by its name and options."""
    if name not in BUFFER_KINDS:
        raise IndexParameterError(f"there is no buffer {name!r}; there are auto, {', '.join(BUFFER_KINDS)}")
    kind_class: type[BufferKind] = _load(*BUFFER_KINDS[name])
    options = [field.name for field in fields(kind_class)]
    unknown = [option for option in parameters if option not in options]
    if unknown:
        raise IndexParameterError(
            f"buffer {kind_class.name!r} has no option {unknown[0]!r}; it has {', '.join(options) or 'none'}"
        )
    return kind_class(**parameters)


def buffers_for(index: str) -> list[str]:
    """The names of the buffers that go with an index, the best one first."""
    best = _automatic(create(RANKED_INDEXES, index, {}))
    return (
        [best]
        if best == AboveThreshold.name
        else [best, *(name for name in BUFFER_KINDS if name not in (best, AboveThreshold.name))]
    )


def saved_buffer(index: str | None, saved: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The buffer for a saved ranker that is opened with this index (None: its own).

    It is the saved one, or "auto" if that does not go with the index.
    """
    if index is not None and saved["name"] not in buffers_for(index):
        return "auto", {}
    return saved["name"], saved["parameters"]


def _automatic(index: RankedIndex) -> str:
    return AboveThreshold.name if index.finds_ahead else AUTO


def _load(module: str, name: str) -> Any:
    return getattr(import_module(module), name)
