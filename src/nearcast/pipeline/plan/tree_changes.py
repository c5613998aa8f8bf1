"""Change one node of a shard tree: split a shard in two, or merge two shards. The rest of the tree stays unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nearcast.pipeline.plan.shard_tree import IdNode, Node, Shard, SpaceNode, WordNode, inner_nodes
from nearcast.pipeline.plan.tree_building import PlanSample, cut_tile

Inner = SpaceNode | WordNode | IdNode


def split_shard(root: Node, shard: int, new: int, sample: PlanSample) -> tuple[Node, float]:
    """The tree with part of `shard` moved to the shard `new`, and the approximate share of its work that moved."""
    if isinstance(root, Shard):
        # A tree of one leaf: split by id, which always works.
        return IdNode(np.arange(1024, dtype=np.int32) % 2, [root, Shard(new)]), 0.5

    def change(node: Node) -> tuple[Node, float]:
        if isinstance(node, Shard):
            return node, 0.0
        children, moved = list(node.children), 0.0
        for number, child in enumerate(children):
            if isinstance(child, Shard) and child.number == shard:
                with_new, moved = _split_child(node, number, sample)
                return replace(with_new, children=[*children, Shard(new)]), moved
            children[number], moved = change(child)
            if moved:
                break
        return replace(node, children=children), moved

    return change(root)


def _split_child(node: Inner, child: int, sample: PlanSample) -> tuple[Inner, float]:
    """The node with part of a child moved to a new child, and the share of its messages that moved."""
    new = len(node.children)
    if isinstance(node, SpaceNode):
        return _split_tiles(node, child, new, sample)
    if isinstance(node, WordNode):
        return _split_words(node, child, new, sample)
    return replace(node, bucket_child=_every_second(node.bucket_child, child, new)), 0.5


def _split_tiles(node: SpaceNode, child: int, new: int, sample: PlanSample) -> tuple[SpaceNode, float]:
    child_tiles = np.flatnonzero(node.tile_child == child)
    messages = sample.messages.boxes
    tile_child = node.tile_child.copy()
    if len(child_tiles) > 1:
        # The child was merged from several tiles: half of them move.
        tile_child[child_tiles[len(child_tiles) // 2 :]] = new
        tiles = node.tiles
    else:
        tile = node.tiles[:, child_tiles[0]]
        inside = SpaceNode(tile[:, None], np.zeros(1, np.int32), [Shard(0)])
        clauses_inside, messages_inside = (boxes[:, inside.meets(boxes)[:, 0]] for boxes in (sample.clauses.boxes, messages))
        left, right = cut_tile(tile, clauses_inside, messages_inside, [1, 1], sample.work)
        tiles = np.concatenate([node.tiles, right[:, None]], axis=1)
        tiles[:, child_tiles[0]] = left
        tile_child = np.append(tile_child, np.int32(new))
    changed = SpaceNode(tiles, tile_child, [*node.children, Shard(-1)])
    meets = changed.meets(messages)
    return changed, _share(meets[:, child], meets[:, new])


def _split_words(node: WordNode, child: int, new: int, sample: PlanSample) -> tuple[WordNode, float]:
    words = np.flatnonzero(node.child_of_word == child)
    # From the word with the most messages: each goes to the side with fewer messages so far.
    weight = np.bincount(sample.messages.word, minlength=len(node.child_of_word))[words]
    moves = np.zeros(len(words), bool)
    total = [0, 0]
    for position in np.argsort(-weight, kind="stable").tolist():
        is_moved = total[1] < total[0]
        moves[position] = is_moved
        total[is_moved] += int(weight[position])
    child_of_word = node.child_of_word.copy()
    child_of_word[words[moves]] = new
    changed = replace(node, child_of_word=child_of_word, bucket_child=_every_second(node.bucket_child, child, new))
    return changed, total[1] / max(1, sum(total))


def _every_second(bucket_child: NDArray[np.int32], child: int, new: int) -> NDArray[np.int32]:
    changed = bucket_child.copy()
    changed[np.flatnonzero(bucket_child == child)[1::2]] = new
    return changed


def _share(stays: NDArray[np.bool_], goes: NDArray[np.bool_]) -> float:
    total = int(stays.sum() + goes.sum())
    return float(goes.sum() / total) if total else 0.5


def n_mergeable(root: Node) -> int:
    """The number of nodes with two shards that could be merged."""
    return sum(len(_leaves(node)) > 1 for node in inner_nodes(root))


def merge_shards(root: Node, load: Sequence[float]) -> tuple[Node, int, int]:
    """The tree with the idlest two shards of one node merged. The last shard gets the number that became free.

    Returns the tree, the shard that stays and the one that disappears (both with their old numbers).
    """
    pairs = []
    for node in inner_nodes(root):
        idlest = sorted(_leaves(node), key=lambda leaf: load[leaf[1]])[:2]
        if len(idlest) == 2:
            pairs.append((load[idlest[0][1]] + load[idlest[1][1]], idlest, node))
    _, ((_, target), (_, source)), merged_node = min(pairs, key=lambda pair: pair[0])
    last = len(load) - 1

    def change(node: Node) -> Node:
        if isinstance(node, Shard):
            return Shard(source) if node.number == last else node
        if node is not merged_node:
            return replace(node, children=[change(child) for child in node.children])
        leaves = {shard: number for number, shard in _leaves(node)}
        merged = _redirect(node, leaves[source], leaves[target])
        return replace(merged, children=[change(child) for child in merged.children])

    return change(root), target, source


def _leaves(node: Inner) -> list[tuple[int, int]]:
    """The children that are shards: their position in the node and their number."""
    return [(number, child.number) for number, child in enumerate(node.children) if isinstance(child, Shard)]


def _redirect(node: Inner, source: int, target: int) -> Inner:
    """The node without the child `source`; everything that led to it leads to `target`."""

    def renumber(child_of: NDArray[np.int32]) -> NDArray[np.int32]:
        moved = np.where(child_of == source, target, child_of)
        return (moved - (moved > source)).astype(np.int32)

    children = [child for number, child in enumerate(node.children) if number != source]
    if isinstance(node, SpaceNode):
        return SpaceNode(node.tiles, renumber(node.tile_child), children)
    if isinstance(node, WordNode):
        words, buckets = renumber(node.child_of_word), renumber(node.bucket_child)
        return WordNode(node.takes_all_words, words, buckets, children)
    return IdNode(renumber(node.bucket_child), children)
