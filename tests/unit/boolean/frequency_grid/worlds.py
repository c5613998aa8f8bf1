"""Small worlds of clauses and messages, as an index sees them, and what matches by looking at every pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.frequency_grid.index import FrequencyGrid, FrequencyGridParameters
from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays

Box = tuple[float, float, float, float]
Row = tuple[Sequence[int], Box]

# Grids even for a handful of clauses.
EAGER = FrequencyGridParameters(probe_cost=0.0, max_level=6)


def add_clauses(store: ClauseStore, rows: Sequence[Row]) -> NDArray[np.int32]:
    start, keyword = _sets([words for words, _ in rows])
    x0, y0, x1, y1 = np.array([box for _, box in rows], np.float64).reshape(-1, 4).T.copy()
    subscription = np.arange(store.n, store.n + len(rows), dtype=np.int32)
    return store.add(ClauseBatch(subscription, start, keyword, x0, y0, x1, y1))


def filed(rows: Sequence[Row]) -> ClauseStore:
    store = ClauseStore()
    add_clauses(store, rows)
    return store


def messages(rows: Sequence[Row], n_keywords: int = 1000) -> MessageBatch:
    start, keyword = _sets([words for words, _ in rows])
    boxes = np.array([box for _, box in rows], np.float64).reshape(-1, 4).T.copy()
    return MessageBatch(MessageArrays(start, keyword, *boxes), np.arange(len(rows)), n_keywords)


def at(x: float, y: float) -> Box:
    return x, y, x, y


def built(
    store: ClauseStore, parameters: FrequencyGridParameters = EAGER, history: MessageBatch | None = None
) -> FrequencyGrid:
    index = FrequencyGrid(parameters)
    index.build(store, history)
    return index


def matched_pairs(index: BooleanIndex, store: ClauseStore, batch: MessageBatch) -> list[tuple[int, int]]:
    """Every pair the index gives, sorted; one given twice stands there twice."""
    groups, _ = index.match(store, batch)
    message, clause = groups.pairs()
    return sorted(zip(message.tolist(), clause.tolist(), strict=True))


def expected_pairs(store: ClauseStore, batch: MessageBatch) -> list[tuple[int, int]]:
    c, m = store.layout(), batch.arrays
    pairs = []
    for i in range(len(batch)):
        words = set(m.keyword[m.keyword_start[i] : m.keyword_start[i + 1]].tolist())
        for k in range(store.n):
            meets = c.x0[k] <= m.x1[i] and m.x0[i] <= c.x1[k] and c.y0[k] <= m.y1[i] and m.y0[i] <= c.y1[k]
            if c.is_alive[k] and meets and words.issuperset(c.keyword[c.keyword_start[k] : c.keyword_start[k + 1]].tolist()):
                pairs.append((i, k))
    return pairs


class RandomWorld:
    """Clauses and messages on a coarse lattice, so that borders are met all the time."""

    def __init__(self, seed: int, n_words: int = 8, width: float = 16.0) -> None:
        self.rng = np.random.default_rng(seed)
        self._n_words, self._width = n_words, width

    def words(self, most: int) -> list[int]:
        rank = self.rng.geometric(0.35, int(self.rng.integers(0, most + 1)))
        return sorted(set(np.minimum(rank - 1, self._n_words - 1).tolist()))

    def box(self, widest: float) -> Box:
        x, y, width, height = self.rng.integers(0, 2 * int(self._width), 2).tolist() + self.rng.random(2).tolist()
        return x / 2, y / 2, x / 2 + np.round(2 * width * widest) / 2, y / 2 + np.round(2 * height * widest) / 2

    def clauses(self, n: int) -> list[Row]:
        widest = [0.0, 1.0, 3.0, self._width]
        return [(self.words(6), self.box(widest[int(self.rng.integers(4))])) for _ in range(n)]

    def messages(self, n: int, share_of_areas: float = 0.3) -> MessageBatch:
        rows: list[Row] = []
        for _ in range(n):
            box = self.box(6.0 if self.rng.random() < share_of_areas else 0.0)
            rows.append((self.words(self._n_words + 2), box))
        return messages(rows)


def _sets(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    start = np.concatenate([[0], np.cumsum([len(words) for words in lists])]).astype(np.int64)
    return start, np.array([word for words in lists for word in sorted(words)], np.int32)
