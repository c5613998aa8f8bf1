"""How long a stream keeps its log and its snapshots: until every shard has been saved after them."""

from __future__ import annotations

from nearcast.pipeline.keeping.layouts import ShardPlace
from nearcast.pipeline.keeping.snapshots import is_saved

_LARGE_LOG = 256 << 20


def is_snapshot_due(place: ShardPlace, number: int, every: int) -> bool:
    """Whether shards are to be saved after batch `number`: the log since the last snapshot is long, or large."""
    since = number - last_complete(place, number)
    return since >= every or place.store.size(place.area.log(number)) > _LARGE_LOG


def last_complete(place: ShardPlace, number: int) -> int:
    """The last batch up to `number` after which all shards were saved; if none, the one before the layout's first."""
    folder = place.area.snapshots(place.layout.number)
    saved = [int(name) for name in place.store.names(folder) if name.isdigit() and int(name) <= number]
    for batch in reversed(saved):
        if all(is_saved(place, shard, batch) for shard in range(place.layout.n_shards)):
            return batch
    return place.layout.first_batch - 1


def remove_old(place: ShardPlace, number: int) -> None:
    """Remove what nobody needs any more when batch `number` is done; it may still have to be done again."""
    store, area = place.store, place.area
    last = last_complete(place, number - 1)
    folder = area.snapshots(place.layout.number)
    for name in store.names(folder):
        if name.isdigit() and int(name) < last:
            store.delete(f"{folder}/{name}")
    for name in store.names(f"{area.root}/snapshots"):
        if int(name) < place.layout.number:
            store.delete(f"{area.root}/snapshots/{name}")
    # Who starts from the snapshot needs the mark of its batch, and what was told in it.
    for kind, ending in (("log", ".arrow"), ("told", "")):
        for name in store.names(f"{area.root}/{kind}"):
            if int(name.removesuffix(ending)) < last:
                store.delete(f"{area.root}/{kind}/{name}")
