"""A version of the index as one process uses it: plan, routing table and shards, opened when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.boolean.engine import Matcher
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.pipeline.host_cache import fetched, opened, warm_up_once
from nearcast.pipeline.index.shard_folder import WORDS, OpenShard, empty_shard
from nearcast.pipeline.index.version import IndexVersion, delta_folder, routing_folder
from nearcast.pipeline.plan.routing import NOBODY, RoutingTable
from nearcast.pipeline.plan.shard_plan import AREA as PLANS
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import word_nodes
from nearcast.pipeline.store import Store
from nearcast.pipeline.versions import version_name

REMOVED = "removed.parquet"


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Where a version is, for processes that open it; plain data, so that it travels."""

    store: Store
    shared_dir: str
    version: IndexVersion

    @property
    def plan(self) -> ShardPlan:
        return open_plan_here(self.store, self.shared_dir, self.version.plan)

    def routing_table(self) -> RoutingTable:
        """The words of the version, its deltas included."""
        version = self.version
        return opened(("routing", self.store.identity, version.base, version.deltas), self._read_routing_table)

    def _read_routing_table(self) -> RoutingTable:
        plan = self.plan
        keywords = KeywordKind(plan.analysis)
        folders = [routing_folder(self.version.base), *[delta_folder(number) for number in self.version.deltas]]
        tables = [pq.read_table(fetched(self.store, folder, self.shared_dir) / WORDS) for folder in folders]
        ids = [keywords.encode(table["keyword"].combine_chunks(), grow=True).ids for table in tables]
        child = [np.full(keywords.n, NOBODY, np.int32) for _ in word_nodes(plan.root)]
        for table, words in zip(tables, ids, strict=True):
            node, leads_to = table["node"].to_numpy(), table["child"].to_numpy()
            for number in range(len(child)):
                child[number][words[node == number]] = leads_to[node == number]
        return RoutingTable(keywords, child, self.version.has_wordless)

    def shard(self, number: int) -> OpenShard:
        """A shard with all deltas of the version. A process keeps one state of it and goes on from there where it can."""
        state: _ShardState = opened(("shard", self.store.identity, self.version.base, number), _ShardState)
        done, wanted = state.deltas, self.version.deltas
        if state.shard is None or done != wanted[: len(done)]:
            state.shard, state.deltas = self._open_base(number), ()
        for delta in wanted[len(state.deltas) :]:
            folder = fetched(self.store, delta_folder(delta), self.shared_dir)
            removed = pq.read_table(folder / REMOVED)["id"].combine_chunks()
            state.shard.change(removed, pq.read_table(folder / shard_file(number)))
            state.deltas = (*state.deltas, delta)
        return state.shard

    def _open_base(self, number: int) -> OpenShard:
        base = self.version.shards[number]
        if not base.folder:
            return empty_shard(number, self.plan, "auto", {}, None)
        folder = fetched(self.store, base.folder, self.shared_dir)
        return OpenShard.open(number, self.version.n_shards, folder)

    def warm_up(self) -> None:
        """Compile the kernels of an index once per host, before its processes all do it at the same time."""
        warm_up_once("matcher", _match_a_little, self.shared_dir)


class _ShardState:
    """The one state of a shard that a process keeps."""

    def __init__(self) -> None:
        self.shard: OpenShard | None = None
        self.deltas: tuple[int, ...] = ()


def shard_file(number: int) -> str:
    return f"shard-{number}.parquet"


def open_plan_here(store: Store, shared_dir: str, version: int) -> ShardPlan:
    """A plan by way of the host's folder."""
    name = f"{PLANS}/{version_name(version)}"
    return opened(("plan", store.identity, version), lambda: ShardPlan.open(fetched(store, name, shared_dir)))


def _match_a_little() -> None:
    for keywords in ([["a"], ["b"]], [[1], [2]]):
        lists = pa.array(keywords, pa.list_(pa.string() if isinstance(keywords[0][0], str) else pa.int32()))
        columns: dict[str, Any] = {"id": [1, 2], "keywords": lists}
        sides = {"x0": [0.0, 1.0], "y0": [0.0, 1.0], "x1": [1.0, 2.0], "y1": [1.0, 2.0]}
        matcher = Matcher()
        matcher.subscribe_table(pa.table({**columns, **sides}))
        matcher.match_table(pa.table({**columns, "x": [0.5, 1.5], "y": [0.5, 1.5]}))
