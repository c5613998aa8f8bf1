"""`cost_filter`: a trie and a quadtree over the same clauses, and the cost model that chooses between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore, take_lists
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work, joined, total
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters, check_choice, check_range
from nearcast.kernels.layouts import MessageArrays
from nearcast.papers.boolean.buffered import BufferedIndex
from nearcast.papers.boolean.cost_filter import costs
from nearcast.papers.boolean.cost_filter.costs import (
    Estimates,
    Factors,
    LengthFactors,
    cost_factors,
    cost_figures,
    estimate,
    length_factors,
)
from nearcast.papers.boolean.cost_filter.kernels import (
    FRAME_FIELDS,
    WINDOW_FIELDS,
    CostArrays,
    HybridScratch,
    count_items,
    match_messages,
)
from nearcast.papers.boolean.pivot_quadtree.build import Growth, build_quadtree
from nearcast.papers.boolean.pivot_quadtree.index import (
    LEAVES,
    MX_CIF,
    explain_quadtree,
    message_cells,
    quadtree_stats,
    search_scratch,
)
from nearcast.papers.boolean.pivot_quadtree.kernels import MessageCells, QuadtreeArrays
from nearcast.papers.boolean.region_trie.build import FREQUENT_FIRST, KEYWORD_ORDERS, build_trie, rank_messages
from nearcast.papers.boolean.region_trie.index import NO_CLAUSES, explain_trie, prefixed, walk_stack
from nearcast.papers.boolean.region_trie.kernels import BY_COST, RankedMessages, TrieArrays, TrieEntries
from nearcast.papers.boolean.region_trie.kernels import match_messages as match_by_trie

# With fewer clauses either structure is fast, and calibration would take longer than it saves.
LEAST_CALIBRATED = 4096
_PROHIBITIVE = 1e100
_NO_LENGTHS = LengthFactors(np.empty(0), np.empty(0))
_FRAMES = 1 << 14
_WINDOWS = 1 << 16


@dataclass(frozen=True, slots=True)
class CostFilterParameters(Parameters):
    """`calibrate`: time sample messages at build, of the history if there is one; False = steps cost 1, as in the paper.

    Answers are the same in both cases. The other options are those of `region_trie` and `pivot_quadtree`.
    """

    calibrate: bool = True
    keyword_order: str = FREQUENT_FIRST
    storage: str = LEAVES
    leaf_size: int = 64
    max_depth: int = 16

    def __post_init__(self) -> None:
        check_choice("keyword_order", self.keyword_order, KEYWORD_ORDERS)
        check_choice("storage", self.storage, (LEAVES, MX_CIF))
        check_range("leaf_size", self.leaf_size, 1, 1 << 20)
        check_range("max_depth", self.max_depth, 0, 24)

    @property
    def growth(self) -> Growth:
        return Growth(self.leaf_size, 1 << self.max_depth, self.storage == MX_CIF)


class _Encoded(NamedTuple):
    """A batch of messages in the terms of both structures."""

    messages: MessageArrays
    ranked: RankedMessages
    cells: MessageCells

    def rows(self, rows: NDArray[np.int64]) -> _Encoded:
        """Some messages of the batch, without their keywords: only the ranks are read."""
        start, rank = take_lists(self.ranked.start, self.ranked.rank, rows)
        bounds = (bound[rows] for bound in self.messages[2:])
        none = np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32)
        return _Encoded(
            MessageArrays(*none, *bounds), RankedMessages(start, rank), MessageCells(*(bound[rows] for bound in self.cells))
        )


class CostFilter(BufferedIndex):
    """Each message goes through the trie or through the quadtree, whichever is estimated to be cheaper."""

    name = "cost_filter"
    aliases = ("lfilter",)
    paper = "Yu, Li, Feng 2015, A Cost-based Method for Location-Aware Publish/Subscribe Services (LFilter)"
    summary = "region_trie and pivot_quadtree over the same clauses; a cost model chooses for each message"
    parameters_class = CostFilterParameters
    parameters: CostFilterParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._entries, self._trie, frequency = build_trie(NO_CLAUSES, np.empty(0, np.int32), 0, self.parameters.keyword_order)
        self._tree = build_quadtree(self._entries, frequency, self.parameters.growth)
        self._costs, self._by_length = cost_figures(self._entries, self._trie, self._tree), _NO_LENGTHS

    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        order = self.parameters.keyword_order
        self._entries, self._trie, frequency = build_trie(clauses.layout(), slots, clauses.n_keywords, order)
        self._tree = build_quadtree(self._entries, frequency, self.parameters.growth)
        self._costs, self._by_length = cost_figures(self._entries, self._trie, self._tree), _NO_LENGTHS
        if self.parameters.calibrate and len(slots) >= LEAST_CALIBRATED:
            self._calibrate(clauses, history)

    def _calibrate(self, clauses: ClauseStore, history: MessageBatch | None) -> None:
        if history is not None and len(history):
            sample = costs.sample_of(history)
        else:
            layout, entries = clauses.layout(), self._entries
            words = layout.keyword_start, layout.keyword
            sample = costs.sample_from_clauses(entries.box, entries.clause, *words, clauses.n_keywords)
        encoded = self._encoded(sample)
        # Meanwhile lists are verified directly, so that the test of a clause is measured apart from a step in the trie.
        self._costs = self._costs._replace(unit_cost=np.array([_PROHIBITIVE, 1.0, 1.0]))
        steps, *lists = self._factors(encoded)
        trie = costs.fit_cost([steps], lambda rows: self._match_by_trie(clauses, encoded.rows(rows)))
        quadtree = costs.fit_cost(lists, lambda rows: self._match_by_quadtree(clauses, encoded.rows(rows)))
        n_items = max(1, self._count_items(encoded))
        spent = costs.microseconds(lambda: self._match_by_quadtree(clauses, encoded))
        spent -= costs.microseconds(lambda: self._count_items(encoded))
        test = max(spent, 0.0) / (n_items * float(self._costs.words_per_clause[0]))
        self._costs = self._costs._replace(
            unit_cost=np.array([trie.unit_cost, quadtree.unit_cost, test]),
            exponent=np.concatenate([trie.exponent, quadtree.exponent]),
            # Choosing the trie by mistake (for long messages) costs by far the most, so both estimates must be wrong for that.
            caution=np.exp([trie.error + quadtree.error]),
        )

    def estimates(self, messages: MessageBatch) -> Estimates:
        """What each message is expected to cost in either structure; the trie is chosen only if it is clearly cheaper."""
        return self._estimated(self._encoded(messages))

    def _estimated(self, encoded: _Encoded) -> Estimates:
        return estimate(self._costs, self._factors(encoded))

    def _factors(self, encoded: _Encoded) -> Factors:
        n_words = np.diff(encoded.ranked.start) - 1
        longest = int(n_words.max(initial=0))
        if longest >= len(self._by_length.trie_steps):
            n_levels = len(self._tree.level_start) - 1
            self._by_length = length_factors(self._costs, int(self._entries.n_ranks[0]), n_levels, 2 * longest)
        return cost_factors(self._costs, self._by_length, n_words, int(self._tree.cell_size[0]), encoded.cells)

    def _encoded(self, messages: MessageBatch) -> _Encoded:
        return _Encoded(messages.arrays, rank_messages(self._entries, messages.arrays), message_cells(self._tree, messages))

    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        encoded = self._encoded(messages)
        estimated = self._estimated(encoded)
        goes_by_trie = estimated.trie * self._costs.caution[0] < estimated.quadtree
        if not goes_by_trie.any():
            return self._match_by_quadtree(clauses, encoded)
        if goes_by_trie.all():
            return self._match_by_trie(clauses, encoded)
        by_trie, by_quadtree = np.flatnonzero(goes_by_trie), np.flatnonzero(~goes_by_trie)
        groups, work = self._match_by_trie(clauses, encoded.rows(by_trie))
        other_groups, other_work = self._match_by_quadtree(clauses, encoded.rows(by_quadtree))
        parts = [
            groups._replace(key=by_trie.astype(np.int32)),
            other_groups._replace(key=by_quadtree.astype(np.int32)),
        ]
        return joined(parts, len(messages)), total([work, other_work])

    def _match_by_trie(self, clauses: ClauseStore, encoded: _Encoded) -> tuple[Groups, Work]:
        is_alive, trie, entries = clauses.layout().is_alive, self._trie, self._entries
        messages, ranked, _ = encoded
        stamp, mark = self._stamped(ranked)
        scratch = (stamp, walk_stack(trie, ranked))
        return run_until_it_fits(
            len(messages.x0),
            lambda first, n_out, output: match_by_trie(
                trie, entries, is_alive, ranked, messages, mark, BY_COST, scratch, first, n_out, output
            ),
        )

    def _match_by_quadtree(self, clauses: ClauseStore, encoded: _Encoded) -> tuple[Groups, Work]:
        is_alive, trie, tree, entries, costs = clauses.layout().is_alive, self._trie, self._tree, self._entries, self._costs
        messages, ranked, cells = encoded
        scratch, mark = self._scratch(ranked)
        return run_until_it_fits(
            len(messages.x0),
            lambda first, n_out, output: match_messages(
                trie, tree, entries, costs, is_alive, ranked, cells, messages, mark, scratch, first, n_out, output
            ),
        )

    def _count_items(self, encoded: _Encoded) -> int:
        scratch, mark = self._scratch(encoded.ranked)
        return int(count_items(self._tree, encoded.ranked, encoded.cells, mark, scratch))

    def _stamped(self, ranked: RankedMessages) -> tuple[NDArray[np.int32], int]:
        stamp, before = self._stamps.take(int(self._entries.n_ranks[0]) + 1, len(ranked.rank))
        return stamp, before + 1

    def _scratch(self, ranked: RankedMessages) -> tuple[HybridScratch, int]:
        stamp, mark = self._stamped(ranked)
        frames, windows = np.empty(FRAME_FIELDS * _FRAMES, np.int64), np.empty(WINDOW_FIELDS * _WINDOWS, np.int64)
        return HybridScratch(stamp, walk_stack(self._trie, ranked), *search_scratch(self._tree), frames, windows), mark

    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        encoded = self._encoded(messages)
        estimated = self._estimated(encoded)
        trie, quadtree = float(estimated.trie[0]), float(estimated.quadtree[0])
        costs = f"estimated cost {trie:.3g} in the trie, {quadtree:.3g} in the quadtree"
        if trie * float(self._costs.caution[0]) < quadtree:
            return [f"{costs}: through the trie", *explain_trie(self._entries, self._trie, messages, slot)]
        return [
            f"{costs}: through the quadtree",
            *explain_quadtree(self._entries, self._tree, encoded.ranked, encoded.cells, slot),
        ]

    def stats(self) -> dict[str, int | float]:
        trie, test = "trie_step_cost", "look_cost"
        costs = dict(zip((trie, "quadtree_step_cost", test), self._costs.unit_cost.tolist(), strict=True))
        levels = self._trie.level_start
        sizes = {"trie_nodes": int(levels[-1]), "trie_depth": len(levels) - 1}
        return {**super().stats(), **quadtree_stats(self._tree, len(self._entries.clause)), **sizes, **costs}

    def built_arrays(self) -> dict[str, NDArray[Any]]:
        trie = {**prefixed("entries", self._entries), **prefixed("trie", self._trie)}
        return {**trie, **prefixed("tree", self._tree), **prefixed("costs", self._costs)}

    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._entries = TrieEntries(*(arrays[f"entries_{name}"] for name in TrieEntries._fields))
        self._trie = TrieArrays(*(arrays[f"trie_{name}"] for name in TrieArrays._fields))
        self._tree = QuadtreeArrays(*(arrays[f"tree_{name}"] for name in QuadtreeArrays._fields))
        self._costs, self._by_length = CostArrays(*(arrays[f"costs_{name}"] for name in CostArrays._fields)), _NO_LENGTHS
