"""`grid_space_first`: cells first, then keywords."""

from __future__ import annotations

from nearcast.papers.moving.grid_lists.base import GridIndex


class GridSpaceFirst(GridIndex):
    """Every cell has lists by keyword."""

    name = "grid_space_first"
    aliases = ("ss-index",)
    paper = "SS-Index, baseline of Wang et al. 2017 (AP+-Tree)"
    summary = "a uniform grid whose cells have lists by keyword, for clauses and for messages"
    is_space_first = True
    smallest_grid = 0
