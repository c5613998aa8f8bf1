"""Insert clauses one by one into an R-tree whose nodes have keyword sets. The sets stay exact, also when a node is split."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import FIRST_CAPACITY, append_item
from nearcast.kernels.sorting import sort_many
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD, lower_bound
from nearcast.papers.boolean.kernels.rtree import N_NODES, NO_NODE, PLACES, ROOT, find_leaf, is_full, put_in_leaf, split_full


@inline_kernel
def count_listed(representative, keyword_start, clause):
    """How many keywords of a clause the sets list."""
    if representative.size > 0:
        return 1
    return max(1, keyword_start[clause + 1] - keyword_start[clause])


@inline_kernel
def listed_keyword(representative, keyword_start, keyword, clause, i):
    """The i-th listed keyword of a clause."""
    if representative.size > 0:
        return representative[clause]
    if keyword_start[clause] == keyword_start[clause + 1]:
        return np.int32(NO_KEYWORD)
    return keyword[keyword_start[clause] + i]


@kernel
def file_clauses(index, clauses, slots, first):
    """Insert clauses from position `first` of `slots` on; returns where there was no room for a node or a set, or the end."""
    tree, sets, representative = index.tree, index.sets, index.representative
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    for i in range(first, slots.size):
        clause = slots[i]
        x0, y0, x1, y1 = clauses.x0[clause], clauses.y0[clause], clauses.x1[clause], clauses.y1[clause]
        leaf = find_leaf(tree, x0, y0, x1, y1)
        n_listed = count_listed(representative, keyword_start, clause)
        if tree.head[N_NODES] + tree.level[tree.head[ROOT]] + 2 > tree.level.size:
            return i
        if sets.n_items[0] + room_wanted(tree, sets, leaf, n_listed) > sets.item.size:
            return i
        put_in_leaf(tree, leaf, x0, y0, x1, y1, clause)
        node = leaf
        while node != NO_NODE:
            for k in range(n_listed):
                add_to_set(sets, node, listed_keyword(representative, keyword_start, keyword, clause, k))
            node = np.int64(tree.parent[node])
        node = leaf
        while is_full(tree, node):
            new = split_full(tree, node)
            refill_set(index, clauses, node)
            refill_set(index, clauses, new)
            node = np.int64(tree.parent[node])
            if tree.parent[node] == NO_NODE and sets.size[node] == 0:
                refill_set(index, clauses, node)
    return slots.size


@kernel
def room_wanted(tree, sets, leaf, n_listed):
    """The most that the sets can take from the pool when a clause with so many listed keywords goes to this leaf."""
    wanted = 0
    is_splitting = True
    node = np.int64(leaf)
    while node != NO_NODE:
        size = sets.size[node] + n_listed
        if size > sets.capacity[node]:
            # A set that outgrows its room moves, perhaps several times, each time to twice the room.
            wanted += 4 * (size + FIRST_CAPACITY)
        is_splitting = is_splitting and tree.n_entries[node] + 1 == tree.head[PLACES]
        if is_splitting:
            # For the sibling; for the new root as well, if this is the root.
            wanted += 2 * size
        node = np.int64(tree.parent[node])
    return wanted


@kernel
def add_to_set(sets, owner, keyword):
    """Add a keyword to a sorted set, unless it is there. The pool has room."""
    at = lower_bound(sets.item, sets.start[owner], sets.start[owner] + sets.size[owner], keyword)
    if at < sets.start[owner] + sets.size[owner] and sets.item[at] == keyword:
        return
    position = at - sets.start[owner]
    last = append_item(sets, owner, keyword)
    begin = sets.start[owner]
    for i in range(begin + last, begin + position, -1):
        sets.item[i] = sets.item[i - 1]
    sets.item[begin + position] = keyword


@kernel
def refill_set(index, clauses, node):
    """Compute a node's set from what lies below it. The pool has room."""
    tree, sets, representative = index.tree, index.sets, index.representative
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    first = node * tree.head[PLACES]
    n = 0
    for entry in range(first, first + tree.n_entries[node]):
        child = tree.child[entry]
        n += count_listed(representative, keyword_start, child) if tree.level[node] == 0 else sets.size[child]
    gathered = np.empty(n, np.int32)
    n = 0
    for entry in range(first, first + tree.n_entries[node]):
        child = tree.child[entry]
        if tree.level[node] == 0:
            for k in range(count_listed(representative, keyword_start, child)):
                gathered[n] = listed_keyword(representative, keyword_start, keyword, child, k)
                n += 1
        else:
            for at in range(sets.start[child], sets.start[child] + sets.size[child]):
                gathered[n] = sets.item[at]
                n += 1
    sort_many(gathered, 0, n)
    n_distinct = 0
    for i in range(n):
        if i == 0 or gathered[i] != gathered[i - 1]:
            n_distinct += 1
    if n_distinct > sets.capacity[node]:
        sets.start[node] = sets.n_items[0]
        sets.capacity[node] = n_distinct
        sets.n_items[0] += n_distinct
    sets.size[node] = n_distinct
    at = sets.start[node]
    for i in range(n):
        if i == 0 or gathered[i] != gathered[i - 1]:
            sets.item[at] = gathered[i]
            at += 1
