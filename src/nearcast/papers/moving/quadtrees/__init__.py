"""The moving quadtrees: clauses in cells chosen by cost, messages in lists by keyword and the same cells.

`kernels.py` posts messages and finds those of clauses, `index.py` owns the lists and has both indexes. They differ in the
quadtree of their clauses.
"""
