"""Another layout for a stream: somebody wishes it, and the stream fulfils the wish between two batches."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from nearcast.errors import PipelineError
from nearcast.pipeline.keeping.areas import RankedArea, ShardArea, TrackedArea
from nearcast.pipeline.keeping.layouts import Layout, ShardPlace, publish_layout, stored_layouts
from nearcast.pipeline.settings import PipelineSettings


@dataclass(frozen=True, slots=True)
class Wish:
    """So many shards, by this mechanism."""

    mechanism: str
    n_shards: int
    name: str


def area_with_shards(settings: PipelineSettings) -> ShardArea | None:
    """The area of the stream that the settings name if its shards have state, else None."""
    areas: list[ShardArea] = [RankedArea(settings.stream), TrackedArea(settings.stream)]
    return next((area for area in areas if stored_layouts(settings.store, area)), None)


def wish_layout(settings: PipelineSettings, n_shards: int | None) -> Layout:
    """Ask for another number of shards, or another mechanism if the settings name one; returns the layout in force."""
    area = area_with_shards(settings)
    if area is None:
        raise PipelineError(f"the stream {settings.stream!r} has no shards yet; run first: nearcast pipeline rank, or track")
    now = stored_layouts(settings.store, area)[-1]
    mechanism = now.mechanism if settings.mechanism == "auto" else settings.mechanism
    if isinstance(area, TrackedArea) and mechanism != now.mechanism:
        raise PipelineError(
            f"mechanism = {mechanism!r} was given for the stream {settings.stream!r}; a tracked stream is shared out by "
            f"{now.mechanism}: leave it out"
        )
    wish = {"mechanism": mechanism, "n_shards": n_shards or now.n_shards, "name": uuid.uuid4().hex}
    settings.store.write_json(area.wish, wish)
    return now


def layout_for(place: ShardPlace, number: int, move: Callable[[Wish], Layout]) -> Layout:
    """The layout of the batch `number` that is about to begin; `move` makes one that is wished and was not made yet."""
    store, area, now = place.store, place.area, place.layout
    if not store.exists(area.wish) or now.first_batch == number:
        return now
    wish = Wish(**store.read_json(area.wish))
    if wish.name != now.wish:
        now = move(wish)
        publish_layout(store, area, now)
    # Somebody may have wished for something else meanwhile.
    if store.read_json(area.wish)["name"] == wish.name:
        store.delete(area.wish)
    return now
