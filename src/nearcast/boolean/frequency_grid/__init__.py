"""Lists by rarest keyword and grid cell, laid out for vector units: the fastest boolean index here.

`expectation` says where messages come from and which keywords they have, `levels` chooses a grid per keyword, `build` writes
the lists, `match` reads them for many messages at once, `late` holds the clauses that came since, `withdraw` takes out.
"""
