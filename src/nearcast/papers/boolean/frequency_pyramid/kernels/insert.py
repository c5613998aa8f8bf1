"""File clauses, one by one: in the list of a keyword, else in a trie, and from a full node of a trie in the next finer grid.

Paper: FAST's insertion and AKI, the adaptive keyword index of a cell.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.keyword_sets import rarest_anchor
from nearcast.papers.boolean.frequency_pyramid.kernels.lists import (
    chunk_words,
    entry_at,
    find_edge,
    list_extra,
    list_size,
    new_nodes,
    nth_anchor,
    path_length,
    set_edge,
    wider_capacity,
)
from nearcast.papers.boolean.frequency_pyramid.kernels.shared_lists import (
    put_in_list,
    quarters_met,
    quarters_of_entry,
    release_list,
    share_list,
)
from nearcast.papers.boolean.frequency_pyramid.kernels.tries import push_item, put_in_trie
from nearcast.papers.boolean.frequency_pyramid.layout import (
    BLOCK,
    CLAUSE,
    COLUMN,
    DEPTH,
    ITEM_CLAUSE,
    ITEM_FIELDS,
    LONGEST,
    N_EDGES,
    N_FILED,
    N_FREQUENT,
    N_ITEMS,
    N_NODES,
    N_WORDS,
    NEEDED_ITEMS,
    NEEDED_NODES,
    NEEDED_SLOTS,
    NEEDED_WORDS,
    NO_ANCHOR,
    NODE_FIELDS,
    NOTHING,
    POSITION,
    QUARTERS,
    ROOT,
    ROW,
)


@kernel
def count_anchors(frequency, keyword_start, keyword, slots, step):
    """Add `step` to the frequency of every keyword of the clauses, or of NO_ANCHOR."""
    for i in range(slots.size):
        first, last = keyword_start[slots[i]], keyword_start[slots[i] + 1]
        if first == last:
            frequency[NO_ANCHOR] += step
        for at in range(first, last):
            frequency[1 + keyword[at]] += step


@kernel
def has_capacity(pyramid, work, options, n_path):
    """Whether the capacity is enough to file one clause in four quarters in any case."""
    pyramid, work = borrow(pyramid), borrow(work)
    head, needed = pyramid.head, work.needed
    # In each quarter: a list that moves or is split into lists that grow, a node for each keyword, quarters below.
    n_split = options.list_size + 2
    needed[NEEDED_NODES] = head[N_NODES] + 4 * (n_path + 6)
    needed[NEEDED_SLOTS] = 4 * (head[N_EDGES] + 4 * (n_path + n_split + 1)) // 3 + 1
    n_words = chunk_words(wider_capacity(head[LONGEST] + 1)) + (n_split + 5) * chunk_words(wider_capacity(n_split))
    needed[NEEDED_WORDS] = head[N_WORDS] + 4 * n_words
    needed[NEEDED_ITEMS] = work.state[N_ITEMS] + 4 * (n_path * n_split + options.node_size + n_split)
    return (
        needed[NEEDED_NODES] * NODE_FIELDS <= pyramid.node.size
        and needed[NEEDED_SLOTS] <= pyramid.slot.size // 2
        and needed[NEEDED_WORDS] <= pyramid.word.size
        and needed[NEEDED_ITEMS] * ITEM_FIELDS <= work.item.size
    )


@kernel
def shortest_anchor(pyramid, clauses, node, clause, limit):
    """The keyword of a clause with the shortest list in a cell, or NOTHING where all lists are full or tries."""
    pyramid, clauses = borrow(pyramid), borrow(clauses)
    keyword_start, keyword, slot, word = clauses.keyword_start, clauses.keyword, pyramid.slot, pyramid.word
    best, shortest = np.int64(NOTHING), np.int64(limit)
    for position in range(path_length(keyword_start, clause)):
        anchor = nth_anchor(keyword_start, keyword, clause, position)
        start = find_edge(slot, node, anchor)
        if start < NOTHING:
            continue
        size = np.int64(0)
        if start >= 0:
            size = list_size(word[start])
        if size < shortest:
            best, shortest = anchor, size
    return best


@kernel
def make_frequent(pyramid, clauses, work, options, cell, quarter, clause):
    """Replace the lists of all keywords of a clause by tries; push their clauses to be filed again."""
    pyramid, clauses, work = borrow(pyramid), borrow(clauses), borrow(work)
    word, number, is_alive = pyramid.word, pyramid.number, clauses.is_alive
    node = cell[0] + quarter
    for position in range(path_length(clauses.keyword_start, clause)):
        anchor = nth_anchor(clauses.keyword_start, clauses.keyword, clause, position)
        start = find_edge(pyramid.slot, node, anchor)
        if start < NOTHING:
            continue
        for at in range(list_size(word[start])):
            entry = entry_at(word, start, at)
            met = quarters_of_entry(number, entry, pyramid.frame, options.max_depth, cell)
            if is_alive[word[entry + CLAUSE]] and (met >> quarter) & 1:
                push_item(work, word[entry + CLAUSE], 1 << quarter, cell)
        release_list(pyramid, start, quarter)
        set_edge(pyramid, node, anchor, ~new_nodes(pyramid, 1))
        pyramid.head[N_FREQUENT] += 1


@kernel
def file_item(pyramid, clauses, work, options):
    """File the clause on top of the stack in its quarters."""
    pyramid, clauses, work = borrow(pyramid), borrow(clauses), borrow(work)
    item, state, frame, word = work.item, work.state, pyramid.frame, pyramid.word
    state[N_ITEMS] -= 1
    at = state[N_ITEMS] * ITEM_FIELDS
    clause, pending = item[at + ITEM_CLAUSE], item[at + QUARTERS]
    cell = (item[at + BLOCK], item[at + DEPTH], item[at + COLUMN], item[at + ROW])
    box = (clauses.x0[clause], clauses.y0[clause], clauses.x1[clause], clauses.y1[clause])
    met = quarters_met(frame, options.max_depth, box[0], box[1], box[2], box[3], cell[1], cell[2], cell[3])
    # The first frequency is that of NO_ANCHOR.
    anchor = rarest_anchor(clauses.keyword_start, clauses.keyword, pyramid.frequency[1:], clause)
    shared = np.int64(NOTHING)
    for quarter in range(4):
        if (pending >> quarter) & 1 == 0:
            continue
        start = np.int64(NOTHING)
        if shared != NOTHING:
            start = share_list(pyramid, clauses.is_alive, options, cell, quarter, anchor, shared, clause)
        if start == NOTHING:
            start = put_in_list(pyramid, clauses, options, cell, quarter, anchor, clause, met, pending)
        if start != NOTHING and options.is_sharing:
            shared = start
        if start == NOTHING:
            other = shortest_anchor(pyramid, clauses, cell[0] + quarter, clause, options.list_size)
            if other != NOTHING:
                start = put_in_list(pyramid, clauses, options, cell, quarter, other, clause, met, pending)
        if start == NOTHING:
            make_frequent(pyramid, clauses, work, options, cell, quarter, clause)
            put_in_trie(pyramid, clauses, work, options, cell, quarter, clause)
            pending &= ~(1 << quarter)
        else:
            pending &= ~list_extra(word[start])


@kernel
def file_clauses(pyramid, clauses, work, options, slots):
    """File the clauses from POSITION on; returns whether all are filed. If not, capacity ran out (see `needed`)."""
    state, item, head, keyword_start = work.state, work.item, pyramid.head, clauses.keyword_start
    while True:
        while state[N_ITEMS] > 0:
            top = item[(state[N_ITEMS] - 1) * ITEM_FIELDS + ITEM_CLAUSE]
            if not has_capacity(pyramid, work, options, path_length(keyword_start, top)):
                return False
            file_item(pyramid, clauses, work, options)
        if state[POSITION] == slots.size:
            return True
        if not has_capacity(pyramid, work, options, 1):
            return False
        clause = slots[state[POSITION]]
        head[N_FILED] += 1
        push_item(work, clause, 1, (np.int64(ROOT), np.int64(0), np.int64(0), np.int64(0)))
        state[POSITION] += 1
