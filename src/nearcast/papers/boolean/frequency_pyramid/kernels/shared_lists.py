"""Lists that quarters of one cell share: add a clause, share, stop sharing.

A clause is filed once in each cell that it meets. So a clause is added to a shared list only if none of the other quarters has
it elsewhere, and a quarter shares a list only if it has none of the clauses elsewhere. Paper: silent; the authors' program does
not check and then finds a clause twice.
"""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.quadtree import column_of
from nearcast.papers.boolean.frequency_pyramid.kernels.lists import (
    append_clause,
    copy_entry,
    entry_at,
    find_edge,
    free_list,
    has_clause,
    list_capacity,
    list_extra,
    list_header,
    list_size,
    new_list,
    remove_dead,
    reserve_entry,
    set_edge,
)
from nearcast.papers.boolean.frequency_pyramid.layout import CLAUSE, N_ENTRIES, N_SHARED, NOTHING
from nearcast.papers.boolean.quadtrees.kernels.lists import signature_of


@inline_kernel
def columns_met(low, high, first):
    """Which of the columns `first` and `first + 1` are between low and high: a bit each."""
    return (1 if low <= first and first <= high else 0) | (2 if low <= first + 1 and first + 1 <= high else 0)


@inline_kernel
def quarters_met(frame, max_depth, x0, y0, x1, y1, depth, column, row):
    """The quarters of a cell, at `column` and `row` of the grid of depth - 1, that a box meets: a bit each."""
    n_columns, shift = 1 << max_depth, max_depth - depth
    columns = columns_met(
        column_of(x0, frame[0], frame[1], frame[2], n_columns) >> shift,
        column_of(x1, frame[0], frame[1], frame[2], n_columns) >> shift,
        2 * column,
    )
    rows = columns_met(
        column_of(y0, frame[3], frame[4], frame[5], n_columns) >> shift,
        column_of(y1, frame[3], frame[4], frame[5], n_columns) >> shift,
        2 * row,
    )
    return (columns if rows & 1 else 0) | ((columns << 2) if rows & 2 else 0)


@inline_kernel
def quarters_of_entry(number, entry, frame, max_depth, cell):
    _, depth, column, row = cell
    return quarters_met(
        frame, max_depth, number[entry], number[entry + 1], number[entry + 2], number[entry + 3], depth, column, row
    )


@kernel
def set_edges(pyramid, block, anchor, start):
    """Set the edges to a list of all quarters that share it."""
    pyramid = borrow(pyramid)
    sharers = list_extra(pyramid.word[start])
    for quarter in range(4):
        if (sharers >> quarter) & 1:
            set_edge(pyramid, block + quarter, anchor, start)


@kernel
def release_list(pyramid, start, quarter):
    """Remove a quarter from those that share a list; the list is freed if it was the last."""
    pyramid = borrow(pyramid)
    header = pyramid.word[start]
    sharers = list_extra(header) & ~(1 << quarter)
    if sharers == 0:
        free_list(pyramid, start)
    else:
        pyramid.head[N_SHARED] -= 1
        pyramid.word[start] = list_header(list_size(header), list_capacity(header), sharers)


@kernel
def unshare_list(pyramid, cell, quarter, anchor, start, max_depth):
    """Copy what a quarter meets of a shared list to a list of its own; returns its start."""
    pyramid = borrow(pyramid)
    word, number = pyramid.word, pyramid.number
    size = list_size(word[start])
    quarter_list = new_list(pyramid, size, 1 << quarter)
    n_quarter = 0
    for position in range(size):
        entry = entry_at(word, start, position)
        if (quarters_of_entry(number, entry, pyramid.frame, max_depth, cell) >> quarter) & 1:
            copy_entry(word, start, position, quarter_list, n_quarter)
            n_quarter += 1
    word[quarter_list] += n_quarter
    pyramid.head[N_ENTRIES] += n_quarter
    release_list(pyramid, start, quarter)
    set_edge(pyramid, cell[0] + quarter, anchor, quarter_list)
    return quarter_list


