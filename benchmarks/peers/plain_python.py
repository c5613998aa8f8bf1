"""What one writes in an afternoon: a dict by rarest keyword and cell, sets of keywords, a loop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.peers.peer import Peer, cell_of, pairs_table, with_cells, with_rarest
from nearcast.columns.arrow import numbers

_COLUMNS = ("id", "keywords", "x0", "y0", "x1", "y1", "rarest", "cell")


class PlainPython(Peer):
    """No library at all while matching."""

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        self._filed: dict[tuple[int, int], list[tuple[int, frozenset[int], float, float, float, float]]] = {}
        filed = with_cells(with_rarest(subscriptions, history))
        for id, keywords, x0, y0, x1, y1, rarest, cell in zip(*(filed[name].to_pylist() for name in _COLUMNS), strict=True):
            self._filed.setdefault((rarest, cell), []).append((id, frozenset(keywords), x0, y0, x1, y1))

    def match(self, messages: pa.Table) -> pa.Table:
        cells = cell_of(*(numbers(messages[name].combine_chunks(), np.float64) for name in ("x", "y"))).tolist()
        rows = zip(*(messages[name].to_pylist() for name in ("id", "keywords", "x", "y")), cells, strict=True)
        found: list[tuple[int, int]] = []
        for message, words, x, y, cell in rows:
            given = set(words)
            for word in given:
                for id, keywords, x0, y0, x1, y1 in self._filed.get((word, cell), ()):
                    if x0 <= x <= x1 and y0 <= y <= y1 and keywords <= given:
                        found.append((message, id))
        both = np.array(found, np.int64).reshape(len(found), 2)
        return pairs_table(both[:, 0], both[:, 1])
