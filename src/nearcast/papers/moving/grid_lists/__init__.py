"""The grid indexes: clauses, and likewise messages, in lists by keyword and cell of one uniform grid.

`kernels.py` has the arrays and loops, `keyword_grid.py` owns the lists of clauses or of messages, `index.py` puts both
together. The two indexes differ in the order of keys: keyword first, or cell first.
"""
