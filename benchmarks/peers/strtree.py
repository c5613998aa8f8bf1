"""shapely's STRtree (GEOS) for the boxes, NumPy for the keywords."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from benchmarks.peers.peer import Peer, pairs_table
from nearcast.columns.arrow import numbers

_MESSAGES_AT_ONCE = 1_000


class ShapelyTree(Peer):
    """Boxes around each point by the tree; then all keywords of all of them are looked up at once."""

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        sides = [numbers(subscriptions[name].combine_chunks(), np.float64) for name in ("x0", "y0", "x1", "y1")]
        self._tree = shapely.STRtree(shapely.box(*sides))
        lists = subscriptions["keywords"].combine_chunks()
        self._start = np.concatenate([[0], np.cumsum(numbers(pc.list_value_length(lists), np.int64))])
        self._keyword = numbers(lists.flatten(), np.int64)
        self._id = numbers(subscriptions["id"].combine_chunks(), np.int64)

    def match(self, messages: pa.Table) -> pa.Table:
        found = [self._match(messages.slice(at, _MESSAGES_AT_ONCE)) for at in range(0, messages.num_rows, _MESSAGES_AT_ONCE)]
        return pa.concat_tables(found)

    def _match(self, messages: pa.Table) -> pa.Table:
        x, y = (numbers(messages[name].combine_chunks(), np.float64) for name in ("x", "y"))
        # Bounds of points and boxes are what they are: the tree alone is exact.
        message, subscription = self._tree.query(shapely.points(x, y))
        lists = messages["keywords"].combine_chunks()
        owner, word = numbers(pc.list_parent_indices(lists), np.int64), numbers(lists.flatten(), np.int64)
        n_words = 1 + int(max(self._keyword.max(initial=0), word.max(initial=0)))
        known = np.sort(owner * n_words + word)
        n = self._start[subscription + 1] - self._start[subscription]
        pair = np.repeat(np.arange(len(n)), n)
        place = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n) + self._start[subscription][pair]
        wanted = message[pair] * n_words + self._keyword[place]
        at = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        has_all = np.ones(len(n), bool)
        has_all[pair[known[at] != wanted] if len(known) else pair] = False
        ids = numbers(messages["id"].combine_chunks(), np.int64)
        return pairs_table(ids[message[has_all]], self._id[subscription[has_all]])
