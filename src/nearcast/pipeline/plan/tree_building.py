"""Shard trees that balance the expected work, made from a sample of subscriptions and messages.

The work of a part is the cost of its messages: a visit each, and a little for each clause of the part. Copies count in every
part that they are in. A part is cut in two where the halves balance, until there are enough parts.

Paper: Wang et al. 2017 (Skype), §5: Algorithms 3 and 4. Differences: any number of parts, not only powers of two; a clause
counts on both sides of a cut that it meets; the paper's product of clauses and messages omits the visits, which cost most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from nearcast.pipeline.plan.clause_view import ClauseView, MessageView
from nearcast.pipeline.plan.routing import WordOrder
from nearcast.pipeline.plan.shard_tree import (
    N_ID_BUCKETS,
    N_WORD_BUCKETS,
    IdNode,
    Node,
    Shard,
    SpaceNode,
    WordNode,
    bucket_child,
    whole_plane,
)

Work = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]

_MAX_CUTS = 512
_AXIS_ROWS = ((0, 2), (1, 3))  # the rows of x0, x1 and of y0, y1 in an array of boxes


@dataclass(slots=True)
class PlanSample:
    """The sample that a plan is made from. Words of messages and clauses are ids of `order.keywords`."""

    clauses: ClauseView
    messages: MessageView
    order: WordOrder
    clause_weight: float
    """The cost that one clause of a shard adds to each visiting message, in visits."""
    is_ranked: bool = False
    """Whether the clauses are those of ranked subscriptions. They are filed under all of their words by every mechanism, and
    messages go to all tiles, because a distant one may be among the best."""

    def filed_under(self, takes_all_words: bool) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The words under which each clause is filed: offsets and words."""
        if takes_all_words or self.is_ranked:
            return self.clauses.word_start, self.clauses.word
        return self.order.rarest(self.clauses)

    def work(self, n_clauses: NDArray[np.int64], n_messages: NDArray[np.int64]) -> NDArray[np.float64]:
        return n_messages * (1.0 + self.clause_weight * n_clauses)

    def work_in_space(self, n_clauses: NDArray[np.int64], n_messages: NDArray[np.int64]) -> NDArray[np.float64]:
        """The work of tiles. If all messages go to all tiles, only the number of clauses differs."""
        return n_clauses.astype(np.float64) if self.is_ranked else self.work(n_clauses, n_messages)


