"""Counting the keywords at a node: sorted whichever way is cheaper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import count_keys


class Work(NamedTuple):
    """What counting reads and writes."""

    order: np.ndarray
    rank_start: np.ndarray
    rank: np.ndarray
    key: np.ndarray
    line: np.ndarray


@pytest.mark.parametrize(("n_clauses", "n_line"), [(10, 1000), (60, 5000), (60, 100)])
def test_keywords_are_counted_in_order(n_clauses: int, n_line: int) -> None:
    rng = np.random.default_rng(n_line)
    # The last clause has no keyword left at this offset.
    rank = rng.integers(0, n_line, n_clauses - 1).astype(np.int32)
    start = np.append(np.arange(n_clauses), n_clauses - 1).astype(np.int64)
    order, key = np.arange(n_clauses, dtype=np.int32), np.zeros(n_clauses, np.int32)
    work = Work(order, start, rank, key, np.zeros(n_line, np.int32))
    n_keys, n_exhausted = count_keys(work, 0, n_clauses, 0, 0, n_line)
    inputs, counts = np.unique(rank, return_counts=True)
    assert key[:n_keys].tolist() == inputs.tolist()
    assert work.line[inputs].tolist() == counts.tolist()
    assert n_exhausted == 1
