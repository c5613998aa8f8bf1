"""Snapshots of shards in the store: a shard as it was after some batch, to be opened in another process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from nearcast.pipeline.host_cache import host_folder, remove_orphans
from nearcast.pipeline.keeping.layouts import ShardPlace
from nearcast.pipeline.keeping.shard_engine import ShardEngine
from nearcast.pipeline.store import FILLING_PREFIX as FILLED

_BEFORE_ALL = -1
_MARK = "mark"
_FETCHED = ".snapshot-"


def save_snapshot(place: ShardPlace, shard: int, engine: ShardEngine, batch: int, mark: str) -> None:
    """Save a shard as it is after a batch, with the mark of this, unless that was done."""
    if not is_saved(place, shard, batch):
        with place.store.new_folder(place.area.snapshot(place.layout.number, batch, shard), last=_MARK) as folder:
            folder.mkdir()
            engine.save(folder)
            (folder / _MARK).write_text(mark)


def is_saved(place: ShardPlace, shard: int, batch: int) -> bool:
    """Whether a shard was saved after a batch, as a whole: the mark is the last of its files."""
    return place.store.exists(f"{place.area.snapshot(place.layout.number, batch, shard)}/{_MARK}")


def last_snapshot(place: ShardPlace, shard: int, number: int) -> tuple[ShardEngine, int, str]:
    """A shard as it was last saved up to batch `number`, or without anything; that batch, and its mark."""
    folder = place.area.snapshots(place.layout.number)
    saved = [int(name) for name in place.store.names(folder) if name.isdigit() and int(name) <= number]
    for batch in reversed(saved):
        if is_saved(place, shard, batch):
            with fetched_snapshot(place, shard, batch) as local:
                return place.open_engine(shard, local), batch, (local / _MARK).read_text()
    return place.new_engine(shard), _BEFORE_ALL, ""


@contextmanager
def fetched_snapshot(place: ShardPlace, shard: int, batch: int) -> Iterator[Path]:
    """A snapshot on this host; what is opened there is mapped, so that the folder may go afterwards."""
    parent = host_folder(place.shared_dir)
    parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{_FETCHED}{os.getpid()}-", dir=parent) as fetched_to:
        local = Path(fetched_to) / "shard"
        place.store.fetch_folder(place.area.snapshot(place.layout.number, batch, shard), local)
        yield local


def remove_left(shared_dir: Path) -> None:
    """Remove what processes of this host that were killed had fetched, and what they were about to save."""
    remove_orphans(shared_dir, _FETCHED)
    remove_orphans(Path(gettempdir()), FILLED)
