"""The messages' side of a moving quadtree."""

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
from nearcast.papers.boolean.quadtrees.cell_index import CellIndex, CellParameters
from nearcast.papers.boolean.quadtrees.keyword_first import KeywordFirstQuadtree, KeywordFirstQuadtreeParameters
from nearcast.papers.boolean.quadtrees.layout import DEPTHS, N_BOUND, N_FILED, N_LISTS, OWNER_SHIFT
from nearcast.papers.boolean.quadtrees.space_first import SpaceFirstQuadtree, SpaceFirstQuadtreeParameters
from nearcast.papers.moving.grid_lists.kernels import WANTED_FIELDS, GridArrays
from nearcast.papers.moving.grid_lists.keyword_grid import GridSide, Postings, Shape
from nearcast.papers.moving.quadtrees.kernels import look_around_in_cells, look_in_cells, post_deeper, post_messages

# Lists are found by the code of a cell, which tells the depth too: the side of a grid plays no part.
_SHAPE = Shape(side=1, most_cells=1, is_space_first=True, smallest_grid=0)
_MESSAGE = "message_"
# Lists, and places in them, that no clause uses any more are cleared away when they are so many times more than those used.
_SLACK = 4
_LEAST = 1024


class MessageCells:
    """Each message under all its keywords, in the root cell and at every depth at which its keyword has clauses."""

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._side = GridSide(_SHAPE)
        self._frame: NDArray[np.float64] = np.zeros(6)
        self.depths: NDArray[np.int32] = np.zeros(0, np.int32)
        """By owner, a bit for each depth at which its messages stand, besides the root cell."""

    @property
    def _grid(self) -> tuple[NDArray[np.float64], int]:
        return self._frame, self._max_depth

    @property
    def lists(self) -> GridArrays:
        return self._side.lists

    def build(self, messages: LiveMessages, frame: NDArray[np.float64], depths: NDArray[np.int32]) -> None:
        """Forget everything and post the living; `depths` has a bit for each depth at which an owner has clauses."""
        none = np.zeros(0, np.int32)
        self._side.build(Postings(none, none, empty_boxes(0)), frame)
        self._frame, self.depths = frame, depths.copy()
        self.store(messages, messages.slots())

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        first, wanted = 0, np.zeros(WANTED_FIELDS, np.int64)
        while True:
            first = post_messages(self.lists, self._grid, self.depths, messages.layout(), slots, first, wanted)
            if first == len(slots):
                return
            self._side.grow(wanted)

    def deepen(self, messages: LiveMessages, owners: NDArray[np.int64], depths: NDArray[np.int32]) -> None:
        """Post the messages of (distinct) owners at the depths that they have clauses at by now."""
        self.depths = resized(self.depths, int(owners.max(initial=-1)) + 1)
        for at in np.flatnonzero(depths & ~self.depths[owners]).tolist():
            owner = int(owners[at])
            new = int(depths[at]) & ~int(self.depths[owner])
            for depth in range(new.bit_length()):
                if (new >> depth) & 1:
                    self._post_deeper(messages, owner, depth)
            self.depths[owner] |= new

    def _post_deeper(self, messages: LiveMessages, owner: int, depth: int) -> None:
        first, wanted = 0, np.zeros(WANTED_FIELDS, np.int64)
        while True:
            first, is_done = post_deeper(self.lists, self._grid, owner, depth, messages.layout(), first, wanted)
            if is_done:
                return
            self._side.grow(wanted)

    def stats(self) -> dict[str, int | float]:
        return self._side.stats("message")

    @property
    def n_bytes(self) -> int:
        return self._side.n_bytes + self.depths.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"depths": self.depths, "places_frame": self._frame, **self._side.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.depths, self._frame = arrays["depths"], arrays["places_frame"]
        self._side.restore(arrays)


class MovingCells(MovingIndex):
    """Clauses in the cells that are cheapest for them where they are; messages in the same cells, under all their keywords."""

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
        self._messages.build(messages, self._cells._places.frame, self._cells._lists.door[DEPTHS::2])

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        frame = self._cells._places.frame
        self._cells.insert(clauses, slots)
        head = self._cells._lists.head
        if int(head[N_LISTS]) > _SLACK * max(_LEAST, int(head[N_FILED])):
            self._cells.build(clauses)
        if self._cells._places.frame is not frame:
            self._build_messages(messages)
            return
        self._forget_bonds()
        lists = self._cells._lists
        owners = np.unique(lists.list_key[lists.bound[lists.bound_start[slots]]] >> OWNER_SHIFT)
        self._messages.deepen(messages, owners, lists.door[2 * owners + DEPTHS])

    def _forget_bonds(self) -> None:
        """Clear away the places that clauses were bound to before they moved."""
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
        grid = (self._cells._places.frame, self.parameters.max_depth)
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: look_in_cells(
                cells, lists, grid, layout, live, slots, tuple(excluded), first, n_out, output
            ),
            is_by_clause=True,
        )

    def find_messages_in(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], boxes: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, cells, lists = clauses.layout(), messages.layout(), self._cells._lists, self._messages.lists
        grid, depths = (self._cells._places.frame, self.parameters.max_depth), self._messages.depths
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: look_around_in_cells(
                cells, lists, depths, grid, layout, live, slots, tuple(boxes), first, n_out, output
            ),
            is_by_clause=True,
        )

    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._build_messages(messages)

    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        return self._cells.explain(clauses, batch, slot)

    def stats(self) -> dict[str, int | float]:
        own = self._cells.stats()
        return {**own, **self._messages.stats(), "bytes": own["bytes"] + self._messages.n_bytes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._cells.arrays(), **{f"{_MESSAGE}{name}": a for name, a in self._messages.arrays().items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._cells.restore(arrays)
        self._messages.restore({name[len(_MESSAGE) :]: a for name, a in arrays.items() if name.startswith(_MESSAGE)})


@dataclass(frozen=True, slots=True)
class MovingKeywordFirstQuadtreeParameters(KeywordFirstQuadtreeParameters):
    """Those of `keyword_first_quadtree`. Less deep, and dearer copies, than where clauses stay: each must be moved."""

    max_depth: int = 7
    update_cost: float = 0.1


class MovingKeywordFirstQuadtree(MovingCells):
    """Each clause under its rarest keyword in the cheapest cells; each message under its keywords in the cells of its way."""

    name = "moving_keyword_first_quadtree"
    aliases = ("rq-plus-tree",)
    paper = "RQ+-Tree of Wang et al. 2017 (AP-Tree), section 5.2.1"
    summary = "a quadtree per rarest keyword, cells chosen by cost, anew at each move; messages under all their keywords"
    parameters_class = MovingKeywordFirstQuadtreeParameters
    cells_class = KeywordFirstQuadtree


@dataclass(frozen=True, slots=True)
class MovingSpaceFirstQuadtreeParameters(SpaceFirstQuadtreeParameters):
    """Those of `space_first_quadtree`. Less deep, and dearer copies, than where clauses stay: each must be moved."""

    max_depth: int = 7
    update_cost: float = 0.1


class MovingSpaceFirstQuadtree(MovingCells):
    """Each clause in the cheapest cells for its rarest keyword; each message in the cells of its way, under its keywords."""

    name = "moving_space_first_quadtree"
    aliases = ("iq-plus-tree",)
    paper = "IQ+-Tree of Wang et al. 2017 (AP-Tree), section 5.2.1"
    summary = "quadtree cells chosen by cost, anew at each move; in each cell lists of clauses and of messages by keyword"
    parameters_class = MovingSpaceFirstQuadtreeParameters
    cells_class = SpaceFirstQuadtree
