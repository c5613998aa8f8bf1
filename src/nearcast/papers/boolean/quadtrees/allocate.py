"""Allocate the arrays of posting lists: filled with clauses, empty, or larger."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import resized, resized_fields
from nearcast.kernels.hashing import rehash
from nearcast.kernels.layouts import ClauseArrays
from nearcast.kernels.pools import ListPool
from nearcast.papers.boolean.quadtrees.kernels.lists import enter_lists, fill_signatures
from nearcast.papers.boolean.quadtrees.layout import (
    ANCHOR_SHIFT,
    CODE_MASK,
    HEAD_FIELDS,
    N_BOUND,
    N_BUILT,
    N_FILED,
    N_LISTS,
    NO_LIST,
    CellListArrays,
)

_FEWEST_SLOTS = 16


def empty_lists(
    frequency: NDArray[np.int64], weight: NDArray[np.float64], is_tree: NDArray[np.uint8], n_clauses: int
) -> CellListArrays:
    """No list yet, but a directory entry for every anchor and capacity for the lists of `n_clauses`."""
    n_anchors = len(weight)
    directory = np.zeros(2 * n_anchors, np.int32)
    directory[::2] = NO_LIST
    no_items = np.zeros(0, np.int32)
    return CellListArrays(
        slot=free_slots(_FEWEST_SLOTS),
        directory=directory,
        chain=directory.copy(),
        list_key=np.zeros(0, np.int64),
        list_next=no_items,
        pool=ListPool(np.zeros(0, np.int64), no_items, no_items, no_items, np.zeros(1, np.int64)),
        box=np.zeros(0),
        signature=np.zeros(0, np.int64),
        bound_start=np.zeros(n_clauses, np.int64),
        n_bound=np.zeros(n_clauses, np.int32),
        bound=no_items,
        frequency=frequency,
        weight=weight,
        is_tree=is_tree,
        head=np.zeros(HEAD_FIELDS, np.int64),
    )


def fill_lists(
    lists: CellListArrays,
    clauses: ClauseArrays,
    slots: NDArray[np.int32],
    keys: NDArray[np.int64],
    counts: NDArray[np.int32],
    is_space_first: bool,
) -> CellListArrays:
    """File clauses whose list keys are known (`counts[i]` of them for `slots[i]`) in empty lists.

    Lists that a message visits together are stored together: those of a keyword, or with `is_space_first` those of a cell.
    """
    clause = np.repeat(slots, counts)
    order_key = ((keys & CODE_MASK) << 32) | (keys >> ANCHOR_SHIFT) if is_space_first else keys
    order = np.argsort(order_key, kind="stable")
    sorted_keys = keys[order]
    is_first = np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]) if len(keys) else np.zeros(0, bool)
    list_id = np.cumsum(is_first, dtype=np.int64) - 1
    start = np.flatnonzero(is_first)
    n_lists, n_entries = len(start), len(keys)
    size = np.diff(np.append(start, n_entries)).astype(np.int32)
    list_key = sorted_keys[start]
    item = clause[order]
    bound = np.empty(n_entries, np.int32)
    bound[order] = list_id
    signature = np.empty(n_entries, np.int64)
    fill_signatures(clauses.keyword_start, clauses.keyword, item, sorted_keys >> ANCHOR_SHIFT, signature)
    box = np.empty((n_entries, 4))
    for coordinate, values in enumerate((clauses.x0, clauses.y0, clauses.x1, clauses.y1)):
        box[:, coordinate] = values[item]
    lists.bound_start[slots] = np.cumsum(counts) - counts
    lists.n_bound[slots] = counts
    n_cells = len(np.unique(list_key & CODE_MASK))
    head = lists.head
    head[N_LISTS], head[N_BOUND], head[N_FILED], head[N_BUILT] = n_lists, n_entries, len(slots), len(slots)
    filled = lists._replace(
        slot=free_slots(3 * (n_lists + n_cells) // 2 + 1),
        list_key=list_key,
        list_next=np.empty(n_lists, np.int32),
        pool=ListPool(start.astype(np.int64), size, size.copy(), item, np.array([n_entries], np.int64)),
        box=box.ravel(),
        signature=signature,
        bound=bound,
    )
    enter_lists(filled, n_lists)
    return filled


def resized_anchors(
    lists: CellListArrays, n_keywords: int, n_clauses: int, new_weight: float, new_is_tree: bool
) -> CellListArrays:
    """The same for keywords and clauses that came after the build."""
    n_anchors = n_keywords + 1
    if n_anchors > len(lists.weight):
        n_anchors = max(n_anchors, len(lists.weight) * 3 // 2)
        pattern = np.zeros(2 * n_anchors, np.int32)
        pattern[::2] = NO_LIST
        directory, chain = pattern, pattern.copy()
        directory[: len(lists.directory)], chain[: len(lists.chain)] = lists.directory, lists.chain
        lists = lists._replace(
            directory=directory,
            chain=chain,
            frequency=resized(lists.frequency, n_anchors - 1, 0),
            weight=resized(lists.weight, n_anchors, new_weight),
            is_tree=resized(lists.is_tree, n_anchors, int(new_is_tree)),
        )
    if n_clauses > len(lists.n_bound):
        capacity = max(n_clauses, len(lists.n_bound) * 3 // 2)
        lists = lists._replace(bound_start=resized(lists.bound_start, capacity, 0), n_bound=resized(lists.n_bound, capacity, 0))
    return lists


def resized_lists(lists: CellListArrays, needed: NDArray[np.int64]) -> CellListArrays:
    """The same with at least the sizes that a kernel needs; arrays that were too small grow by a half more."""
    n_lists, n_slots, n_entries, n_bound = (int(size) for size in needed)
    pool = lists.pool
    if n_lists > len(lists.list_key):
        n_lists = n_lists * 3 // 2 + 16
        pool = resized_fields(pool, dict.fromkeys(("start", "size", "capacity"), n_lists))
        lists = lists._replace(list_key=resized(lists.list_key, n_lists, 0), list_next=resized(lists.list_next, n_lists, 0))
    if n_entries > len(pool.item):
        n_entries = n_entries * 3 // 2 + 64
        pool = pool._replace(item=resized(pool.item, n_entries, 0))
        lists = lists._replace(box=resized(lists.box, 4 * n_entries, 0), signature=resized(lists.signature, n_entries, 0))
    if n_slots > len(lists.slot) // 2:
        slot = free_slots(2 * n_slots)
        rehash(slot, lists.slot)
        lists = lists._replace(slot=slot)
    if n_bound > len(lists.bound):
        lists = lists._replace(bound=resized(lists.bound, n_bound * 3 // 2 + 16, 0))
    return lists._replace(pool=pool)


def free_slots(n_needed: int) -> NDArray[np.int64]:
    n_slots = _FEWEST_SLOTS
    while n_slots < n_needed:
        n_slots *= 2
    return np.zeros(2 * n_slots, np.int64)
