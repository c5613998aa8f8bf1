"""How a stream is cut into shards, and from which batch on. A batch that runs again finds the same one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nearcast.pipeline.keeping.areas import ShardArea
from nearcast.pipeline.keeping.batch_log import LoggedBatch
from nearcast.pipeline.keeping.shard_engine import ShardEngine
from nearcast.pipeline.store import Store, next_version, stored_versions, version_name

_FACTS, _RESERVED = "layout.json", "reserved"


@dataclass(frozen=True, slots=True)
class Layout:
    """The shards of all batches from `first_batch` on, until the next layout."""

    number: int
    first_batch: int
    mechanism: str
    n_shards: int
    wish: str = ""
    """What it was asked for by, if it was."""


@dataclass(frozen=True, slots=True)
class ShardPlace(ABC):
    """A stream in one layout, for processes that work on it; plain data, so that it travels. `rules` say what is computed."""

    store: Store
    shared_dir: str
    stream: str
    rules: Any
    layout: Layout

    @property
    @abstractmethod
    def area(self) -> ShardArea: ...

    @abstractmethod
    def batch(self, number: int) -> LoggedBatch:
        """A batch of the log."""

    @abstractmethod
    def new_engine(self, shard: int) -> ShardEngine:
        """A shard without anything."""

    @abstractmethod
    def open_engine(self, shard: int, folder: Path) -> ShardEngine:
        """A shard that was saved in a folder."""


def reserve_layout(store: Store, area: ShardArea) -> int:
    """A number that no layout has had, nor will have: not even one that is never published."""
    number = next_version(store, [area.layouts])
    store.write_bytes(f"{layout_folder(area, number)}/{_RESERVED}", b"")
    return number


def publish_layout(store: Store, area: ShardArea, layout: Layout) -> None:
    """Let a layout count from its first batch on."""
    store.write_json(f"{layout_folder(area, layout.number)}/{_FACTS}", asdict(layout))


def stored_layouts(store: Store, area: ShardArea) -> list[Layout]:
    """All layouts that count, in order."""
    numbers = stored_versions(store, area.layouts)
    names = [f"{layout_folder(area, number)}/{_FACTS}" for number in numbers]
    return [Layout(**store.read_json(name)) for name in names if store.exists(name)]


def layout_of(store: Store, area: ShardArea, batch: int) -> Layout | None:
    """The layout of a batch; None before the first."""
    fitting = [layout for layout in stored_layouts(store, area) if layout.first_batch <= batch]
    return fitting[-1] if fitting else None


def layout_folder(area: ShardArea, number: int) -> str:
    return f"{area.layouts}/{version_name(number)}"
