"""Grids of points by keyword: clauses stand at one corner, by their size; messages where they are; both in blocks of four.

`layout.py` has the arrays, `keys.py` names cells and keywords, `lists.py` gives lists room and takes it back, `clauses.py` and
`messages.py` file, `levels.py` makes the grid of a keyword finer or coarser, `sweep.py` forgets dead messages bit by bit,
`match.py` finds the clauses of points and `look.py` what a move changes, with `scan.py` and `settle.py` as its steps,
`areas.py` does both for messages with an area, `side.py` owns the arrays, `index.py` puts it together.
"""
