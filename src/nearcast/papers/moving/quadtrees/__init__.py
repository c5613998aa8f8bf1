"""What the moving quadtrees share: messages in lists by keyword and cell, beside the clauses in cells chosen by cost.

`build.py` posts messages, `match.py` looks for those of clauses, `messages.py` owns the lists, `index.py` puts both sides
together. An index adds which quadtree the clauses are in.
"""
