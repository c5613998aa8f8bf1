"""Grids of points by keyword: a clause is filed at one corner, by its size; a message at its location; both in blocks.

`layout.py` has the arrays, `keyword_grid.py` owns them, `index.py` is the index, `scratch.py` the memory kernels write to. In
`kernels`: `keys.py` makes keys of cells and bits of keywords; `lists.py` takes and frees blocks; `clauses.py` and `messages.py`
file; `levels.py` makes the grid of a keyword finer or coarser; `collect_dead.py` drops dead messages in small steps; `match.py`
finds the clauses of points; `move_diff.py` finds what a move changes, by the scans and filters of `candidates.py`;
`range_messages.py` does both for messages with an area.
"""
