"""A shard plan: the tree, the words it was made with, and its expected cost; stored as a folder of arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.folder import read_folder, write_folder
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext
from nearcast.model.analysis import Analysis
from nearcast.model.spaces import space_of
from nearcast.pipeline.plan.routing import WordOrder
from nearcast.pipeline.plan.shard_tree import IdNode, Node, Shard, SpaceNode, WordNode, inner_nodes
from nearcast.pipeline.store import Store, current_version, make_current, next_version, version_name

PLANS = "plans"
_FOLDER_KIND = "shard_plan"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost of a plan, from a sample.

    `load` is the expected work of each shard in µs per message of the stream; `balance` is mean over largest (1 = even).
    """

    mechanism: str
    n_shards: int
    replication: float
    communication: float
    load: list[float]
    balance: float
    cost: float


@dataclass(slots=True)
class ShardPlan:
    """The tree of a mechanism. `keywords` and `frequency` are those of the time of planning; later words go by a hash."""

    mechanism: str
    n_shards: int
    space: str
    analysis: Analysis
    root: Node
    keywords: KeywordKind
    frequency: NDArray[np.int64]
    estimate: Estimate | None = None
    others: list[Estimate] = field(default_factory=list)

    @property
    def border(self) -> ReadingContext:
        return ReadingContext(space_of(self.space), self.keywords, self.analysis)

    def word_order(self) -> WordOrder:
        return WordOrder.of(self.keywords, self.frequency)

    def save(self, folder: Path) -> None:
        nodes, arrays = _describe_tree(self.root)
        arrays.update({f"keywords.{name}": array for name, array in self.keywords.space.arrays().items()})
        facts = {
            "mechanism": self.mechanism,
            "n_shards": self.n_shards,
            "space": self.space,
            "analysis": self.analysis.to_dict(),
            "keyword_kind": self.keywords.name,
            "root": nodes,
            "estimate": None if self.estimate is None else asdict(self.estimate),
            "others": [asdict(other) for other in self.others],
        }
        write_folder(folder, _FOLDER_KIND, facts, {**arrays, "frequency": self.frequency})

    @classmethod
    def open(cls, folder: Path) -> ShardPlan:
        facts, arrays = read_folder(folder, _FOLDER_KIND)
        analysis = Analysis.from_dict(facts["analysis"])
        keyword_arrays = {name[9:]: array for name, array in arrays.items() if name.startswith("keywords.")}
        return cls(
            facts["mechanism"],
            facts["n_shards"],
            facts["space"],
            analysis,
            _restore_tree(facts["root"], arrays),
            KeywordKind.from_arrays(facts["keyword_kind"], keyword_arrays, analysis),
            arrays["frequency"],
            None if facts["estimate"] is None else Estimate(**facts["estimate"]),
            [Estimate(**other) for other in facts["others"]],
        )


def publish_plan(store: Store, plan: ShardPlan) -> int:
    """Store a plan as the next version; returns its number."""
    version = next_version(store, [PLANS])
    with store.new_folder(f"{PLANS}/{version_name(version)}") as folder:
        plan.save(folder)
    make_current(store, PLANS, version, current_version(store, PLANS))
    return version


def open_plan(store: Store, version: int) -> ShardPlan:
    """A stored plan with its own copy of the words, because routing may add to them."""
    with tempfile.TemporaryDirectory(prefix="nearcast-") as parent:
        folder = Path(parent) / "plan"
        store.fetch_folder(f"{PLANS}/{version_name(version)}", folder)
        return ShardPlan.open(folder)


def _describe_tree(root: Node) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The tree as plain data; its arrays by the number of their node in `inner_nodes`."""
    arrays: dict[str, NDArray[Any]] = {}
    number_of = {id(node): number for number, node in enumerate(inner_nodes(root))}

    def describe(node: Node) -> dict[str, Any]:
        if isinstance(node, Shard):
            return {"shard": node.number}
        number = number_of[id(node)]
        facts: dict[str, Any] = {"node": number, "children": [describe(child) for child in node.children]}
        if isinstance(node, SpaceNode):
            facts["by"] = "space"
            arrays[f"{number}.tile_child"] = node.tile_child
            for name, bounds in zip(("x0", "y0", "x1", "y1"), node.tiles, strict=True):
                arrays[f"{number}.{name}"] = bounds
        elif isinstance(node, WordNode):
            facts |= {"by": "words", "takes_all_words": node.takes_all_words}
            arrays[f"{number}.child_of_word"], arrays[f"{number}.bucket_child"] = node.child_of_word, node.bucket_child
        else:
            facts["by"] = "ids"
            arrays[f"{number}.bucket_child"] = node.bucket_child
        return facts

    return describe(root), arrays


def _restore_tree(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Node:
    if "shard" in facts:
        return Shard(facts["shard"])
    number = facts["node"]
    children = [_restore_tree(child, arrays) for child in facts["children"]]
    if facts["by"] == "space":
        tiles = np.stack([arrays[f"{number}.{name}"] for name in ("x0", "y0", "x1", "y1")])
        return SpaceNode(tiles, arrays[f"{number}.tile_child"], children)
    if facts["by"] == "words":
        words = arrays[f"{number}.child_of_word"]
        return WordNode(facts["takes_all_words"], words, arrays[f"{number}.bucket_child"], children)
    return IdNode(arrays[f"{number}.bucket_child"], children)