def build_tree(mechanism: str, n_shards: int, sample: PlanSample, n_groups: int = 0) -> Node:
    """The tree of a mechanism with `n_shards` leaves numbered from 0. One of two levels has `n_groups` (0: chosen here)."""
    numbers = count()
    whole = _Part.whole(sample)

    def shards(n: int) -> list[Node]:
        return [Shard(next(numbers)) for _ in range(n)]

    if mechanism == "hashing":
        return IdNode(bucket_child(n_shards, N_ID_BUCKETS), shards(n_shards))
    if mechanism == "location":
        return _space_node(whole, shards(n_shards))
    if mechanism in ("keyword", "prefix"):
        return _word_node(whole, shards(n_shards), takes_all_words=mechanism == "keyword")
    # About as many groups as parts per group. If the shards do not divide evenly, the first groups get one more.
    n_groups = min(n_groups, n_shards) or max(1, math.isqrt(n_shards))
    sizes = [n_shards // n_groups + (group < n_shards % n_groups) for group in range(n_groups)]
    if mechanism == "spatial_first":
        root = _space_node(whole, [Shard(-1)] * n_groups, sizes)
        parts = [whole.in_tiles(root.tiles[:, root.tile_child == group]) for group in range(n_groups)]
        root.children = [_word_node(part, shards(size)) for part, size in zip(parts, sizes, strict=True)]
        return root
    words = _word_node(whole, [Shard(-1)] * n_groups, weights=sizes)
    parts = [whole.with_words(words, group) for group in range(n_groups)]
    words.children = [_space_node(part, shards(size)) for part, size in zip(parts, sizes, strict=True)]
    return words


@dataclass(slots=True)
class _Part:
    """The clauses and messages of a sample that reach a node of the tree, by their numbers."""

    sample: PlanSample
    clause: NDArray[np.int64]
    message: NDArray[np.int64]

    @classmethod
    def whole(cls, sample: PlanSample) -> _Part:
        return cls(sample, np.arange(len(sample.clauses.subscription)), np.arange(sample.messages.n_messages))

    def in_tiles(self, tiles: NDArray[np.float64]) -> _Part:
        node = SpaceNode(tiles, np.zeros(tiles.shape[1], np.int32), [Shard(-1)])
        clause_boxes, message_boxes = self.sample.clauses.boxes[:, self.clause], self.sample.messages.boxes[:, self.message]
        visits = slice(None) if self.sample.is_ranked else node.meets(message_boxes)[:, 0]
        return _Part(self.sample, self.clause[node.meets(clause_boxes)[:, 0]], self.message[visits])

    def with_words(self, node: WordNode, child: int) -> _Part:
        """The clauses filed under a child, and the messages that have one of its words."""
        start, word = self.sample.filed_under(node.takes_all_words)
        # Clauses without words are in every child.
        is_filed = np.diff(start) == 0
        is_filed[np.repeat(np.arange(len(start) - 1), np.diff(start))[node.child_of_word[word] == child]] = True
        is_in_child = is_filed[self.clause]
        messages = self.sample.messages
        has_word = np.zeros(messages.n_messages, bool)
        message_of_word = np.repeat(np.arange(messages.n_messages), np.diff(messages.word_start))
        has_word[message_of_word[node.child_of_word[messages.word] == child]] = True
        return _Part(self.sample, self.clause[is_in_child], self.message[has_word[self.message]])


# --- space ---------------------------------------------------------------------------------------------------------------


def _space_node(part: _Part, children: list[Node], weights: list[int] | None = None) -> SpaceNode:
    clauses, messages = part.sample.clauses.boxes[:, part.clause], part.sample.messages.boxes[:, part.message]
    tiles = cut_tile(whole_plane()[:, 0], clauses, messages, weights or [1] * len(children), part.sample.work_in_space)
    return SpaceNode(np.stack(tiles, axis=1), np.arange(len(children), dtype=np.int32), children)


def cut_tile(
    tile: NDArray[np.float64],
    clauses: NDArray[np.float64],
    messages: NDArray[np.float64],
    weights: list[int],
    work: Work,
    depth: int = 0,
) -> list[NDArray[np.float64]]:
    """A tile cut into one part per weight, with work in proportion to the weights."""
    if len(weights) == 1:
        return [tile]
    half = len(weights) // 2
    ratio = sum(weights[:half]) / sum(weights[half:])
    for axis in (depth % 2, 1 - depth % 2):
        low, high = _AXIS_ROWS[axis]
        inside = (float(tile[low]), float(tile[high]))
        cut = _balanced_cut(clauses[[low, high]], messages[[low, high]], inside, ratio, work)
        if cut is not None:
            break
    else:
        # Everything is at one point, which no cut splits. The left side gets all of it.
        axis, cut = depth % 2, float(tile[_AXIS_ROWS[depth % 2][1]])
    low, high = _AXIS_ROWS[axis]
    left, right = tile.copy(), tile.copy()
    left[high] = right[low] = cut
    tiles = []
    for part, part_weights in ((left, weights[:half]), (right, weights[half:])):
        in_part = [(boxes[high] > part[low]) & (boxes[low] <= part[high]) for boxes in (clauses, messages)]
        tiles += cut_tile(part, clauses[:, in_part[0]], messages[:, in_part[1]], part_weights, work, depth + 1)
    return tiles


def _balanced_cut(
    clauses: NDArray[np.float64], messages: NDArray[np.float64], inside: tuple[float, float], ratio: float, work: Work
) -> float | None:
    """The cut on one axis where the work to its left is `ratio` times that to its right; None if no cut splits anything.

    Rows 0 and 1 of the arrays are the low and the high ends.
    """
    cuts = np.unique(np.concatenate([clauses.ravel(), messages.ravel()]))
    # A cut at the last coordinate leaves nothing to its right.
    cuts = cuts[:-1]
    cuts = cuts[(cuts > inside[0]) & (cuts < inside[1])]
    if len(cuts) == 0:
        return None
    if len(cuts) > _MAX_CUTS:
        cuts = cuts[np.linspace(0, len(cuts) - 1, _MAX_CUTS).astype(np.int64)]
    n_left, n_right = _n_up_to(clauses[0], cuts), _n_beyond(clauses[1], cuts)
    work_left, work_right = work(n_left, _n_up_to(messages[0], cuts)), work(n_right, _n_beyond(messages[1], cuts))
    return float(cuts[np.lexsort((n_left + n_right, np.abs(work_left - ratio * work_right)))[0]])


def _n_up_to(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.searchsorted(np.sort(values), cuts, side="right")


def _n_beyond(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.int64]:
    return len(values) - _n_up_to(values, cuts)


# --- words ---------------------------------------------------------------------------------------------------------------


def _word_node(part: _Part, children: list[Node], weights: list[int] | None = None, takes_all_words: bool = False) -> WordNode:
    order = part.sample.order
    messages = part.sample.messages
    start, word = part.sample.filed_under(takes_all_words)
    n_words = order.keywords.n
    # Cuts are made in the order of frequency: a part is a range of words with similar frequencies.
    known = np.concatenate([order.frequency, np.zeros(n_words - order.n_known, np.int64)])
    rank = np.empty(n_words, np.int64)
    rank[np.argsort(-known, kind="stable")] = np.arange(n_words)
    filed = np.zeros(n_words, bool)
    filed[word] = True
    clause_ranks = _ranges(start, rank[word], part.clause)
    message_ranks = _ranges(*_filed_ranks(messages, filed, rank), part.message)
    cuts = cut_ranks((0, n_words), clause_ranks, message_ranks, weights or [1] * len(children), part.sample.work)
    child_of_rank = np.searchsorted(np.array(cuts, np.int64), np.arange(n_words), side="right")
    buckets = bucket_child(len(children), N_WORD_BUCKETS)
    return WordNode(takes_all_words, child_of_rank[rank].astype(np.int32), buckets, children)


@dataclass(slots=True)
class _Ranks:
    """The ranks of the words of some rows: row `row[i]` has a word of rank `rank[i]`."""

    row: NDArray[np.int64]
    rank: NDArray[np.int64]

    def within(self, first: int, last: int) -> _Ranks:
        is_in = (self.rank >= first) & (self.rank < last)
        return _Ranks(self.row[is_in], self.rank[is_in])

    def counts(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each cut c in first + 1 ... last - 1: rows with a rank below c, rows with a rank from c on."""
        cuts = np.arange(first + 1, last)
        if len(self.row) == 0:
            return np.zeros(len(cuts), np.int64), np.zeros(len(cuts), np.int64)
        rows = np.unique(self.row, return_inverse=True)[1]
        lowest = np.full(rows.max() + 1, last)
        highest = np.full(rows.max() + 1, first - 1)
        np.minimum.at(lowest, rows, self.rank)
        np.maximum.at(highest, rows, self.rank)
        below = np.searchsorted(np.sort(lowest), cuts, side="left")
        return below, len(highest) - np.searchsorted(np.sort(highest), cuts, side="left")


def _ranges(start: NDArray[np.int64], ranks: NDArray[np.int64], rows: NDArray[np.int64]) -> _Ranks:
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    is_selected = np.zeros(len(start) - 1, bool)
    is_selected[rows] = True
    return _Ranks(row[is_selected[row]], ranks[is_selected[row]])


def _filed_ranks(
    messages: MessageView, filed: NDArray[np.bool_], rank: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ranks of those words of messages under which some clause is filed: offsets and ranks."""
    is_filed = filed[messages.word]
    start = np.concatenate([[0], np.cumsum(is_filed)])[messages.word_start]
    return start, rank[messages.word[is_filed]]


def cut_ranks(span: tuple[int, int], clauses: _Ranks, messages: _Ranks, weights: list[int], work: Work) -> list[int]:
    """Cuts of a span of ranks into one range per weight: the first rank of each range but the first."""
    if len(weights) == 1:
        return []
    first, last = span
    half = len(weights) // 2
    if last - first < 2:
        # Too few words: the ranges to the right stay empty.
        return [last] * (len(weights) - 1)
    clauses, messages = clauses.within(first, last), messages.within(first, last)
    (n_left, n_right), (p_left, p_right) = clauses.counts(first, last), messages.counts(first, last)
    ratio = sum(weights[:half]) / sum(weights[half:])
    difference = np.abs(work(n_left, p_left) - ratio * work(n_right, p_right))
    cut = first + 1 + int(np.lexsort((n_left + n_right, difference))[0])
    left = cut_ranks((first, cut), clauses, messages, weights[:half], work)
    return [*left, cut, *cut_ranks((cut, last), clauses, messages, weights[half:], work)]
