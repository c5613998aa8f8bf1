"""A shard tree assigns subscriptions and messages to shards. Inner nodes split by space, by words or by id; leaves are shards.

The six mechanisms are six shapes of such a tree of one or two levels:

    hashing        ids            keyword        words (all of a clause)       spatial_first   space, then words
    location       space          prefix         words (only the rarest)       keyword_first   words, then space

A clause and a message each go to every child where they may match. So a message and a clause that match always have a common
shard.

Paper: Wang et al. 2017 (Skype), distributed version: §5, distribution mechanisms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

N_ID_BUCKETS = 1024
N_WORD_BUCKETS = 64
_BUCKETS_PER_CHILD = 16


def bucket_child(n_children: int, least: int) -> NDArray[np.int32]:
    """The child of each hash bucket: at least `least` buckets, and enough that all children have about the same number."""
    return np.arange(max(least, _BUCKETS_PER_CHILD * n_children), dtype=np.int32) % n_children


@dataclass(frozen=True, slots=True)
class Shard:
    """A leaf."""

    number: int


@dataclass(slots=True)
class SpaceNode:
    """Tile `t` holds x0 < x <= x1, y0 < y <= y1 and leads to `children[tile_child[t]]`; the tiles cover the plane."""

    tiles: NDArray[np.float64]  # float64[4, n_tiles]; infinite at the edge
    tile_child: NDArray[np.int32]
    children: list[Node] = field(default_factory=list)

    def meets(self, boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which children each closed box meets: bool[n_boxes, n_children]. A point meets one tile."""
        meets = np.zeros((boxes.shape[1], len(self.children)), bool)
        for tile, child in enumerate(self.tile_child.tolist()):
            x0, y0, x1, y1 = self.tiles[:, tile]
            meets[:, child] |= (boxes[2] > x0) & (boxes[0] <= x1) & (boxes[3] > y0) & (boxes[1] <= y1)
        return meets


@dataclass(slots=True)
class WordNode:
    """A word leads to `children[child_of_word[word]]`. Words that are newer than the plan go by their hash."""

    takes_all_words: bool
    """Whether a clause is filed under all of its words or under its rarest."""
    child_of_word: NDArray[np.int32]
    bucket_child: NDArray[np.int32]
    children: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class IdNode:
    """A subscription goes to a child by the hash of its id, a message to all children."""

    bucket_child: NDArray[np.int32]
    children: list[Node] = field(default_factory=list)


Node = Shard | SpaceNode | WordNode | IdNode


def inner_nodes(root: Node) -> Iterator[SpaceNode | WordNode | IdNode]:
    """Every node with children, a parent before its children."""
    if not isinstance(root, Shard):
        yield root
        for child in root.children:
            yield from inner_nodes(child)


def word_nodes(root: Node) -> list[WordNode]:
    """The nodes that split by words, numbered by their position in this list."""
    return [node for node in inner_nodes(root) if isinstance(node, WordNode)]


def shards_of(root: Node) -> list[int]:
    """The numbers of all leaves, sorted."""
    leaves = [child.number for node in inner_nodes(root) for child in node.children if isinstance(child, Shard)]
    return [root.number] if isinstance(root, Shard) else sorted(leaves)


def whole_plane() -> NDArray[np.float64]:
    """One tile: the whole plane."""
    return np.array([[-np.inf], [-np.inf], [np.inf], [np.inf]])
