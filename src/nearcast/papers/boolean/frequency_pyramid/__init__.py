"""A pyramid of grids: lists by keyword in each cell, tries where a keyword is frequent, and a way down where tries are full.

Paper: FAST. `layout.py` has the arrays, `edges/` the way from a node by a keyword, `lists/` the clauses of a list, `sharing/`
lists that neighbours have in common, `filing/` where a clause goes, `cleaning/` how the dead leave.
"""
