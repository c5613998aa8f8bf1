"""Boolean subscriptions: a region and words that must be there.

`engine.py` is the public `Matcher`, `index.py` what an index does, `indexes.py` the names of the indexes.
"""
