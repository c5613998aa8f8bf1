"""Safe regions made of grid cells: larger than circles, for more work and memory. In the plane only.

A cell is safe if each message with the subscriber's keywords is in the result everywhere in the cell, or nowhere, as it is now.
Paper: Elaps, as Wang et al. 2017 compare with it. There a message that was delivered never leaves a result; here it does.
"""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray

from nearcast.columns.messages import MessageBatch
from nearcast.errors import NearcastError
from nearcast.model.regions import Box, Region, region
from nearcast.moving.index import Boxes
from nearcast.moving.kernels.safe_regions import CIRCLE, NOT_SAFE, find_safe_cells, is_affected_in_cells
from nearcast.moving.safe_regions.circles import SafeRegions, clause_slots, extents_of
from nearcast.moving.state import MovingState

_RELATIVE = 1e-9
# Left and bottom of the grid, width and height of a cell, number of columns (and rows).
Grid = tuple[float, float, float, float, int]


class SafeCells(SafeRegions):
    """Safe regions of cells.

    `n_columns`: columns (and rows) of the grid. `budget`: the most cells of one subscriber. `max_cells_away`: how many columns
    and rows they may lie from the subscriber's cell.
    """

    def __init__(self, n_columns: int = 128, budget: int = 64, max_cells_away: int = 6) -> None:
        super().__init__()
        self._n_columns, self._budget, self._max_cells_away = n_columns, budget, max_cells_away
        self._grid: Grid | None = None
        self._cells: dict[int, NDArray[np.int64]] = {}
        self._seen: NDArray[np.int64] = np.zeros(n_columns * n_columns, np.int64)
        self._mark = 0

    def assign(self, state: MovingState, numbers: NDArray[np.int32]) -> dict[int, Region]:
        if state.subscriptions.space.is_lonlat:
            raise NearcastError("safe regions of cells need space='plane'; use safe_region=True in lonlat")
        self.cancel(state, numbers)
        extents, is_everywhere = extents_of(state, numbers)
        self._note(numbers, extents)
        grid = self._grid_of(state)
        _, _, width, height, _ = grid
        away = (self._max_cells_away + 1) * np.array([[width], [height]])
        middle, size = np.array([extents.x, extents.y]), np.array([extents.half_width, extents.half_height])
        bounds = np.concatenate([middle - size - away, middle + size + away])
        is_eligible = (extents.kind != NOT_SAFE) & ~is_everywhere & np.isfinite(bounds).all(axis=0)
        eligible = np.flatnonzero(is_eligible)
        slots, row = clause_slots(state.subscriptions.clauses, numbers[eligible])
        groups, _ = state.index.find_messages_in(
            state.subscriptions.clauses, state.messages, slots, Boxes(*bounds[:, eligible][:, row].copy())
        )
        row_of = np.empty(state.subscriptions.clauses.n, np.int64)
        row_of[slots] = row
        clause, message = groups.pairs()
        pairs = row_of[clause]
        order = np.argsort(pairs, kind="stable")
        ends = np.searchsorted(pairs[order], np.arange(len(eligible) + 1))
        regions: dict[int, Region] = {}
        for at, number in enumerate(numbers.tolist()):
            regions[number] = Box(extents.x[at], extents.y[at], extents.x[at], extents.y[at])
        for i, at in enumerate(eligible.tolist()):
            messages = np.unique(message[order[ends[i] : ends[i + 1]]])
            number = int(numbers[at])
            cells = self._find_cells(state, number, grid, messages)
            if len(cells):
                regions[number] = _as_region(grid, cells)
                self._cells[number] = cells
                self._radius[number] = 1.0
                self._bounds[:, number] = _around(grid, cells, extents.half_width[at], extents.half_height[at])
        self._insert_keywords(state, numbers[self._radius[numbers] > 0.0])
        return regions

    def _find_cells(self, state: MovingState, number: int, grid: Grid, messages: NDArray[np.int32]) -> NDArray[np.int64]:
        live = state.messages.layout()
        boxes = (live.x0, live.y0, live.x1, live.y1)
        low_x, low_y, width, height, n_columns = grid
        column, row = (self._extents.x[number] - low_x) // width, (self._extents.y[number] - low_y) // height
        if not (0 <= column < n_columns and 0 <= row < n_columns):
            return np.empty(0, np.int64)
        self._mark += 1
        cells = np.empty(4 * self._budget + 8, np.int64)
        is_in = self._is_in(number, boxes, messages)
        extent = self._extent(number)
        start = int(row) * n_columns + int(column)
        n = find_safe_cells(
            extent, grid, start, self._max_cells_away, self._budget, boxes, messages, is_in, self._seen, self._mark, cells
        )
        return cells[: int(n)].copy()

    def _extent(self, number: int) -> tuple[int, float, float, float]:
        kind, x, y, half_width, half_height = (column[number] for column in self._extents)
        return int(kind), float(half_width), float(half_height), float(_RELATIVE * (abs(x) + abs(y) + half_width + half_height))

    def _is_in(self, number: int, boxes: tuple[NDArray[np.float64], ...], messages: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which messages are in the region that was reported last."""
        kind, x, y, half_width, half_height = (column[number] for column in self._extents)
        x0, y0, x1, y1 = (bound[messages] for bound in boxes)
        dx, dy = np.maximum(0.0, np.maximum(x0 - x, x - x1)), np.maximum(0.0, np.maximum(y0 - y, y - y1))
        is_in: NDArray[np.bool_] = (
            np.hypot(dx, dy) <= half_width if kind == CIRCLE else (dx <= half_width) & (dy <= half_height)
        )
        return is_in

    def cancel(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        super().cancel(state, numbers)
        for number in numbers.tolist():
            self._cells.pop(number, None)

    def affected(self, state: MovingState, batch: MessageBatch) -> NDArray[np.int32]:
        self._follow_renumbering(state)
        if self._clauses.n_alive == 0 or self._grid is None:
            return np.empty(0, np.int32)
        groups, _ = self._index.match(self._clauses, batch)
        messages, clause = groups.pairs()
        subscription, arrays = self._clauses.checks().subscription[clause], batch.arrays
        boxes = (arrays.x0, arrays.y0, arrays.x1, arrays.y1)
        affected: set[int] = set()
        for number, message in zip(subscription.tolist(), messages.tolist(), strict=True):
            if number not in affected:
                is_in = bool(self._is_in(number, boxes, np.array([message], np.int32))[0])
                if is_affected_in_cells(self._extent(number), self._grid, self._cells[number], boxes, message, is_in):
                    affected.add(number)
        return np.array(sorted(affected), np.int32)

    def _grid_of(self, state: MovingState) -> Grid:
        """The grid, laid over all subscribers when the first safe region is assigned. Outside of it there are none."""
        if self._grid is None:
            layout = state.subscriptions.clauses.layout()
            alive = layout.is_alive.astype(bool)
            lower = [float(bound[alive].min()) for bound in (layout.x0, layout.y0)]
            upper = [float(bound[alive].max()) for bound in (layout.x1, layout.y1)]
            size = [max((top - bottom) / self._n_columns, 1e-9) for bottom, top in zip(lower, upper, strict=True)]
            self._grid = (lower[0], lower[1], size[0], size[1], self._n_columns)
        return self._grid

    def _follow_renumbering(self, state: MovingState) -> None:
        if self._ids is not None and self._ids is not state.subscriptions.ids:
            old = np.array(sorted(self._cells), np.int32)
            new = state.subscriptions.ids.find(self._ids.take(old))
            self._cells = {int(to): self._cells[int(number)] for number, to in zip(old, new, strict=True)}
        super()._follow_renumbering(state)

    def _impact_region(self, state: MovingState, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
        return self._bounds[:, numbers]


def _around(grid: Grid, cells: NDArray[np.int64], half_width: float, half_height: float) -> NDArray[np.float64]:
    """The box in which a message may affect a subscriber in these cells. Paper: the impact region."""
    low_x, low_y, width, height, n_columns = grid
    column, row = cells % n_columns, cells // n_columns
    slack_x, slack_y = (
        _RELATIVE * (abs(low_x) + n_columns * width + half_width),
        _RELATIVE * (abs(low_y) + n_columns * height + half_height),
    )
    return np.array(
        [
            low_x + column.min() * width - half_width - slack_x,
            low_y + row.min() * height - half_height - slack_y,
            low_x + (column.max() + 1) * width + half_width + slack_x,
            low_y + (row.max() + 1) * height + half_height + slack_y,
        ]
    )


def _as_region(grid: Grid, cells: NDArray[np.int64]) -> Region:
    low_x, low_y, width, height, n_columns = grid
    column, row = cells % n_columns, cells // n_columns
    boxes = shapely.box(low_x + column * width, low_y + row * height, low_x + (column + 1) * width, low_y + (row + 1) * height)
    return region(shapely.geometry.mapping(shapely.union_all(boxes)), "plane")
