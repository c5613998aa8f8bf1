"""Boolean subscriptions: a region, and keywords that must be there.

`engine.py` is the public `Matcher`, `index.py` says what an index does, `indexes.py` lists their names, `scan.py` is the
smallest one.
"""
