"""Peers that run in this process: nearcast itself, plain Python, and shapely with NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from benchmarks.peers.peer import Peer, cell_of, pairs_table, with_cells, with_rarest
from nearcast.boolean.engine import Matcher
from nearcast.columns.arrow import numbers

_COLUMNS = ("id", "keywords", "x0", "y0", "x1", "y1", "rarest", "cell")
_MESSAGES_AT_ONCE = 1_000


class Ours(Peer):
    """The default engine on one thread, from table to table: reading and encoding the messages is in its time."""

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        self._matcher = Matcher("auto", "plane", history=history)
        self._matcher.subscribe_table(subscriptions)

    def match(self, messages: pa.Table) -> pa.Table:
        return self._matcher.match_table(messages, threads=1)

    @property
    def n_bytes(self) -> int:
        return int(self._matcher.stats()["bytes"])


class PlainPython(Peer):
    """What one writes in an afternoon: a dict by rarest keyword and cell, sets of keywords, a loop, no library."""

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        self._filed: dict[tuple[int, int], list[tuple[int, frozenset[int], float, float, float, float]]] = {}
        filed = with_cells(with_rarest(subscriptions, history))
        for id, keywords, x0, y0, x1, y1, rarest, cell in zip(*(filed[name].to_pylist() for name in _COLUMNS), strict=True):
            self._filed.setdefault((rarest, cell), []).append((id, frozenset(keywords), x0, y0, x1, y1))

    def match(self, messages: pa.Table) -> pa.Table:
        cells = cell_of(*(numbers(messages[name].combine_chunks(), np.float64) for name in ("x", "y"))).tolist()
        rows = zip(*(messages[name].to_pylist() for name in ("id", "keywords", "x", "y")), cells, strict=True)
        pairs: list[tuple[int, int]] = []
        for message, words, x, y, cell in rows:
            words_of_message = set(words)
            for word in words_of_message:
                for id, keywords, x0, y0, x1, y1 in self._filed.get((word, cell), ()):
                    if x0 <= x <= x1 and y0 <= y <= y1 and keywords <= words_of_message:
                        pairs.append((message, id))
        both = np.array(pairs, np.int64).reshape(len(pairs), 2)
        return pairs_table(both[:, 0], both[:, 1])


class ShapelyTree(Peer):
    """shapely's STRtree (GEOS) finds the boxes around each point; then NumPy looks up all keywords of all of them at once."""

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        bounds = [numbers(subscriptions[name].combine_chunks(), np.float64) for name in ("x0", "y0", "x1", "y1")]
        self._tree = shapely.STRtree(shapely.box(*bounds))
        lists = subscriptions["keywords"].combine_chunks()
        self._start = np.concatenate([[0], np.cumsum(numbers(pc.list_value_length(lists), np.int64))])
        self._keyword = numbers(lists.flatten(), np.int64)
        self._id = numbers(subscriptions["id"].combine_chunks(), np.int64)

    def match(self, messages: pa.Table) -> pa.Table:
        parts = [self._match(messages.slice(at, _MESSAGES_AT_ONCE)) for at in range(0, messages.num_rows, _MESSAGES_AT_ONCE)]
        return pa.concat_tables(parts)

    def _match(self, messages: pa.Table) -> pa.Table:
        x, y = (numbers(messages[name].combine_chunks(), np.float64) for name in ("x", "y"))
        # The bounds of points and boxes are exact, so the tree alone is.
        message, subscription = self._tree.query(shapely.points(x, y))
        lists = messages["keywords"].combine_chunks()
        row, word = numbers(pc.list_parent_indices(lists), np.int64), numbers(lists.flatten(), np.int64)
        n_words = 1 + int(max(self._keyword.max(initial=0), word.max(initial=0)))
        known = np.sort(row * n_words + word)
        n = self._start[subscription + 1] - self._start[subscription]
        pair = np.repeat(np.arange(len(n)), n)
        position = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n) + self._start[subscription][pair]
        key = message[pair] * n_words + self._keyword[position]
        at = np.minimum(np.searchsorted(known, key), max(0, len(known) - 1))
        has_all = np.ones(len(n), bool)
        has_all[pair[known[at] != key] if len(known) else pair] = False
        ids = numbers(messages["id"].combine_chunks(), np.int64)
        return pairs_table(ids[message[has_all]], self._id[subscription[has_all]])
