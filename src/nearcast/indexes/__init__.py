"""The structures that find the clauses a message matches, one folder each, behind one interface.

`base.py` says what an index does, `registry.py` lists them by name. A folder holds `layout.py` (the arrays), `build.py`
(how they are filled), `match.py` (the walk of a message) and `index.py` (the class that owns the arrays). `scan` is the
plainest member and the second oracle: always right, never fast.
"""
