"""Allocate the arrays of the tree and of the work in progress, empty or larger."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import resized
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    DEEPEST,
    DEEPEST_LEVEL,
    FREE_NODE,
    HEAD_FIELDS,
    ITEM_FIELDS,
    MOST_EDGES,
    MOST_KEYS,
    N_BACK,
    N_BLOCK,
    N_BOUND,
    N_ENTRIES,
    N_NODES,
    NEEDED_BLOCK,
    NEEDED_BOUND,
    NEEDED_ENTRIES,
    NEEDED_FIELDS,
    NEEDED_KEYWORDS,
    NEEDED_LOCAL,
    NEEDED_NODES,
    NEEDED_ORDER,
    NEEDED_PENDING,
    NEEDED_VISITS,
    NO_NODE,
    NODE_FIELDS,
    REGION_FIELDS,
    ROOT,
    SAMPLE,
    STATE_FIELDS,
    TreeArrays,
    WorkArrays,
)

# Arrays of the tree that grow: the field of `head` that counts units, elements per unit, the field of `needed`.
_GROWING = {
    "node": (N_NODES, NODE_FIELDS, NEEDED_NODES),
    "n_below": (N_NODES, 1, NEEDED_NODES),
    "n_at_division": (N_NODES, 1, NEEDED_NODES),
    "share": (N_NODES, 1, NEEDED_NODES),
    "block": (N_BLOCK, 1, NEEDED_BLOCK),
    "bound": (N_BOUND, 1, NEEDED_BOUND),
    "clause": (N_ENTRIES, 1, NEEDED_ENTRIES),
    "signature": (N_ENTRIES, 1, NEEDED_ENTRIES),
    "box": (N_ENTRIES, 4, NEEDED_ENTRIES),
}
# Arrays of the work that grow: elements per unit, elements in addition, the field of `needed`.
_WIDENING = {
    "clause": (1, 0, NEEDED_LOCAL),
    "box": (4, 0, NEEDED_LOCAL),
    "rank_start": (1, 1, NEEDED_LOCAL),
    "key": (1, 0, NEEDED_LOCAL),
    "weight": (1, 1, NEEDED_LOCAL),
    "chance": (1, 1, NEEDED_LOCAL),
    "rank": (1, 0, NEEDED_KEYWORDS),
    "order": (1, 0, NEEDED_ORDER),
    "visit": (ITEM_FIELDS, 0, NEEDED_VISITS),
    "visit_region": (REGION_FIELDS, 0, NEEDED_VISITS),
    "pending": (ITEM_FIELDS, 0, NEEDED_PENDING),
    "pending_region": (REGION_FIELDS, 0, NEEDED_PENDING),
}
# More than is needed, so that arrays do not grow all the time.
_GROWTH = 1.25


def empty_tree(rank: NDArray[np.int32], region: NDArray[np.float64], n_ranked: int, n_clauses: int) -> TreeArrays:
    """A root that is an empty leaf, with capacity for the entries of about `n_clauses`."""
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[N_NODES], head[FREE_NODE], head[N_BACK], head[DEEPEST] = 1, NO_NODE, n_ranked, 1
    n_nodes, n_entries = 16 + n_clauses // 8, 16 + 2 * n_clauses
    node = np.empty(NODE_FIELDS * n_nodes, np.int32)
    node[:NODE_FIELDS] = 0
    n_below = np.empty(n_nodes, np.int32)
    n_below[ROOT] = 0
    free = [np.full(N_CLASSES, NO_CHUNK, np.int32) for _ in range(3)]
    return TreeArrays(
        rank=rank,
        region=region,
        node=node,
        n_below=n_below,
        n_at_division=n_below.copy(),
        share=np.ones(n_nodes, np.float32),
        block=np.empty(BLOCK_FIELDS + n_clauses // 2, np.int32),
        bound=np.empty(16, np.float64),
        clause=np.empty(n_entries, np.int32),
        signature=np.empty(n_entries, np.int64),
        box=np.empty(4 * n_entries, np.float64),
        free_block=free[0],
        free_bound=free[1],
        free_entry=free[2],
        head=head,
    )


def empty_work(fanout: int, is_optimal: bool, n_local: int, n_keywords: int, n_line: int, n_clauses: int) -> WorkArrays:
    """Capacity for `n_local` clauses with `n_keywords` in all, and for marks of `n_line` ranks and `n_clauses` slots."""
    most_items = (DEEPEST_LEVEL + 1) * (2 * fanout + 3)
    most_keys = max(MOST_KEYS, fanout) if is_optimal else 0
    n_visits = 64
    return WorkArrays(
        state=np.zeros(STATE_FIELDS, np.int64),
        needed=np.zeros(NEEDED_FIELDS, np.int64),
        item=np.empty(most_items * ITEM_FIELDS, np.int64),
        item_region=np.empty(most_items * REGION_FIELDS, np.float64),
        clause=np.empty(n_local, np.int32),
        box=np.empty(4 * max(1, n_local), np.float64),
        rank_start=np.empty(n_local + 1, np.int64),
        rank=np.empty(n_keywords, np.int32),
        order=np.empty(2 * n_local, np.int32),
        key=np.empty(n_local, np.int32),
        weight=np.empty(n_local + 1, np.float64),
        chance=np.empty(n_local + 1, np.float64),
        line=np.zeros(n_line, np.int32),
        sample=np.empty(4 * SAMPLE, np.float64),
        edge=np.empty(4 * (MOST_EDGES + 2), np.float64),
        bounds=np.empty(3 * (fanout + 2), np.int64),
        grid=np.empty(2 * (fanout + 2), np.float64),
        counts=np.empty(2 * (2 * fanout + 4), np.int64),
        table=np.empty((fanout + 1) * (most_keys + 1), np.int32),
        row=np.empty(4 * (most_keys + 1), np.float64),
        atom=np.empty(most_keys + 1 + 256, np.int64),
        seen=np.zeros(n_clauses, np.uint8),
        stack=np.empty(most_items, np.int32),
        visit=np.empty(n_visits * ITEM_FIELDS, np.int64),
        visit_region=np.empty(n_visits * REGION_FIELDS, np.float64),
        pending=np.empty(n_visits * ITEM_FIELDS, np.int64),
        pending_region=np.empty(n_visits * REGION_FIELDS, np.float64),
    )


def resized_tree(tree: TreeArrays, work: WorkArrays) -> tuple[TreeArrays, WorkArrays]:
    """The same with the sizes that a kernel needs, and some more."""
    needed = (_GROWTH * work.needed).astype(np.int64).tolist()
    least = work.needed.tolist()
    grown = {
        name: resized(getattr(tree, name), unit * needed[want], None, unit * int(tree.head[field]), unit * least[want])
        for name, (field, unit, want) in _GROWING.items()
    }
    wider = {
        name: resized(getattr(work, name), unit * needed[want] + more, None, needed=unit * least[want] + more)
        for name, (unit, more, want) in _WIDENING.items()
    }
    return tree._replace(**grown), work._replace(**wider)


def trimmed(tree: TreeArrays) -> TreeArrays:
    """The same without spare capacity."""
    used = {name: getattr(tree, name)[: unit * int(tree.head[field])].copy() for name, (field, unit, _) in _GROWING.items()}
    return tree._replace(**used)
