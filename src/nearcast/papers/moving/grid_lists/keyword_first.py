"""`grid_keyword_first`: keywords first, then cells."""

from __future__ import annotations

from nearcast.papers.moving.grid_lists.base import GridIndex


class GridKeywordFirst(GridIndex):
    """A keyword has one list while it is short, then one for each cell."""

    name = "grid_keyword_first"
    aliases = ("kk-index",)
    paper = "KK-Index, baseline of Wang et al. 2017 (AP+-Tree)"
    summary = "lists by keyword, each with a uniform grid once it is long, for clauses and for messages"
    is_space_first = False
    smallest_grid = 64
