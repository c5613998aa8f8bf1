"""A pyramid of grids: lists by keyword in each cell, tries where a keyword is frequent, and finer cells where tries are full.

Paper: FAST. `layout.py` has the arrays. In `kernels`, `lists` has lists and the edges that lead to them, `shared_lists` lists
that neighbours share, `tries` and `insert` decide where a clause goes.
"""
