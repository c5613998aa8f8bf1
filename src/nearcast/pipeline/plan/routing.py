"""The target shards of subscriptions and messages, and which of several shards reports a delivery.

Target shards are matrices bool[n_rows, n_shards]. A message and a subscription that match always have a common shard. The
lowest common shard reports the pair: nothing is delivered twice, and no shard needs to ask another.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.pipeline.plan.clause_view import ClauseView, MessageView
from nearcast.pipeline.plan.shard_tree import IdNode, Node, Shard, SpaceNode, WordNode, word_nodes

NO_CHILD = -1  # the child of a word under which no subscription is filed


@dataclass(slots=True)
class WordOrder:
    """Keywords from rare to frequent, the same in every process: first unknown ones by a hash, then known ones by frequency."""

    keywords: KeywordKind
    frequency: NDArray[np.int64]  # of the words known when the plan was made
    _hash: NDArray[np.int64]

    @classmethod
    def of(cls, keywords: KeywordKind, frequency: NDArray[np.int64]) -> WordOrder:
        return cls(keywords, frequency, np.empty(0, np.int64))

    @property
    def n_known(self) -> int:
        return len(self.frequency)

    def hashes(self) -> NDArray[np.int64]:
        """A hash for every word after the known ones."""
        new = range(self.n_known + len(self._hash), self.keywords.n)
        if new:
            names = (self.keywords.space.name(word).encode() for word in new)
            digests = b"".join(hashlib.blake2b(name, digest_size=8).digest() for name in names)
            self._hash = np.concatenate([self._hash, (np.frombuffer(digests, "<u8") >> np.uint64(1)).astype(np.int64)])
        return self._hash

    def rarest(self, view: ClauseView) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The rarest word of each clause that has words: offsets and words."""
        counts = np.diff(view.word_start)
        clause = np.repeat(np.arange(len(counts)), counts)
        is_known = view.word < self.n_known
        rarity = np.full(len(view.word), -1, np.int64)
        rarity[is_known] = self.frequency[view.word[is_known]]
        tie = view.word.astype(np.int64)
        tie[~is_known] = self.hashes()[view.word[~is_known] - self.n_known]
        order = np.lexsort((tie, rarity, clause))
        firsts = view.word_start[:-1][counts > 0]
        return np.concatenate([[0], np.cumsum(counts > 0)]).astype(np.int64), view.word[order][firsts]


@dataclass(slots=True)
class RoutingTable:
    """The words under which subscriptions are filed: `child[node][word]` for each word node of the tree, else NO_CHILD.

    `has_wordless`: some clause requires no word. Then every message must go to a child of each word node it reaches.
    """

    keywords: KeywordKind
    child: list[NDArray[np.int32]]
    has_wordless: bool


@dataclass(slots=True)
class ShardAssignment:
    """The target shards of subscriptions, and the words under which they are filed: `words[node]` are sorted ids."""

    target_shards: NDArray[np.bool_]
    words: list[NDArray[np.int32]]
    has_wordless: bool


def file_subscriptions(root: Node, n_shards: int, view: ClauseView, order: WordOrder) -> ShardAssignment:
    """The shards that need a copy of each subscription: those where any of its clauses may match."""
    by_clause = np.zeros((len(view.subscription), n_shards), bool)
    nodes = word_nodes(root)
    filed: list[list[NDArray[np.int32]]] = [[] for _ in nodes]
    rarest = order.rarest(view)

    def descend(node: Node, clauses: NDArray[np.int64]) -> None:
        if len(clauses) == 0:
            return
        if isinstance(node, Shard):
            by_clause[clauses, node.number] = True
        elif isinstance(node, SpaceNode):
            meets = node.meets(view.boxes[:, clauses])
            for number, child in enumerate(node.children):
                descend(child, clauses[meets[:, number]])
        elif isinstance(node, IdNode):
            bucket = view.id_hash[view.subscription[clauses]] % len(node.bucket_child)
            for number, child in enumerate(node.children):
                descend(child, clauses[node.bucket_child[bucket] == number])
        else:
            start, word = (view.word_start, view.word) if node.takes_all_words else rarest
            words_start, words = take_lists(start, word, clauses)
            filed[_position(nodes, node)].append(words)
            clause_of_word = np.repeat(np.arange(len(clauses)), np.diff(words_start))
            is_wordless = np.diff(words_start) == 0
            child_of = child_of_words(node, order, words)
            for number, child in enumerate(node.children):
                goes = is_wordless.copy()
                goes[clause_of_word[child_of == number]] = True
                descend(child, clauses[goes])

    descend(root, np.arange(len(view.subscription)))
    target_shards = np.zeros((view.n_subscriptions, n_shards), bool)
    if len(view.subscription):
        firsts = np.flatnonzero(np.concatenate([[True], view.subscription[1:] != view.subscription[:-1]]))
        target_shards[view.subscription[firsts]] = np.logical_or.reduceat(by_clause, firsts, axis=0)
    filed_words = [np.unique(np.concatenate([np.empty(0, np.int32), *parts])) for parts in filed]
    return ShardAssignment(target_shards, filed_words, bool((np.diff(view.word_start) == 0).any()))


