"""`region_trie`: the trie; new clauses go to a buffer until it is rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters, check_choice
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.buffered import BufferedIndex
from nearcast.papers.boolean.region_trie.build import FREQUENT_FIRST, KEYWORD_ORDERS, build_trie, rank_messages
from nearcast.papers.boolean.region_trie.kernels import (
    BY_CHILDREN,
    BY_COST,
    BY_KEYWORDS,
    RankedMessages,
    TrieArrays,
    TrieEntries,
    match_messages,
)

_NO_BOUNDS = np.empty(0, np.float64)
NO_CLAUSES = ClauseArrays(
    np.zeros(1, np.int64), np.empty(0, np.int32), _NO_BOUNDS, _NO_BOUNDS, _NO_BOUNDS, _NO_BOUNDS, np.empty(0, np.uint8)
)
METHODS = {"tokens": BY_KEYWORDS, "trie": BY_CHILDREN, "cost": BY_COST}


@dataclass(frozen=True, slots=True)
class RegionTrieParameters(Parameters):
    """`probe`: look up every child in the message ("tokens"), every keyword among the children ("trie"), or the cheaper one.

    `keyword_order`: the order of keywords along a path. The alphabetical order of the paper is missing: an index sees only ids.
    """

    probe: str = "cost"
    keyword_order: str = FREQUENT_FIRST

    def __post_init__(self) -> None:
        check_choice("probe", self.probe, tuple(METHODS))
        check_choice("keyword_order", self.keyword_order, KEYWORD_ORDERS)


class RegionTrie(BufferedIndex):
    """Clauses share a path per common beginning of their keywords; a node is entered if its box meets the message."""

    name = "region_trie"
    aliases = ("mbrtrie",)
    paper = "Yu, Li, Feng 2015, A Cost-based Method for Location-Aware Publish/Subscribe Services (MBRTrie)"
    summary = "trie over the keywords, with a box around everything below each node; only boxes are verified"
    parameters_class = RegionTrieParameters
    parameters: RegionTrieParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._entries, self._trie, _ = build_trie(NO_CLAUSES, np.empty(0, np.int32), 0, self.parameters.keyword_order)

    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        order = self.parameters.keyword_order
        self._entries, self._trie, _ = build_trie(clauses.layout(), slots, clauses.n_keywords, order)

    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        layout, entries, trie = clauses.layout(), self._entries, self._trie
        ranked = rank_messages(entries, messages.arrays)
        stamp, before = self._stamps.take(int(entries.n_ranks[0]) + 1, len(ranked.rank))
        scratch = (stamp, walk_stack(trie, ranked))
        method, mark = METHODS[self.parameters.probe], before + 1
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(
                trie, entries, layout.is_alive, ranked, messages.arrays, mark, method, scratch, first, n_out, output
            ),
        )

    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return explain_trie(self._entries, self._trie, messages, slot)

    def stats(self) -> dict[str, int | float]:
        levels, widest = self._trie.level_start, int(self._trie.widest[0])
        return {**super().stats(), "nodes": int(levels[-1]), "depth": len(levels) - 1, "widest_node": widest}

    def built_arrays(self) -> dict[str, NDArray[Any]]:
        return {**prefixed("entries", self._entries), **prefixed("trie", self._trie)}

    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._entries = TrieEntries(*(arrays[f"entries_{name}"] for name in TrieEntries._fields))
        self._trie = TrieArrays(*(arrays[f"trie_{name}"] for name in TrieArrays._fields))


def walk_stack(trie: TrieArrays, ranked: RankedMessages) -> NDArray[np.int32]:
    """A stack for the walk of any message of the batch: depth first, at most one node's children are pending per level."""
    most_words = int(np.diff(ranked.start).max(initial=1))
    return np.empty(2 * (len(trie.level_start) * min(int(trie.widest[0]), most_words) + 1), np.int32)


def prefixed(name: str, layout: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a layout as they are saved."""
    return {f"{name}_{field}": array for field, array in layout._asdict().items()}


def explain_trie(entries: TrieEntries, trie: TrieArrays, messages: MessageBatch, slot: int) -> list[str]:
    """One line per node on the path of the clause, up to the one that the message does not enter."""
    arrays = messages.arrays
    position = int(np.flatnonzero(entries.clause == slot)[0])
    keyword_of = {int(rank): keyword for keyword, rank in enumerate(entries.rank)}
    message_ranks = set(arrays.keyword[: arrays.keyword_start[1]].tolist())
    lines: list[str] = []
    node = 0
    while True:
        x0, y0, x1, y1 = trie.box[4 * node : 4 * node + 4].tolist()
        keyword = keyword_of[int(trie.word[node])] if node else None
        name = "root" if keyword is None else f"keyword {keyword}"
        if keyword is not None and keyword not in message_ranks:
            return [*lines, f"{name}: not entered, the message lacks it"]
        n_below = int(trie.stop[node] - trie.first[node])
        if x0 > arrays.x1[0] or arrays.x0[0] > x1 or y0 > arrays.y1[0] or arrays.y0[0] > y1:
            return [*lines, f"{name}: the box {(x0, y0, x1, y1)} around its {n_below} clauses misses the message"]
        lines.append(f"{name}: entered, {n_below} clauses below")
        if position < trie.ending_stop[node]:
            n_ending = int(trie.ending_stop[node] - trie.first[node])
            return [*lines, f"{n_ending} clauses end here: their boxes are verified"]
        children = slice(int(trie.child_start[node]), int(trie.child_start[node + 1]))
        node = children.start + int(np.searchsorted(trie.stop[children], position, side="right"))
