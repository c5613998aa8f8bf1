"""Random clauses and messages as the arrays an index takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays

MakeMessages = Callable[..., MessageBatch]


def _boxes(rng: np.random.Generator, n: int, side: int) -> list[NDArray[np.float64]]:
    x0, y0 = rng.integers(0, 40, n).astype(float), rng.integers(0, 40, n).astype(float)
    return [x0, y0, x0 + rng.integers(0, side, n), y0 + rng.integers(0, side, n)]


def _keyword_sets(rng: np.random.Generator, n: int, most: int, n_keywords: int) -> list[NDArray[np.int32]]:
    # Small ids are frequent.
    drawn = [np.unique((n_keywords * rng.random(int(rng.integers(0, most + 1))) ** 2).astype(np.int32)) for _ in range(n)]
    return [np.sort(words) for words in drawn]


def _flat(sets: list[NDArray[np.int32]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    start = np.concatenate([[0], np.cumsum([len(words) for words in sets])]).astype(np.int64)
    return start, np.concatenate([*sets, np.zeros(0, np.int32)]).astype(np.int32)


def _add_clauses(store: ClauseStore, n: int, seed: int = 0, n_keywords: int = 30) -> NDArray[np.int32]:
    rng = np.random.default_rng(seed)
    start, required = _flat(_keyword_sets(rng, n, 5, n_keywords))
    subscription = np.arange(store.n, store.n + n, dtype=np.int32)
    x0, y0, x1, y1 = _boxes(rng, n, 8)
    return store.add(ClauseBatch(subscription, start, required, x0, y0, x1, y1))


def _messages(n: int, seed: int = 0, n_keywords: int = 30) -> MessageBatch:
    rng = np.random.default_rng([seed, 1])
    start, keyword = _flat(_keyword_sets(rng, n, 12, n_keywords))
    return MessageBatch(MessageArrays(start, keyword, *_boxes(rng, n, 12)), np.arange(n), n_keywords)


@pytest.fixture
def add_clauses() -> Callable[..., NDArray[np.int32]]:
    """`add_clauses(store, n, seed)` adds random clauses of 0 to 5 keywords and returns their slots."""
    return _add_clauses


@pytest.fixture
def make_messages() -> MakeMessages:
    """`make_messages(n, seed)` is a batch of random range messages of 0 to 12 keywords."""
    return _messages
