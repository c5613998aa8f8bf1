"""Which shards a subscription lives in, which shards a message goes to, and who reports a delivery that several could.

Both answers are matrices bool[n_rows, n_shards]. A message and a subscription it satisfies always have a shard in common; the
lowest of the common ones reports the pair, so that nothing is delivered twice and no shard needs to ask another.
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

NOBODY = -1  # the child of a word that no subscription is filed under


@dataclass(slots=True)
class WordOrder:
    """Keywords by rarity, the same in every process: known ones by frequency, unknown ones before them by a hash."""

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
        """The clauses of a view cut down to their rarest word, if they have one: offsets and words."""
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
    """The words that subscriptions are filed under: `child[node][word]` by word node of the tree, NOBODY where none is.

    `has_wordless`: some clause asks for no word at all; then every message must reach a child of each word node it comes to.
    """

    keywords: KeywordKind
    child: list[NDArray[np.int32]]
    has_wordless: bool


@dataclass(slots=True)
class Filed:
    """Where subscriptions live, and under which words of which word node: `words[node]` are ids, sorted."""

    reach: NDArray[np.bool_]
    words: list[NDArray[np.int32]]
    has_wordless: bool


def file_subscriptions(root: Node, n_shards: int, view: ClauseView, order: WordOrder) -> Filed:
    """Every shard a subscription needs a copy in: those that any of its clauses may concern."""
    by_clause = np.zeros((len(view.owner), n_shards), bool)
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
            bucket = view.id_hash[view.owner[clauses]] % len(node.bucket_child)
            for number, child in enumerate(node.children):
                descend(child, clauses[node.bucket_child[bucket] == number])
        else:
            start, word = (view.word_start, view.word) if node.takes_all_words else rarest
            taken_start, taken = take_lists(start, word, clauses)
            filed[_position(nodes, node)].append(taken)
            owner = np.repeat(np.arange(len(clauses)), np.diff(taken_start))
            is_wordless = np.diff(taken_start) == 0
            child_of = child_of_words(node, order, taken)
            for number, child in enumerate(node.children):
                wanted = is_wordless.copy()
                wanted[owner[child_of == number]] = True
                descend(child, clauses[wanted])

    descend(root, np.arange(len(view.owner)))
    reach = np.zeros((view.n_subscriptions, n_shards), bool)
    if len(view.owner):
        firsts = np.flatnonzero(np.concatenate([[True], view.owner[1:] != view.owner[:-1]]))
        reach[view.owner[firsts]] = np.logical_or.reduceat(by_clause, firsts, axis=0)
    words = [np.unique(np.concatenate([np.empty(0, np.int32), *found])) for found in filed]
    return Filed(reach, words, bool((np.diff(view.word_start) == 0).any()))


def child_of_words(node: WordNode, order: WordOrder, words: NDArray[np.int32]) -> NDArray[np.int32]:
    """The child each word leads to."""
    child = np.empty(len(words), np.int32)
    is_known = words < len(node.child_of_word)
    child[is_known] = node.child_of_word[words[is_known]]
    if not is_known.all():
        hashed = order.hashes()[words[~is_known] - order.n_known]
        child[~is_known] = node.bucket_child[hashed % len(node.bucket_child)]
    return child


def route_messages(root: Node, n_shards: int, messages: MessageView, table: RoutingTable) -> NDArray[np.bool_]:
    """Every shard that may hold a subscription of each message."""
    reach = np.zeros((messages.n_messages, n_shards), bool)
    nodes = word_nodes(root)
    n_words = np.diff(messages.word_start)
    message_of_word = np.repeat(np.arange(messages.n_messages), n_words)

    def descend(node: Node, chosen: NDArray[np.bool_]) -> None:
        if isinstance(node, Shard):
            reach[chosen, node.number] = True
        elif isinstance(node, SpaceNode):
            meets = node.meets(messages.boxes)
            for number, child in enumerate(node.children):
                descend(child, chosen & meets[:, number])
        elif isinstance(node, IdNode):
            for child in node.children:
                descend(child, chosen)
        else:
            child_of = table.child[_position(nodes, node)][messages.word]
            is_found = np.zeros(messages.n_messages, bool)
            is_found[message_of_word[child_of != NOBODY]] = True
            # Clauses without words are in every child: one of them is enough, a different one from message to message.
            turn = np.arange(messages.n_messages) % len(node.children)
            for number, child in enumerate(node.children):
                wanted = ~is_found & (turn == number) if table.has_wordless else np.zeros(messages.n_messages, bool)
                wanted[message_of_word[child_of == number]] = True
                descend(child, chosen & wanted)

    descend(root, np.ones(messages.n_messages, bool))
    return reach


def is_reporter(shard: int, subscription_reach: NDArray[np.bool_], message_reach: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether no lower shard has both, row by row."""
    return np.asarray(~(subscription_reach[:, :shard] & message_reach[:, :shard]).any(axis=1))


def reach_lists(reach: NDArray[np.bool_]) -> pa.Array:
    """A reach matrix as a column list<int32>."""
    rows, shards = np.nonzero(reach)
    starts = np.searchsorted(rows, np.arange(len(reach) + 1))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(shards, pa.int32()))


def reach_matrix(lists: pa.Array, n_shards: int) -> NDArray[np.bool_]:
    """A column of shard lists as a matrix."""
    reach = np.zeros((len(lists), n_shards), bool)
    counts = np.asarray(lists.value_lengths().fill_null(0))
    reach[np.repeat(np.arange(len(lists)), counts), np.asarray(lists.flatten())] = True
    return reach


def _position(nodes: list[WordNode], wanted: WordNode) -> int:
    return next(number for number, node in enumerate(nodes) if node is wanted)