def child_of_words(node: WordNode, order: WordOrder, words: NDArray[np.int32]) -> NDArray[np.int32]:
    """The child to which each word leads."""
    child = np.empty(len(words), np.int32)
    is_known = words < len(node.child_of_word)
    child[is_known] = node.child_of_word[words[is_known]]
    if not is_known.all():
        hashed = order.hashes()[words[~is_known] - order.n_known]
        child[~is_known] = node.bucket_child[hashed % len(node.bucket_child)]
    return child


def route_messages(root: Node, n_shards: int, messages: MessageView, table: RoutingTable) -> NDArray[np.bool_]:
    """The shards that may contain a match of each message."""
    target_shards = np.zeros((messages.n_messages, n_shards), bool)
    nodes = word_nodes(root)
    n_words = np.diff(messages.word_start)
    message_of_word = np.repeat(np.arange(messages.n_messages), n_words)

    def descend(node: Node, selected: NDArray[np.bool_]) -> None:
        if isinstance(node, Shard):
            target_shards[selected, node.number] = True
        elif isinstance(node, SpaceNode):
            meets = node.meets(messages.boxes)
            for number, child in enumerate(node.children):
                descend(child, selected & meets[:, number])
        elif isinstance(node, IdNode):
            for child in node.children:
                descend(child, selected)
        else:
            child_of = table.child[_position(nodes, node)][messages.word]
            has_child = np.zeros(messages.n_messages, bool)
            has_child[message_of_word[child_of != NO_CHILD]] = True
            # Clauses without words are in every child. One child is enough; messages take turns.
            turn = np.arange(messages.n_messages) % len(node.children)
            for number, child in enumerate(node.children):
                goes = ~has_child & (turn == number) if table.has_wordless else np.zeros(messages.n_messages, bool)
                goes[message_of_word[child_of == number]] = True
                descend(child, selected & goes)

    descend(root, np.ones(messages.n_messages, bool))
    return target_shards


def reports_here(shard: int, subscription_shards: NDArray[np.bool_], message_shards: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether this shard reports the pair of each row: no lower shard has both."""
    return np.asarray(~(subscription_shards[:, :shard] & message_shards[:, :shard]).any(axis=1))


def shard_lists(target_shards: NDArray[np.bool_]) -> pa.Array:
    """A matrix of target shards as a column list<int32>."""
    rows, shards = np.nonzero(target_shards)
    starts = np.searchsorted(rows, np.arange(len(target_shards) + 1))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(shards, pa.int32()))


def shard_matrix(lists: pa.Array, n_shards: int) -> NDArray[np.bool_]:
    """A column of shard lists as a matrix of target shards."""
    target_shards = np.zeros((len(lists), n_shards), bool)
    counts = np.asarray(lists.value_lengths().fill_null(0))
    target_shards[np.repeat(np.arange(len(lists)), counts), np.asarray(lists.flatten())] = True
    return target_shards


def _position(nodes: list[WordNode], node: WordNode) -> int:
    return next(number for number, other in enumerate(nodes) if other is node)
