"""Which words lead into a node: those pivotal in every list below it, and those pivotal in some.

Let pivotal(n) be all pivots below n, common(n) those pivotal in every list below. A word common below a node is common below
each of its descendants, so what an ancestor has settled is what the parent has: cover(n) = common(n) without common(parent),
other(n) = pivotal(n) without common(n). Paper: P, A, C and N; the text computes the union after removing and mixes the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LOW_HALF = (1 << 32) - 1

Lists = tuple[NDArray[np.int64], NDArray[np.int32]]


def node_sets(
    parent: NDArray[np.int32], level_start: NDArray[np.int64], pivot_start: NDArray[np.int64], pivot: NDArray[np.int32]
) -> tuple[Lists, Lists]:
    """The cover sets and the other sets, as offsets and ascending words."""
    n_nodes = len(parent)
    n_pivots = np.diff(pivot_start)
    # Every node has a list or children, so that the nodes without pivots are those with children (or the empty root).
    n_lists = (n_pivots > 0).astype(np.int64)
    own = np.repeat(np.arange(n_nodes), n_pivots) << 32 | pivot
    own.sort()
    keys: list[NDArray[np.int64]] = []
    times: list[NDArray[np.int64]] = []
    leads_to: list[NDArray[np.int64]] = []  # where in the keys of the level above a key of this level is counted
    from_below = np.empty(0, np.int64), np.empty(0, np.int64)
    for level in range(len(level_start) - 2, -1, -1):
        first, stop = level_start[level], level_start[level + 1]
        mine = own[np.searchsorted(own, first << 32) : np.searchsorted(own, stop << 32)]
        # A node has a list or children, never both: no key occurs twice.
        key = np.concatenate([mine, from_below[0]])
        n_times = np.concatenate([np.ones(len(mine), np.int64), from_below[1]])
        order = np.argsort(key, kind="stable")
        if leads_to:
            leads_to[-1] = np.argsort(order, kind="stable")[len(mine) + leads_to[-1]]
        key, n_times = key[order], n_times[order]
        keys.append(key)
        times.append(n_times)
        if level > 0:
            np.add.at(n_lists, parent[first:stop], n_lists[first:stop])
            above = parent[key >> 32].astype(np.int64) << 32 | key & _LOW_HALF
            merged, inverse = np.unique(above, return_inverse=True)
            leads_to.append(inverse)
            from_below = merged, np.bincount(inverse, weights=n_times, minlength=len(merged)).astype(np.int64)
    is_common = [n_times == n_lists[key >> 32] for key, n_times in zip(keys, times, strict=True)]
    nothing = np.zeros(len(keys[-1]), np.bool_)
    is_settled = [common[to] for common, to in zip(is_common[1:], leads_to, strict=True)] + [nothing]
    cover = np.concatenate([key[c & ~s] for key, c, s in zip(keys[::-1], is_common[::-1], is_settled[::-1], strict=True)])
    other = np.concatenate([key[~c] for key, c in zip(keys[::-1], is_common[::-1], strict=True)])
    return _lists(cover, n_nodes), _lists(other, n_nodes)


def _lists(keys: NDArray[np.int64], n_nodes: int) -> Lists:
    sizes = np.bincount(keys >> 32, minlength=n_nodes)
    return np.concatenate([[0], np.cumsum(sizes)]), (keys & _LOW_HALF).astype(np.int32)
