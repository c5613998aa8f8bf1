"""Insert clauses one by one into an R-tree whose nodes have keyword sets, and choose the order of their keywords.

The sets stay exact, also when a node is split.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import FIRST_CAPACITY, append_item
from nearcast.kernels.sorting import sift_down, sort_many
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD, lower_bound
from nearcast.papers.boolean.kernels.rtree import N_NODES, NO_NODE, ROOT, WIDTH, find_leaf, is_full, put_in_leaf, split_full


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
    """Insert clauses from position `first` of `slots` on; returns the position where capacity ran out, or the end."""
    tree, sets, representative = index.tree, index.sets, index.representative
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    for i in range(first, slots.size):
        clause = slots[i]
        x0, y0, x1, y1 = clauses.x0[clause], clauses.y0[clause], clauses.x1[clause], clauses.y1[clause]
        leaf = find_leaf(tree, x0, y0, x1, y1)
        n_listed = count_listed(representative, keyword_start, clause)
        if tree.head[N_NODES] + tree.level[tree.head[ROOT]] + 2 > tree.level.size:
            return i
        if sets.n_items[0] + capacity_needed(tree, sets, leaf, n_listed) > sets.item.size:
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
def capacity_needed(tree, sets, leaf, n_listed):
    """The most that the sets can take from the pool when a clause with `n_listed` keywords is added to this leaf."""
    needed = 0
    is_splitting = True
    node = np.int64(leaf)
    while node != NO_NODE:
        size = sets.size[node] + n_listed
        if size > sets.capacity[node]:
            # A set that outgrows its capacity moves, perhaps several times, each time to twice the capacity.
            needed += 4 * (size + FIRST_CAPACITY)
        is_splitting = is_splitting and tree.n_entries[node] + 1 == tree.head[WIDTH]
        if is_splitting:
            # For the sibling; for the new root as well, if this is the root.
            needed += 2 * size
        node = np.int64(tree.parent[node])
    return needed


@kernel
def add_to_set(sets, node, keyword):
    """Add a keyword to a sorted set, unless it is there. The pool is large enough."""
    at = lower_bound(sets.item, sets.start[node], sets.start[node] + sets.size[node], keyword)
    if at < sets.start[node] + sets.size[node] and sets.item[at] == keyword:
        return
    position = at - sets.start[node]
    last = append_item(sets, node, keyword)
    begin = sets.start[node]
    for i in range(begin + last, begin + position, -1):
        sets.item[i] = sets.item[i - 1]
    sets.item[begin + position] = keyword


@kernel
def refill_set(index, clauses, node):
    """Compute the set of a node from its children. The pool is large enough."""
    tree, sets, representative = index.tree, index.sets, index.representative
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    first = node * tree.head[WIDTH]
    n = 0
    for entry in range(first, first + tree.n_entries[node]):
        child = tree.child[entry]
        n += count_listed(representative, keyword_start, child) if tree.level[node] == 0 else sets.size[child]
    keywords = np.empty(n, np.int32)
    n = 0
    for entry in range(first, first + tree.n_entries[node]):
        child = tree.child[entry]
        if tree.level[node] == 0:
            for k in range(count_listed(representative, keyword_start, child)):
                keywords[n] = listed_keyword(representative, keyword_start, keyword, child, k)
                n += 1
        else:
            for at in range(sets.start[child], sets.start[child] + sets.size[child]):
                keywords[n] = sets.item[at]
                n += 1
    sort_many(keywords, 0, n)
    n_distinct = 0
    for i in range(n):
        if i == 0 or keywords[i] != keywords[i - 1]:
            n_distinct += 1
    if n_distinct > sets.capacity[node]:
        sets.start[node] = sets.n_items[0]
        sets.capacity[node] = n_distinct
        sets.n_items[0] += n_distinct
    sets.size[node] = n_distinct
    at = sets.start[node]
    for i in range(n):
        if i == 0 or keywords[i] != keywords[i - 1]:
            sets.item[at] = keywords[i]
            at += 1


@kernel
def order_keywords(keyword_start, keyword, weight, tie_weight):
    """Sort the keywords of each clause by weight, then by the weight of the keyword, then by id, in place. Paper: RT 4.2."""
    for clause in range(keyword_start.size - 1):
        begin = keyword_start[clause]
        for i in range(begin + 1, keyword_start[clause + 1]):
            moved, moved_weight = keyword[i], weight[i]
            moved_tie = tie_weight[moved]
            j = i - 1
            while j >= begin:
                other, other_weight = keyword[j], weight[j]
                if other_weight < moved_weight:
                    break
                if other_weight == moved_weight:
                    other_tie = tie_weight[other]
                    if other_tie < moved_tie or (other_tie == moved_tie and other < moved):
                        break
                keyword[j + 1], weight[j + 1] = other, other_weight
                j -= 1
            keyword[j + 1], weight[j + 1] = moved, moved_weight


@kernel
def pick_greedily(keyword_start, keyword, holder_start, holder, frequency, heap, is_covered, rank):
    """Rank keywords by repeatedly picking the one that most clauses without a picked keyword have (the smaller id on a tie).

    `holder` lists the clauses that have a keyword; `heap` has one element per keyword; `frequency` is changed; only picked
    keywords get a rank. The heap is lazy: frequencies only fall, so a top that is up to date is the largest.
    """
    n_keywords = frequency.size
    for w in range(n_keywords):
        heap[w] = frequency[w] * n_keywords + (n_keywords - 1 - w)
    n_heap = n_keywords
    for root in range(n_heap // 2 - 1, -1, -1):
        sift_down(heap, 0, root, n_heap)
    n_picked = 0
    # What is below n_keywords has frequency 0: every clause is covered.
    while n_heap > 0 and heap[0] >= n_keywords:
        w = n_keywords - 1 - heap[0] % n_keywords
        if frequency[w] != heap[0] // n_keywords:
            heap[0] = frequency[w] * n_keywords + (n_keywords - 1 - w)
            sift_down(heap, 0, 0, n_heap)
            continue
        rank[w] = n_picked
        n_picked += 1
        for at in range(holder_start[w], holder_start[w + 1]):
            clause = holder[at]
            if not is_covered[clause]:
                is_covered[clause] = True
                for other in range(keyword_start[clause], keyword_start[clause + 1]):
                    frequency[keyword[other]] -= 1
        n_heap -= 1
        heap[0] = heap[n_heap]
        sift_down(heap, 0, 0, n_heap)
    return n_picked
