"""Ids of what changed, whole columns at a time."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.kernels.simd import prefetch

_AHEAD = 32


@kernel
def look_up_ids(ids, places, out):
    """Fill `out` with the ids at these places, asked for ahead."""
    n = places.size
    for i in range(max(0, n - _AHEAD)):
        prefetch(ids, places[i + _AHEAD])
        out[i] = ids[places[i]]
    for i in range(max(0, n - _AHEAD), n):
        out[i] = ids[places[i]]


@kernel
def last_of_each(number, rows, last):
    """Keep the last of several rows with one number, in order: returns how many are at the front of `rows`.

    `last` has a place for every number.
    """
    for i in range(rows.size):
        last[number[rows[i]]] = rows[i]
    n_kept = 0
    for i in range(rows.size):
        if last[number[rows[i]]] == rows[i]:
            rows[n_kept] = rows[i]
            n_kept += 1
    return n_kept
