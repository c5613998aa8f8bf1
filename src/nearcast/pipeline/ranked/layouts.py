"""Layouts: how a ranked stream is cut into shards, from which batch on. A batch that runs again finds the same one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nearcast.pipeline.host_cache import fetched, opened
from nearcast.pipeline.ranked.batch_log import RankedArea
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.shard_plan import ShardPlan
from nearcast.pipeline.store import Store
from nearcast.pipeline.versions import next_version, stored_versions, version_name

_FACTS, _PLAN = "layout.json", "plan"


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
class RankedPlace:
    """A ranked stream in one layout, for processes that work on it; plain data, so that it travels."""

    store: Store
    shared_dir: str
    stream: str
    rules: RankingRules
    layout: Layout

    @property
    def area(self) -> RankedArea:
        return RankedArea(self.stream)

    @property
    def plan(self) -> ShardPlan:
        """The plan, to be read only: others of this process read it too."""
        return opened(self._key("plan"), self.plan_copy)

    def plan_copy(self) -> ShardPlan:
        """A plan of one's own, to whose words others may be added."""
        name = f"{layout_folder(self.area, self.layout.number)}/{_PLAN}"
        return ShardPlan.open(fetched(self.store, name, self.shared_dir))

    def _key(self, what: str) -> tuple[Any, ...]:
        return ("ranked", what, self.store.identity, self.stream, self.layout.number)


def store_plan(store: Store, area: RankedArea, plan: ShardPlan) -> int:
    """Store the plan of a layout that is still to be published; returns a number that no layout has had."""
    number = next_version(store, [area.layouts])
    with store.new_folder(f"{layout_folder(area, number)}/{_PLAN}") as local:
        plan.save(local)
    return number


def publish_layout(store: Store, area: RankedArea, layout: Layout) -> None:
    """Let a layout count from its first batch on."""
    store.write_json(f"{layout_folder(area, layout.number)}/{_FACTS}", asdict(layout))


def stored_layouts(store: Store, area: RankedArea) -> list[Layout]:
    """All layouts that count, in order."""
    numbers = stored_versions(store, area.layouts)
    names = [f"{layout_folder(area, number)}/{_FACTS}" for number in numbers]
    return [Layout(**store.read_json(name)) for name in names if store.exists(name)]


def layout_of(store: Store, area: RankedArea, batch: int) -> Layout | None:
    """The layout of a batch; None before the first."""
    fitting = [layout for layout in stored_layouts(store, area) if layout.first_batch <= batch]
    return fitting[-1] if fitting else None


def layout_folder(area: RankedArea, number: int) -> str:
    return f"{area.layouts}/{version_name(number)}"
