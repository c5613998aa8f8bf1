"""Lists by rarest keyword and grid cell, laid out for vector units: the fastest boolean index here.

`cost_inputs` estimates where messages come from and which keywords they have, `levels` chooses a grid per keyword, `build`
writes the lists, `match` reads them for many messages at once, `delta` has the clauses that came later, `remove` is for
built lists.
"""
