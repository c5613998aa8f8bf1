"""A version of the index as one process uses it: plan, routing table and shards, opened when needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.boolean.engine import Matcher
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.pipeline.host_cache import fetch_to_host, open_once, run_once_per_host
from nearcast.pipeline.index.shard_folder import WORDS, OpenShard, empty_shard
from nearcast.pipeline.index.version import IndexVersion, delta_folder, routing_folder
from nearcast.pipeline.plan.routing import NO_CHILD, RoutingTable
from nearcast.pipeline.plan.shard_plan import PLANS, ShardPlan
from nearcast.pipeline.plan.shard_tree import word_nodes
from nearcast.pipeline.store import Store, version_name

REMOVED = "removed.parquet"


@dataclass(frozen=True, slots=True)
class IndexLocation:
    """The location of a version, for processes that open it. Plain data, so it can be pickled."""

    store: Store
    shared_dir: str
    version: IndexVersion

    @property
    def plan(self) -> ShardPlan:
        return open_plan_on_host(self.store, self.shared_dir, self.version.plan)

    def routing_table(self) -> RoutingTable:
        """The routing table of the version, including its deltas."""
        version = self.version
        return open_once(("routing", self.store.identity, version.base, version.deltas), self._read_routing_table)

    def _read_routing_table(self) -> RoutingTable:
        plan = self.plan
        keywords = KeywordKind(plan.analysis)
        folders = [routing_folder(self.version.base), *[delta_folder(number) for number in self.version.deltas]]
        tables = [pq.read_table(fetch_to_host(self.store, folder, self.shared_dir) / WORDS) for folder in folders]
        ids = [keywords.encode(table["keyword"].combine_chunks(), grow=True).ids for table in tables]
        child = [np.full(keywords.n, NO_CHILD, np.int32) for _ in word_nodes(plan.root)]
        for table, words in zip(tables, ids, strict=True):
            node, leads_to = table["node"].to_numpy(), table["child"].to_numpy()
            for number in range(len(child)):
                child[number][words[node == number]] = leads_to[node == number]
        return RoutingTable(keywords, child, self.version.has_wordless)

    def shard(self, number: int) -> OpenShard:
        """A shard with all deltas of the version. A process keeps one state of each shard and applies only new deltas to it."""
        state: _ShardState = open_once(("shard", self.store.identity, self.version.base, number), _ShardState)
        deltas = self.version.deltas
        if state.shard is None or state.deltas != deltas[: len(state.deltas)]:
            state.shard, state.deltas = self._open_base(number), ()
        for delta in deltas[len(state.deltas) :]:
            folder = fetch_to_host(self.store, delta_folder(delta), self.shared_dir)
            removed = pq.read_table(folder / REMOVED)["id"].combine_chunks()
            state.shard.change(removed, pq.read_table(folder / shard_file(number)))
            state.deltas = (*state.deltas, delta)
        return state.shard

    def _open_base(self, number: int) -> OpenShard:
        base = self.version.shards[number]
        if not base.folder:
            return empty_shard(number, self.plan, "auto", {}, None)
        folder = fetch_to_host(self.store, base.folder, self.shared_dir)
        return OpenShard.open(number, self.version.n_shards, folder)

    def warm_up(self) -> None:
        """Compile the kernels of an index once per host, so that its processes do not all do it at the same time."""
        run_once_per_host("matcher", _compile_matcher, self.shared_dir)


class _ShardState:
    """The state of a shard in this process: the open shard and the deltas applied to it."""

    def __init__(self) -> None:
        self.shard: OpenShard | None = None
        self.deltas: tuple[int, ...] = ()


def shard_file(number: int) -> str:
    return f"shard-{number}.parquet"


def open_plan_on_host(store: Store, shared_dir: str, version: int) -> ShardPlan:
    """A plan, through its copy on this host."""
    name = f"{PLANS}/{version_name(version)}"
    return open_once(("plan", store.identity, version), lambda: ShardPlan.open(fetch_to_host(store, name, shared_dir)))


def _compile_matcher() -> None:
    """Compile the kernels with a tiny matcher."""
    for keywords in ([["a"], ["b"]], [[1], [2]]):
        lists = pa.array(keywords, pa.list_(pa.string() if isinstance(keywords[0][0], str) else pa.int32()))
        columns: dict[str, Any] = {"id": [1, 2], "keywords": lists}
        bounds = {"x0": [0.0, 1.0], "y0": [0.0, 1.0], "x1": [1.0, 2.0], "y1": [1.0, 2.0]}
        matcher = Matcher()
        matcher.subscribe_table(pa.table({**columns, **bounds}))
        matcher.match_table(pa.table({**columns, "x": [0.5, 1.5], "y": [0.5, 1.5]}))
