"""Runs of matches as subscription numbers and ids."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.deliveries import fill_ids, fill_owners

BEGIN, END = np.array([0, 3]), np.array([3, 100])
CLAUSE = np.arange(100, dtype=np.int32)[::-1].copy()
OWNER = (np.arange(100, dtype=np.int32) * 7) % 50


def test_owners_of_long_runs() -> None:
    out = np.empty(100, np.int32)
    fill_owners(CLAUSE, BEGIN, END, OWNER, out)
    assert out.tolist() == OWNER[CLAUSE].tolist()
    fill_owners(CLAUSE, BEGIN, END, OWNER[:0], out)
    assert out.tolist() == CLAUSE.tolist()


def test_ids_of_long_runs() -> None:
    number, out = np.arange(100, dtype=np.int64) * 1000, np.empty(100, np.int64)
    for owner, owned in ((OWNER, OWNER[CLAUSE]), (OWNER[:0], CLAUSE)):
        fill_ids(CLAUSE, BEGIN, END, owner, number, 0, out)
        assert out.tolist() == number[owned].tolist()
        fill_ids(CLAUSE, BEGIN, END, owner, number[:0], 5, out)
        assert out.tolist() == (owned.astype(np.int64) + 5).tolist()
