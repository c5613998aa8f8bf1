"""Moving indexes made of a quadtree of clauses and lists of messages by its cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.growing import resized
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import run_until_it_fits
from nearcast.moving.index import Boxes, MovingIndex, empty_boxes
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.boolean.quadtrees.index import (
    CellIndex,
    CellParameters,
    KeywordFirstQuadtree,
    KeywordFirstQuadtreeParameters,
    SpaceFirstQuadtree,
    SpaceFirstQuadtreeParameters,
)
from nearcast.papers.boolean.quadtrees.layout import ANCHOR_SHIFT, DEPTHS, N_BOUND, N_FILED, N_LISTS
from nearcast.papers.moving.grid_lists.kernels import NEEDED_FIELDS, UniformGridArrays
from nearcast.papers.moving.grid_lists.keyword_grid import GridShape, Postings, UniformGrid
from nearcast.papers.moving.quadtrees.kernels import find_messages, find_messages_in, post_deeper, post_messages

# Lists are found by the code of a cell, which includes the depth: the width of a grid is not used.
_SHAPE = GridShape(width=1, most_cells=1, is_space_first=True, smallest_grid=0)
_MESSAGE = "message_"
# Unused lists, and unused bindings of clauses to lists, are cleared away when they are this many times as many as used ones.
_SLACK = 4
_LEAST = 1024


class MessageCells:
    """Messages under all their keywords, in the root cell and at every depth at which a keyword has clauses."""

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._grid = UniformGrid(_SHAPE)
        self._frame: NDArray[np.float64] = np.zeros(6)
        self.depths: NDArray[np.int32] = np.zeros(0, np.int32)
        """For each anchor, a bit for each depth at which its messages stand, in addition to the root cell."""

    @property
    def _frame_and_depth(self) -> tuple[NDArray[np.float64], int]:
        return self._frame, self._max_depth

    @property
    def lists(self) -> UniformGridArrays:
        return self._grid.lists

    def build(self, messages: LiveMessages, frame: NDArray[np.float64], depths: NDArray[np.int32]) -> None:
        """Drop everything and post all live messages; `depths` has a bit for each depth at which an anchor has clauses."""
        none = np.zeros(0, np.int32)
        self._grid.build(Postings(none, none, empty_boxes(0)), frame)
        self._frame, self.depths = frame, depths.copy()
        self.store(messages, messages.slots())

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        first, needed = 0, np.zeros(NEEDED_FIELDS, np.int64)
        while True:
            first = post_messages(self.lists, self._frame_and_depth, self.depths, messages.layout(), slots, first, needed)
            if first == len(slots):
                return
            self._grid.grow(needed)

    def deepen(self, messages: LiveMessages, anchors: NDArray[np.int64], depths: NDArray[np.int32]) -> None:
        """Post the messages of (distinct) anchors at the new depths of their clauses."""
        self.depths = resized(self.depths, int(anchors.max(initial=-1)) + 1)
        for at in np.flatnonzero(depths & ~self.depths[anchors]).tolist():
            anchor = int(anchors[at])
            new = int(depths[at]) & ~int(self.depths[anchor])
            for depth in range(new.bit_length()):
                if (new >> depth) & 1:
                    self._post_deeper(messages, anchor, depth)
            self.depths[anchor] |= new

    def _post_deeper(self, messages: LiveMessages, anchor: int, depth: int) -> None:
        first, needed = 0, np.zeros(NEEDED_FIELDS, np.int64)
        while True:
            first, is_done = post_deeper(self.lists, self._frame_and_depth, anchor, depth, messages.layout(), first, needed)
            if is_done:
                return
            self._grid.grow(needed)

    def stats(self) -> dict[str, int | float]:
        return self._grid.stats("message")

    @property
    def n_bytes(self) -> int:
        return self._grid.n_bytes + self.depths.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"depths": self.depths, "places_frame": self._frame, **self._grid.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.depths, self._frame = arrays["depths"], arrays["places_frame"]
        self._grid.restore(arrays)


class MovingCells(MovingIndex):
    """Clauses in the cells that cost least for them; messages in the same cells, under all their keywords."""

    cells_class: ClassVar[type[CellIndex]]

    parameters: CellParameters

    def __init__(self, parameters: CellParameters) -> None:
        super().__init__(parameters)
        self._cells = self.cells_class(parameters)
        self._messages = MessageCells(parameters.max_depth)

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._cells.build(clauses)
        self._build_messages(messages)

    def _build_messages(self, messages: LiveMessages) -> None:
        self._messages.build(messages, self._cells._locations.frame, self._cells._lists.directory[DEPTHS::2])

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        frame = self._cells._locations.frame
        self._cells.insert(clauses, slots)
        head = self._cells._lists.head
        if int(head[N_LISTS]) > _SLACK * max(_LEAST, int(head[N_FILED])):
            self._cells.build(clauses)
        if self._cells._locations.frame is not frame:
            self._build_messages(messages)
            return
        self._compact_bounds()
        lists = self._cells._lists
        anchors = np.unique(lists.list_key[lists.bound[lists.bound_start[slots]]] >> ANCHOR_SHIFT)
        self._messages.deepen(messages, anchors, lists.directory[2 * anchors + DEPTHS])

    def _compact_bounds(self) -> None:
        """Clear away bindings of clauses to the cells they have left."""
        lists = self._cells._lists
        n_used = int(lists.n_bound.sum())
        if int(lists.head[N_BOUND]) <= _SLACK * max(_LEAST, n_used):
            return
        start = np.concatenate([[0], np.cumsum(lists.n_bound)]).astype(np.int64)
        positions = np.repeat(lists.bound_start - start[:-1], lists.n_bound) + np.arange(n_used)
        self._cells._lists = lists._replace(bound=lists.bound[positions], bound_start=start[:-1].copy())
        lists.head[N_BOUND] = n_used

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._cells.delete(clauses, slots)

    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        return self._cells.match(clauses, batch)

    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._messages.store(messages, slots)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, cells, lists = clauses.layout(), messages.layout(), self._cells._lists, self._messages.lists
        grid = (self._cells._locations.frame, self.parameters.max_depth)
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: find_messages(
                cells, lists, grid, layout, live, slots, tuple(excluded), first, n_out, output
            ),
            is_by_clause=True,
        )

    def find_messages_in(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], boxes: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, cells, lists = clauses.layout(), messages.layout(), self._cells._lists, self._messages.lists
        grid, depths = (self._cells._locations.frame, self.parameters.max_depth), self._messages.depths
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: find_messages_in(
                cells, lists, depths, grid, layout, live, slots, tuple(boxes), first, n_out, output
            ),
            is_by_clause=True,
        )

    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._build_messages(messages)

    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        return self._cells.explain(clauses, batch, slot)

    def stats(self) -> dict[str, int | float]:
        stats = self._cells.stats()
        return {**stats, **self._messages.stats(), "bytes": stats["bytes"] + self._messages.n_bytes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._cells.arrays(), **{f"{_MESSAGE}{name}": a for name, a in self._messages.arrays().items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._cells.restore(arrays)
        self._messages.restore({name[len(_MESSAGE) :]: a for name, a in arrays.items() if name.startswith(_MESSAGE)})


@dataclass(frozen=True, slots=True)
class MovingKeywordFirstQuadtreeParameters(KeywordFirstQuadtreeParameters):
    """As `keyword_first_quadtree`, with a smaller depth and a higher cost of copies: each copy must be moved."""

    max_depth: int = 7
    update_cost: float = 0.1


class MovingKeywordFirstQuadtree(MovingCells):
    """Clauses under their rarest keyword in the cheapest cells; messages under all their keywords in the cells of their
    path."""

    name = "moving_keyword_first_quadtree"
    aliases = ("rq-plus-tree",)
    paper = "RQ+-Tree of Wang et al. 2017 (AP-Tree), section 5.2.1"
    summary = "a quadtree per rarest keyword, cells chosen by cost at each move; messages under all their keywords"
    parameters_class = MovingKeywordFirstQuadtreeParameters
    cells_class = KeywordFirstQuadtree


@dataclass(frozen=True, slots=True)
class MovingSpaceFirstQuadtreeParameters(SpaceFirstQuadtreeParameters):
    """As `space_first_quadtree`, with a smaller depth and a higher cost of copies: each copy must be moved."""

    max_depth: int = 7
    update_cost: float = 0.1


class MovingSpaceFirstQuadtree(MovingCells):
    """Clauses in the cheapest cells for their rarest keyword; messages in the cells of their path, under all their keywords."""

    name = "moving_space_first_quadtree"
    aliases = ("iq-plus-tree",)
    paper = "IQ+-Tree of Wang et al. 2017 (AP-Tree), section 5.2.1"
    summary = "quadtree cells chosen by cost at each move; in each cell lists of clauses and of messages by keyword"
    parameters_class = MovingSpaceFirstQuadtreeParameters
    cells_class = SpaceFirstQuadtree
