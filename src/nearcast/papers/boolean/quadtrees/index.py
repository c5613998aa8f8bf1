"""`space_first_quadtree` and `keyword_first_quadtree`: posting lists by keyword and cell, and what both share, `CellIndex`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.compile import Kernel
from nearcast.kernels.keyword_sets import count_clauses
from nearcast.kernels.layouts import ClauseArrays
from nearcast.kernels.pools import ListPool
from nearcast.kernels.quadtree import DEEPEST, column_of, column_of_code, cover_scratch, depth_of_code, row_of_code
from nearcast.papers.boolean.keyword_first.kernels import fill_anchors
from nearcast.papers.boolean.quadtrees.allocate import empty_lists, fill_lists, resized_anchors, resized_lists
from nearcast.papers.boolean.quadtrees.cost_inputs import locations_of_clauses, locations_of_history, no_locations
from nearcast.papers.boolean.quadtrees.kernels.lists import NEEDED_FIELDS, bind_clauses, post_clauses, remove_clauses
from nearcast.papers.boolean.quadtrees.kernels.match import match_keyword_first, match_space_first
from nearcast.papers.boolean.quadtrees.layout import (
    ANCHOR_SHIFT,
    CODE_MASK,
    DEPTHS_OF_ALL,
    MEAN_KEYWORDS,
    N_BUILT,
    N_FILED,
    N_LISTS,
    N_MESSAGES,
    CellListArrays,
    MessageLocations,
)

_LEAST_COST = 1e-4
# Rebuilt when at least this many clauses were inserted since the build, and as many as it had: then region and costs fit again.
_LEAST_REBUILT = 1024
_SHOWN_CELLS = 8


@dataclass(frozen=True, slots=True)
class CellParameters(Parameters):
    """What the cost of a cell depends on.

    `max_depth`: cells are at most halved this often. `update_cost`: what one copy of a clause costs, in verifications per
    message. `is_guessing`: without a history, expect messages where the clauses are; otherwise by area.
    """

    max_depth: int = 10
    update_cost: float = 0.02
    is_guessing: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= DEEPEST:
            raise IndexParameterError(f"max_depth={self.max_depth!r} is not possible; expected 1 to {DEEPEST}")
        if not _LEAST_COST <= self.update_cost <= 1.0:
            raise IndexParameterError(f"update_cost={self.update_cost!r} is not possible; expected {_LEAST_COST} to 1")


class CellIndex(BooleanIndex):
    """Binds each clause to the cheapest cells and posts it there under its rarest keyword."""

    parameters: CellParameters
    is_space_first: ClassVar[bool]
    match_kernel: ClassVar[Kernel]

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._cover_scratch = cover_scratch(self.parameters.max_depth, self.parameters.update_cost)
        # Without a kernel: a matcher that is opened replaces these arrays at once.
        is_tree = np.full(1, self.is_space_first, np.uint8)
        self._lists = empty_lists(np.zeros(0, np.int64), np.ones(1), is_tree, 0)
        self._locations = no_locations(self.parameters.max_depth)

    @abstractmethod
    def anchor_weights(self, frequency: NDArray[np.int64], locations: MessageLocations) -> NDArray[np.float64]:
        """What a message in a cell costs for each anchor, before the share of messages there; at most 1."""

    @abstractmethod
    def anchor_trees(self, n_posted: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Which anchors divide space at all, by the number of clauses posted under each."""

    # --- building and updating -----------------------------------------------------------------------------------------

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """Without a history, that of an earlier build is used."""
        layout, n_anchors = clauses.layout(), clauses.n_keywords + 1
        slots = np.flatnonzero(layout.is_alive).astype(np.int32)
        frequency = np.zeros(n_anchors - 1, np.int64)
        count_clauses(layout.keyword_start, layout.keyword, slots, frequency, 1)
        anchors = np.empty(len(slots), np.int32)
        fill_anchors(layout.keyword_start, layout.keyword, frequency, slots, anchors)
        max_depth = self.parameters.max_depth
        if history is not None and len(history):
            self._locations = locations_of_history(history, n_anchors, max_depth)
        elif self._locations.facts[N_MESSAGES] == 0:
            self._locations = locations_of_clauses(layout, slots, anchors, n_anchors, max_depth, self.parameters.is_guessing)
        weight = self.anchor_weights(frequency, self._locations)
        is_tree = self.anchor_trees(np.bincount(anchors, minlength=n_anchors))
        keys, counts = self._bind(slots, anchors, layout, weight, is_tree)
        lists = empty_lists(frequency, weight, is_tree, clauses.n)
        self._lists = fill_lists(lists, layout, slots, keys, counts, self.is_space_first)

    def _bind(self, slots: Any, anchors: Any, layout: Any, weight: Any, is_tree: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """The list keys of every clause, and how many each has."""
        keys, counts = np.empty(2 * len(slots) + 64, np.int64), np.empty(len(slots), np.int32)
        first, n_keys = 0, 0
        cost = (weight, is_tree, self.parameters.update_cost)
        while True:
            first, n_keys = bind_clauses(
                layout, self._locations, slots, anchors, cost, first, n_keys, keys, counts, self._cover_scratch
            )
            if first == len(slots):
                return keys[:n_keys], counts
            keys = np.concatenate([keys, np.empty(len(keys) + len(self._cover_scratch[2]), np.int64)])

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        head = self._lists.head
        if head[N_FILED] + len(slots) - head[N_BUILT] > max(_LEAST_REBUILT, head[N_BUILT]):
            self.build(clauses)
            return
        layout = clauses.layout()
        # A new keyword is as rare as the rarest known one.
        new_weight = float(self._lists.weight.min())
        self._lists = resized_anchors(self._lists, clauses.n_keywords, clauses.n, new_weight, self.is_space_first)
        count_clauses(layout.keyword_start, layout.keyword, slots, self._lists.frequency, 1)
        self._post(layout, slots)

    def _post(self, layout: Any, slots: NDArray[np.int32]) -> None:
        first, needed = 0, np.zeros(NEEDED_FIELDS, np.int64)
        cost = self.parameters.update_cost
        while True:
            first = post_clauses(self._lists, layout, self._locations, cost, slots, first, self._cover_scratch, needed)
            if first == len(slots):
                return
            self._lists = resized_lists(self._lists, needed)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        count_clauses(layout.keyword_start, layout.keyword, slots, self._lists.frequency, -1)
        remove_clauses(self._lists, slots)

    # --- matching ------------------------------------------------------------------------------------------------------

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        longest = int(np.diff(messages.arrays.keyword_start).max(initial=0)) + 1
        n_keys = longest * (self.parameters.max_depth + 1)
        n_lists = int(self._lists.head[N_LISTS])
        scratch = (stamp, np.empty(n_keys, np.int64), np.empty(n_keys, np.int64), np.empty(n_lists + 1, np.int64))
        lists, layout, match_messages = self._lists, clauses.layout(), self.match_kernel
        grid = (self._locations.frame, self.parameters.max_depth)
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(
                lists, grid, layout, messages.arrays, scratch, mark, first, n_out, output
            ),
        )

    # --- insight and storage -------------------------------------------------------------------------------------------

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        lists, arrays = self._lists, messages.arrays
        start = int(lists.bound_start[slot])
        list_ids = lists.bound[start : start + int(lists.n_bound[slot])]
        keys = [int(lists.list_key[list_id]) for list_id in list_ids]
        anchor = keys[0] >> ANCHOR_SHIFT
        posted = f"posted under keyword {anchor - 1}" if anchor else "posted without keyword"
        lines = [f"{posted}, bound to {len(keys)} of the cells of depth 0 to {self.parameters.max_depth}"]
        if anchor and anchor - 1 not in arrays.keyword:
            return [*lines, "no list visited: the message lacks that keyword"]
        bounds = [self._columns(axis, (arrays.x0, arrays.x1) if axis == 0 else (arrays.y0, arrays.y1)) for axis in (0, 1)]
        for key, list_id in list(zip(keys, list_ids, strict=True))[:_SHOWN_CELLS]:
            code = key & CODE_MASK
            depth, cell = depth_of_code(code), (column_of_code(code), row_of_code(code))
            shift = self.parameters.max_depth - depth
            is_met = all(low >> shift <= position <= high >> shift for (low, high), position in zip(bounds, cell, strict=True))
            size = int(lists.pool.size[list_id])
            verdict = "visited, each verified" if is_met else "not visited: the message lies elsewhere"
            lines.append(f"depth {depth}, column {cell[0]}, row {cell[1]}: list of {size} clauses, {verdict}")
        return lines

    def _columns(self, axis: int, bounds: tuple[NDArray[np.float64], NDArray[np.float64]]) -> tuple[int, int]:
        low, high, scale = self._locations.frame[3 * axis : 3 * axis + 3].tolist()
        n_columns = 1 << self.parameters.max_depth
        first, last = (int(column_of(float(bound[0]), low, high, scale, n_columns)) for bound in bounds)
        return first, last

    def stats(self) -> dict[str, int | float]:
        lists = self._lists
        n_lists, n_filed = int(lists.head[N_LISTS]), int(lists.head[N_FILED])
        sizes = lists.pool.size[:n_lists]
        return {
            **super().stats(),
            "lists": int(np.count_nonzero(sizes)),
            "longest_list": int(sizes.max(initial=0)),
            "cells": len(np.unique(lists.list_key[:n_lists][sizes > 0] & CODE_MASK)),
            "copies": float(sizes.sum() / n_filed) if n_filed else 1.0,
            "depth": max(1, int(lists.head[DEPTHS_OF_ALL]).bit_length()),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        lists = self._lists
        pool = {f"pool_{name}": array for name, array in lists.pool._asdict().items()}
        fields = {name: array for name, array in lists._asdict().items() if name != "pool"}
        return {**fields, **pool, **{f"locations_{name}": array for name, array in self._locations._asdict().items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        pool = ListPool(*(arrays[f"pool_{name}"] for name in ListPool._fields))
        fields = {name: arrays[name] for name in CellListArrays._fields if name != "pool"}
        self._lists = CellListArrays(pool=pool, **fields)
        self._locations = MessageLocations(*(arrays[f"locations_{name}"] for name in MessageLocations._fields))


@dataclass(frozen=True, slots=True)
class KeywordFirstQuadtreeParameters(CellParameters):
    """`smallest_tree`: posting lists of fewer clauses are not divided; scanning them is faster than finding a cell."""

    smallest_tree: int = 32

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is a new class, for which the short form fails.
        CellParameters.__post_init__(self)
        if self.smallest_tree < 1:
            raise IndexParameterError(f"smallest_tree={self.smallest_tree!r} is not possible; expected at least 1")


class KeywordFirstQuadtree(CellIndex):
    """Each clause under its rarest keyword, then in the cheapest cells for the messages that have the keyword."""

    name = "keyword_first_quadtree"
    aliases = ("rq-tree",)
    paper = "RQ-Tree of Wang et al. 2017 (AP-Tree), section 5.1.1"
    summary = "a posting list per rarest keyword, each with a quadtree whose cells are chosen by cost"
    parameters_class = KeywordFirstQuadtreeParameters
    parameters: KeywordFirstQuadtreeParameters
    is_space_first = False
    match_kernel = staticmethod(match_keyword_first)

    def anchor_weights(self, frequency: NDArray[np.int64], locations: MessageLocations) -> NDArray[np.float64]:
        """Only messages with the keyword come here, so the weight is 1."""
        return np.ones(len(frequency) + 1)

    def anchor_trees(self, n_posted: NDArray[np.int64]) -> NDArray[np.uint8]:
        return (n_posted >= self.parameters.smallest_tree).astype(np.uint8)

    def _post(self, layout: ClauseArrays, slots: NDArray[np.int32]) -> None:
        super()._post(layout, slots)
        for list_id in self._overfull_lists(slots):
            self._divide(layout, list_id)

    def _overfull_lists(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """The undivided lists of these clauses that have become twice as long as they should be."""
        lists = self._lists
        list_ids = np.unique(lists.bound[lists.bound_start[slots]])
        list_ids = list_ids[lists.pool.size[list_ids] >= 2 * self.parameters.smallest_tree]
        overfull: NDArray[np.int32] = list_ids[lists.is_tree[lists.list_key[list_ids] >> ANCHOR_SHIFT] == 0]
        return overfull

    def _divide(self, layout: ClauseArrays, list_id: int) -> None:
        """File the clauses of an undivided list again, in cells."""
        lists = self._lists
        start, size = int(lists.pool.start[list_id]), int(lists.pool.size[list_id])
        slots = lists.pool.item[start : start + size].copy()
        remove_clauses(lists, slots)
        lists.is_tree[lists.list_key[list_id] >> ANCHOR_SHIFT] = 1
        super()._post(layout, slots)


# How many messages the frequency among the clauses is worth against those counted in the history.
_PRIOR_MESSAGES = 16.0


@dataclass(frozen=True, slots=True)
class SpaceFirstQuadtreeParameters(CellParameters):
    """`message_length`: mean number of keywords of a message where there is no history (the paper's tweets have 9)."""

    message_length: float = 9.0

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is a new class, for which the short form fails.
        CellParameters.__post_init__(self)
        if not self.message_length > 0:
            raise IndexParameterError(f"message_length={self.message_length!r} is not possible; expected more than 0")


class SpaceFirstQuadtree(CellIndex):
    """Each clause in the cheapest cells for its rarest keyword, posted there under that keyword."""

    name = "space_first_quadtree"
    aliases = ("iq-tree",)
    paper = "IQ-Tree of Chen et al. 2013, as described in Wang et al. 2017 (AP-Tree), section 3.1"
    summary = "quadtree cells chosen by cost; in each cell clauses are posted under their rarest keyword"
    parameters_class = SpaceFirstQuadtreeParameters
    parameters: SpaceFirstQuadtreeParameters
    is_space_first = True
    match_kernel = staticmethod(match_space_first)

    def anchor_weights(self, frequency: NDArray[np.int64], locations: MessageLocations) -> NDArray[np.float64]:
        """The share of messages that have the keyword. Paper: P(k).

        Without a history it is the keyword's share among all keywords of the clauses, times the keywords of a message: a
        message has that many chances to have it.
        """
        n_messages = float(locations.facts[N_MESSAGES])
        mean = float(locations.facts[MEAN_KEYWORDS]) if n_messages else self.parameters.message_length
        weight = np.ones(len(frequency) + 1)
        weight[1:] = np.minimum(1.0, frequency / max(1, int(frequency.sum())) * mean)
        if n_messages:
            n_with = np.zeros(len(weight))
            n_known = min(len(weight), len(locations.anchor_start) - 1)
            n_with[:n_known] = np.diff(locations.anchor_start)[:n_known]
            weight[1:] = (n_with[1:] + _PRIOR_MESSAGES * weight[1:]) / (n_messages + _PRIOR_MESSAGES)
        return weight

    def anchor_trees(self, n_posted: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.ones(len(n_posted), np.uint8)