@kernel
def put_in_list(pyramid, clauses, options, cell, quarter, anchor, clause, met, pending):
    """File a clause in the list of an anchor in a quarter; returns the list, or NOTHING if it is full or has become a trie.

    `met` are the quarters that the clause meets, `pending` those where it is not filed yet.
    """
    pyramid, clauses = borrow(pyramid), borrow(clauses)
    word = pyramid.word
    block = cell[0]
    start = find_edge(pyramid.slot, block + quarter, anchor)
    if start < NOTHING:
        return NOTHING
    if start == NOTHING:
        start = new_list(pyramid, 1, 1 << quarter)
    else:
        if list_size(word[start]) >= options.list_size:
            remove_dead(pyramid, clauses.is_alive, start, False)
        sharers = list_extra(word[start])
        is_full = list_size(word[start]) >= options.list_size
        if sharers != 1 << quarter and (is_full or sharers & met & ~pending != 0):
            start = unshare_list(pyramid, cell, quarter, anchor, start, options.max_depth)
        if list_size(word[start]) >= options.list_size:
            return NOTHING
        start = reserve_entry(pyramid, start)
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    bits = signature_of(keyword, keyword_start[clause], keyword_start[clause + 1], anchor)
    append_clause(pyramid, clauses, start, clause, bits)
    set_edges(pyramid, block, anchor, start)
    return start


@kernel
def share_list(pyramid, is_alive, options, cell, quarter, anchor, start, clause):
    """Make a quarter share the list with the clause, if possible; returns the list, or NOTHING."""
    pyramid = borrow(pyramid)
    word, number, frame = pyramid.word, pyramid.number, pyramid.frame
    quarter_list = find_edge(pyramid.slot, cell[0] + quarter, anchor)
    if quarter_list < NOTHING:
        return NOTHING
    n_more = 0
    if quarter_list >= 0:
        sharers = list_extra(word[start])
        for position in range(list_size(word[quarter_list])):
            entry = entry_at(word, quarter_list, position)
            if is_alive[word[entry + CLAUSE]] and not has_clause(word, start, word[entry + CLAUSE]):
                met = quarters_of_entry(number, entry, frame, options.max_depth, cell)
                if met & sharers != 0:
                    return NOTHING
                n_more += (met >> quarter) & 1
    if list_size(word[start]) + n_more > options.list_size:
        return NOTHING
    for position in range(list_size(word[start])):
        entry = entry_at(word, start, position)
        other = word[entry + CLAUSE]
        is_new = other != clause and is_alive[other] and (quarter_list == NOTHING or not has_clause(word, quarter_list, other))
        if is_new and (quarters_of_entry(number, entry, frame, options.max_depth, cell) >> quarter) & 1:
            return NOTHING
    if quarter_list >= 0:
        start = merge_lists(pyramid, is_alive, options, cell, quarter, quarter_list, start)
        release_list(pyramid, quarter_list, quarter)
    header = word[start]
    word[start] = list_header(list_size(header), list_capacity(header), list_extra(header) | (1 << quarter))
    pyramid.head[N_SHARED] += 1
    set_edges(pyramid, cell[0], anchor, start)
    return start


@kernel
def merge_lists(pyramid, is_alive, options, cell, quarter, quarter_list, start):
    """Append to a list the clauses of another that a quarter meets and the list lacks; returns its start."""
    pyramid = borrow(pyramid)
    word, number = pyramid.word, pyramid.number
    for position in range(list_size(word[quarter_list])):
        entry = entry_at(word, quarter_list, position)
        other = word[entry + CLAUSE]
        met = quarters_of_entry(number, entry, pyramid.frame, options.max_depth, cell)
        if is_alive[other] and (met >> quarter) & 1 and not has_clause(word, start, other):
            start = reserve_entry(pyramid, start)
            copy_entry(word, quarter_list, position, start, list_size(word[start]))
            word[start] += 1
            pyramid.head[N_ENTRIES] += 1
    return start
