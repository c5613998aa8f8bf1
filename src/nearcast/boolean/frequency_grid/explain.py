"""In words: which lists hold a clause, and whether a message visits them."""

from __future__ import annotations

from nearcast.boolean.frequency_grid.kernels.delta import LATE_LEVEL_MASK, MOST_CELLS
from nearcast.boolean.frequency_grid.kernels.keys import owner_of
from nearcast.boolean.frequency_grid.kernels.levels import cells_of, first_column, first_row, last_column, last_row, n_cells_at
from nearcast.boolean.frequency_grid.layout import CATCH_ALL, LEVEL_MASK, MAX_LEVEL, N_BUILT, GridArrays, LateArrays
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import ClauseArrays


def explain_path(grid: GridArrays, late: LateArrays, clauses: ClauseArrays, messages: MessageBatch, slot: int) -> list[str]:
    """The way of the first message towards one clause."""
    arrays, max_level = messages.arrays, int(grid.head[MAX_LEVEL])
    owner = int(owner_of(clauses.keyword_start, clauses.keyword, grid.frequency, slot))
    is_late = slot >= int(grid.head[N_BUILT])
    under = f"under keyword {owner - 1}" if owner != CATCH_ALL else "without keyword"
    told = [f"{'late clause, in a chain' if is_late else 'listed'} {under}, the rarest when the grid was built"]
    if owner != CATCH_ALL and owner - 1 not in arrays.keyword:
        return [*told, "no list visited: the message lacks that keyword"]
    sides = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    own = _cells(grid, max_level, *(float(side[slot]) for side in sides))
    if is_late:
        level, most = int(late.level[owner] & LATE_LEVEL_MASK) - 1, float(MOST_CELLS)
    else:
        level, most = int(grid.door[2 * owner] & LEVEL_MASK), float(grid.wide[owner])
    shift = max_level - level
    n_cells = int(n_cells_at(own, shift))
    if level == 0 or n_cells > most:
        return [*told, "in the list without a cell: visited by every message with the keyword near one of its clauses"]
    message_box = (float(side[0]) for side in (arrays.x0, arrays.y0, arrays.x1, arrays.y1))
    there = _cells(grid, max_level, *message_box)
    is_met = all(
        int(first(own)) >> shift <= int(last(there)) >> shift and int(first(there)) >> shift <= int(last(own)) >> shift
        for first, last in ((first_column, last_column), (first_row, last_row))
    )
    verdict = "visited, each clause tested" if is_met else "not visited: the message lies elsewhere"
    return [*told, f"in {n_cells} cells of a grid of {1 << level} by {1 << level}: {verdict}"]


def _cells(grid: GridArrays, max_level: int, x0: float, y0: float, x1: float, y1: float) -> int:
    return int(cells_of(grid.frame, 1 << max_level, x0, y0, x1, y1))
