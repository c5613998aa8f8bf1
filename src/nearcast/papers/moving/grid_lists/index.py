"""Two moving indexes made of two uniform grids, one of clauses and one of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.frames import enclosing_frame
from nearcast.columns.growing import resized
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.keyword_sets import count_clauses
from nearcast.moving.index import Boxes, MovingIndex
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.boolean.keyword_first.kernels import fill_anchors
from nearcast.papers.moving.grid_lists.kernels import match_messages
from nearcast.papers.moving.grid_lists.keyword_grid import GridShape, MessageGrid, Postings, UniformGrid

_LARGEST_SIDE = 1024
_MESSAGE = "message_"


@dataclass(frozen=True, slots=True)
class GridParameters(Parameters):
    """`side`: columns (and rows) of the grid. `most_cells`: what covers more cells goes to a list without a cell."""

    side: int = 40
    most_cells: int = 400

    def __post_init__(self) -> None:
        if not 1 <= self.side <= _LARGEST_SIDE:
            raise IndexParameterError(f"side={self.side!r} is not possible; expected 1 to {_LARGEST_SIDE}")
        if self.most_cells < 1:
            raise IndexParameterError(f"most_cells={self.most_cells!r} is not possible; expected at least 1")


class GridIndex(MovingIndex):
    """Clauses in the cells they cover under their rarest keyword, messages in their cell under each of their keywords."""

    parameters_class = GridParameters
    parameters: GridParameters
    searches_any_box = True
    is_space_first: ClassVar[bool]
    smallest_grid: ClassVar[int]
    """The number of postings from which on a keyword has lists by cell."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        options = self.parameters
        shape = GridShape(options.side, options.most_cells, self.is_space_first, self.smallest_grid)
        self._clauses = UniformGrid(shape)
        self._messages = MessageGrid(shape)
        self._frequency: NDArray[np.int64] = np.zeros(0, np.int64)
        self._anchor: NDArray[np.int32] = np.zeros(0, np.int32)
        self._stamps = Stamps()

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._build_clauses(clauses)
        self._messages.build(messages)

    def _build_clauses(self, clauses: ClauseStore) -> None:
        layout = clauses.layout()
        slots = np.flatnonzero(layout.is_alive).astype(np.int32)
        self._frequency = np.zeros(clauses.n_keywords, np.int64)
        self._anchor = np.zeros(clauses.n, np.int32)
        count_clauses(layout.keyword_start, layout.keyword, slots, self._frequency, 1)
        frame = enclosing_frame(layout.x0[slots], layout.y0[slots], layout.x1[slots], layout.y1[slots], self.parameters.side)
        self._choose_anchors(clauses, slots)
        self._clauses.build(self._postings(clauses, slots), frame)

    def _choose_anchors(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        anchor = np.empty(len(slots), np.int32)
        fill_anchors(layout.keyword_start, layout.keyword, self._frequency, slots, anchor)
        self._anchor[slots] = anchor

    def _postings(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> Postings:
        layout = clauses.layout()
        boxes = Boxes(layout.x0[slots], layout.y0[slots], layout.x1[slots], layout.y1[slots])
        return Postings(self._anchor[slots], slots, boxes)

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        n, n_keywords = clauses.n, clauses.n_keywords
        self._frequency = resized(self._frequency, n_keywords + n_keywords // 4, needed=n_keywords)
        self._anchor = resized(self._anchor, n + n // 4, needed=n)
        count_clauses(layout.keyword_start, layout.keyword, slots, self._frequency, 1)
        self._choose_anchors(clauses, slots)
        self._clauses.file(self._postings(clauses, slots))
        if self._clauses.is_outgrown:
            self._build_clauses(clauses)

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        count_clauses(layout.keyword_start, layout.keyword, slots, self._frequency, -1)
        self._clauses.unfile(self._postings(clauses, slots))

    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(batch.n_keywords, len(batch))
        layout, lists = clauses.layout(), self._clauses.lists
        return run_until_it_fits(
            len(batch),
            lambda first, n_out, output: match_messages(lists, layout, batch.arrays, stamp, mark, first, n_out, output),
        )

    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._messages.store(messages, slots)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        return self._messages.find_messages(clauses, messages, slots, excluded)

    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._messages.build(messages)

    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        anchor = int(self._anchor[slot])
        what = "clauses without keywords" if anchor == 0 else f"keyword {anchor - 1}"
        is_visited = anchor == 0 or anchor - 1 in batch.arrays.keyword
        verdict = "visited" if is_visited else "not visited: the message lacks that keyword"
        return [f"grid of {self.parameters.side} x {self.parameters.side} cells", f"lists of {what}, {verdict}"]

    def stats(self) -> dict[str, int | float]:
        n_bytes = self._clauses.n_bytes + self._messages.n_bytes + self._frequency.nbytes + self._anchor.nbytes
        return {"bytes": n_bytes, **self._clauses.stats("clause"), **self._messages.stats()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        common: dict[str, NDArray[Any]] = {"frequency": self._frequency, "anchor": self._anchor}
        return {**common, **self._clauses.arrays(), **{f"{_MESSAGE}{name}": a for name, a in self._messages.arrays().items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._frequency, self._anchor = arrays["frequency"], arrays["anchor"]
        self._clauses.restore(arrays)
        self._messages.restore({name[len(_MESSAGE) :]: a for name, a in arrays.items() if name.startswith(_MESSAGE)})


class GridKeywordFirst(GridIndex):
    """A keyword has one list while it is short, then one for each cell."""

    name = "grid_keyword_first"
    aliases = ("kk-index",)
    paper = "KK-Index, baseline of Wang et al. 2017 (AP+-Tree)"
    summary = "lists by keyword, each with a uniform grid once it is long, for clauses and for messages"
    is_space_first = False
    smallest_grid = 64


class GridSpaceFirst(GridIndex):
    """Every cell has lists by keyword."""

    name = "grid_space_first"
    aliases = ("ss-index",)
    paper = "SS-Index, baseline of Wang et al. 2017 (AP+-Tree)"
    summary = "a uniform grid whose cells have lists by keyword, for clauses and for messages"
    is_space_first = True
    smallest_grid = 0
