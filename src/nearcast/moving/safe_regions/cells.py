"""Safe regions made of cells of a grid: larger ones than circles, for more work and memory. In the plane only.

Paper: Elaps, as Wang et al. 2017 compare with it; there a message that was delivered never leaves, here it does: a cell is safe
if every message with the subscriber's keywords stays in the result all over it, or stays out, as it is now.
"""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray

from nearcast.columns.messages import MessageBatch
from nearcast.errors import NearcastError
from nearcast.model.regions import Box, Region, region
from nearcast.moving.index import Boxes
from nearcast.moving.kernels.safe_regions import CIRCLE, NOT_SAFE, breaks_promise, spread_cells
from nearcast.moving.safe_regions.circles import SafeRegions, clause_slots, places_of
from nearcast.moving.state import MovingState

_RELATIVE = 1e-9
# Left, bottom, width and height of a cell, columns and rows.
Grid = tuple[float, float, float, float, int]


class SafeCells(SafeRegions):
    """`side`: columns, and rows, of the grid; `budget`: the most cells of one subscriber; `most_away`: how far they may lie."""

    def __init__(self, side: int = 128, budget: int = 64, most_away: int = 6) -> None:
        super().__init__()
        self._side, self._budget, self._most_away = side, budget, most_away
        self._grid: Grid | None = None
        self._cells: dict[int, NDArray[np.int64]] = {}
        self._seen: NDArray[np.int64] = np.zeros(side * side, np.int64)
        self._mark = 0

    @property
    def n_cells(self) -> int:
        """Safe cells of all subscribers together."""
        return sum(map(len, self._cells.values()))

    def promise(self, state: MovingState, numbers: NDArray[np.int32]) -> dict[int, Region]:
        if state.subscriptions.space.is_lonlat:
            raise NearcastError("safe regions of cells need space='plane'; use safe_region=True in lonlat")
        self.cancel(state, numbers)
        places, is_everywhere = places_of(state, numbers)
        self._note(numbers, places)
        grid = self._grid_of(state)
        _, _, width, height, _ = grid
        away = (self._most_away + 1) * np.array([[width], [height]])
        middle, size = np.array([places.x, places.y]), np.array([places.wide, places.high])
        bounds = np.concatenate([middle - size - away, middle + size + away])
        is_able = (places.kind != NOT_SAFE) & ~is_everywhere & np.isfinite(bounds).all(axis=0)
        able = np.flatnonzero(is_able)
        slots, subject = clause_slots(state.subscriptions.clauses, numbers[able])
        groups, _ = state.index.find_messages_in(
            state.subscriptions.clauses, state.messages, slots, Boxes(*bounds[:, able][:, subject].copy())
        )
        subject_of = np.empty(state.subscriptions.clauses.n, np.int64)
        subject_of[slots] = subject
        clause, message = groups.pairs()
        pairs = subject_of[clause]
        order = np.argsort(pairs, kind="stable")
        ends = np.searchsorted(pairs[order], np.arange(len(able) + 1))
        regions: dict[int, Region] = {}
        for at, number in enumerate(numbers.tolist()):
            regions[number] = Box(places.x[at], places.y[at], places.x[at], places.y[at])
        for i, at in enumerate(able.tolist()):
            messages = np.unique(message[order[ends[i] : ends[i + 1]]])
            number = int(numbers[at])
            cells = self._spread(state, number, grid, messages)
            if len(cells):
                regions[number] = _as_region(grid, cells)
                self._cells[number] = cells
                self._radius[number] = 1.0
                self._bounds[:, number] = _around(grid, cells, places.wide[at], places.high[at])
        self._file(state, numbers[self._radius[numbers] > 0.0])
        return regions

    def _spread(self, state: MovingState, number: int, grid: Grid, messages: NDArray[np.int32]) -> NDArray[np.int64]:
        live = state.messages.layout()
        sides = (live.x0, live.y0, live.x1, live.y1)
        low_x, low_y, width, height, side = grid
        column, row = (self._places.x[number] - low_x) // width, (self._places.y[number] - low_y) // height
        if not (0 <= column < side and 0 <= row < side):
            return np.empty(0, np.int64)
        self._mark += 1
        cells = np.empty(4 * self._budget + 8, np.int64)
        is_in = self._is_in(number, sides, messages)
        place = self._place(number)
        home = int(row) * side + int(column)
        n = spread_cells(
            place, grid, home, self._most_away, self._budget, sides, messages, is_in, self._seen, self._mark, cells
        )
        return cells[: int(n)].copy()

    def _place(self, number: int) -> tuple[int, float, float, float]:
        kind, x, y, wide, high = (column[number] for column in self._places)
        return int(kind), float(wide), float(high), float(_RELATIVE * (abs(x) + abs(y) + wide + high))

    def _is_in(self, number: int, sides: tuple[NDArray[np.float64], ...], messages: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which messages are in the region as it was reported."""
        kind, x, y, wide, high = (column[number] for column in self._places)
        x0, y0, x1, y1 = (side[messages] for side in sides)
        dx, dy = np.maximum(0.0, np.maximum(x0 - x, x - x1)), np.maximum(0.0, np.maximum(y0 - y, y - y1))
        is_in: NDArray[np.bool_] = np.hypot(dx, dy) <= wide if kind == CIRCLE else (dx <= wide) & (dy <= high)
        return is_in

    def cancel(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        super().cancel(state, numbers)
        for number in numbers.tolist():
            self._cells.pop(number, None)

    def concerned(self, state: MovingState, batch: MessageBatch) -> NDArray[np.int32]:
        self._renumber(state)
        if self._clauses.n_alive == 0 or self._grid is None:
            return np.empty(0, np.int32)
        groups, _ = self._index.match(self._clauses, batch)
        messages, clause = groups.pairs()
        owner, arrays = self._clauses.checks().subscription[clause], batch.arrays
        sides = (arrays.x0, arrays.y0, arrays.x1, arrays.y1)
        found: set[int] = set()
        for number, message in zip(owner.tolist(), messages.tolist(), strict=True):
            if number not in found:
                is_in = bool(self._is_in(number, sides, np.array([message], np.int32))[0])
                if breaks_promise(self._place(number), self._grid, self._cells[number], sides, message, is_in):
                    found.add(number)
        return np.array(sorted(found), np.int32)

    def _grid_of(self, state: MovingState) -> Grid:
        """The grid, laid over all subscribers when the first promise is made; outside of it everyone must report."""
        if self._grid is None:
            layout = state.subscriptions.clauses.layout()
            alive = layout.is_alive.astype(bool)
            low = [float(side[alive].min()) for side in (layout.x0, layout.y0)]
            high = [float(side[alive].max()) for side in (layout.x1, layout.y1)]
            size = [max((top - bottom) / self._side, 1e-9) for bottom, top in zip(low, high, strict=True)]
            self._grid = (low[0], low[1], size[0], size[1], self._side)
        return self._grid

    def _renumber(self, state: MovingState) -> None:
        if self._ids is not None and self._ids is not state.subscriptions.ids:
            old = np.array(sorted(self._cells), np.int32)
            new = state.subscriptions.ids.find(self._ids.take(old))
            self._cells = {int(to): self._cells[int(number)] for number, to in zip(old, new, strict=True)}
        super()._renumber(state)

    def _impact(self, state: MovingState, own: NDArray[np.int32]) -> NDArray[np.float64]:
        return self._bounds[:, own]


def _around(grid: Grid, cells: NDArray[np.int64], wide: float, high: float) -> NDArray[np.float64]:
    """The box in which a message may concern a subscriber in these cells. Paper: the impact region."""
    low_x, low_y, width, height, side = grid
    column, row = cells % side, cells // side
    slack_x, slack_y = _RELATIVE * (abs(low_x) + side * width + wide), _RELATIVE * (abs(low_y) + side * height + high)
    return np.array(
        [
            low_x + column.min() * width - wide - slack_x,
            low_y + row.min() * height - high - slack_y,
            low_x + (column.max() + 1) * width + wide + slack_x,
            low_y + (row.max() + 1) * height + high + slack_y,
        ]
    )


def _as_region(grid: Grid, cells: NDArray[np.int64]) -> Region:
    low_x, low_y, width, height, side = grid
    column, row = cells % side, cells // side
    boxes = shapely.box(low_x + column * width, low_y + row * height, low_x + (column + 1) * width, low_y + (row + 1) * height)
    return region(shapely.geometry.mapping(shapely.union_all(boxes)), "plane")
