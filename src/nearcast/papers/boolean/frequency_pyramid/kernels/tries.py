"""Tries of keywords that are frequent in a cell: clauses go down by keyword, and from full nodes to the next finer grid.

Paper: FAST's frequent keywords and descent.
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
    list_capacity,
    list_extra,
    list_header,
    list_size,
    new_list,
    new_nodes,
    nth_anchor,
    path_length,
    remove_dead,
    reserve_entry,
    set_edge,
    unproven_bits,
)
from nearcast.papers.boolean.frequency_pyramid.kernels.shared_lists import quarters_of_entry
from nearcast.papers.boolean.frequency_pyramid.layout import (
    BELOW,
    BLOCK,
    CLAUSE,
    COLUMN,
    DEPTH,
    ENTRY_WORDS,
    ITEM_CLAUSE,
    ITEM_FIELDS,
    N_ENTRIES,
    N_ITEMS,
    NODE_FIELDS,
    NOTHING,
    QUARTERS,
    ROW,
)


@inline_kernel
def push_item(work, clause, quarters, cell):
    item, state = work.item, work.state
    at = state[N_ITEMS] * ITEM_FIELDS
    item[at + ITEM_CLAUSE], item[at + QUARTERS] = clause, quarters
    item[at + BLOCK], item[at + DEPTH], item[at + COLUMN], item[at + ROW] = cell[0], cell[1], cell[2], cell[3]
    state[N_ITEMS] += 1


@kernel
def split_list(pyramid, clauses, options, cell, start, depth):
    """Replace a full list in a trie, `depth` keywords down, by a node: its clauses move on by their next keyword, or end."""
    pyramid, clauses = borrow(pyramid), borrow(clauses)
    word = pyramid.word
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    number = new_nodes(pyramid, 1)
    for position in range(list_size(word[start])):
        clause = word[entry_at(word, start, position) + CLAUSE]
        if path_length(keyword_start, clause) == depth:
            end_at(pyramid, clauses, options, cell, number, clause)
            continue
        anchor = nth_anchor(keyword_start, keyword, clause, depth)
        below = find_edge(pyramid.slot, number, anchor)
        if below == NOTHING:
            below = new_list(pyramid, 1, 0)
        below = reserve_entry(pyramid, below)
        append_clause(pyramid, clauses, below, clause, unproven_bits(keyword_start, keyword, clause, depth + 1))
        set_edge(pyramid, number, anchor, below)
    free_list(pyramid, start)
    return number


@kernel
def is_movable(pyramid, clauses, options, depth, clause):
    """Whether a clause may move down: there is a finer grid, and the clause is at most half as long as a cell."""
    frame, max_depth = pyramid.frame, options.max_depth
    if depth == max_depth:
        return False
    n_columns = 1 << max_depth
    width = column_of(clauses.x1[clause], frame[0], frame[1], frame[2], n_columns)
    width -= column_of(clauses.x0[clause], frame[0], frame[1], frame[2], n_columns)
    height = column_of(clauses.y1[clause], frame[3], frame[4], frame[5], n_columns)
    height -= column_of(clauses.y0[clause], frame[3], frame[4], frame[5], n_columns)
    return 2 * max(width, height) <= 1 << (max_depth - depth)


@inline_kernel
def swap_entries(word, one, other):
    for at in range(ENTRY_WORDS):
        word[one + at], word[other + at] = word[other + at], word[one + at]


@kernel
def end_at(pyramid, clauses, options, cell, number, clause):
    """File a clause at the node of a trie where its keywords end; those that may move down come first."""
    pyramid, clauses = borrow(pyramid), borrow(clauses)
    node, word = pyramid.node, pyramid.word
    start = node[NODE_FIELDS * number + BELOW]
    start = new_list(pyramid, 1, 0) if start == NOTHING else reserve_entry(pyramid, start)
    node[NODE_FIELDS * number + BELOW] = start
    append_clause(pyramid, clauses, start, clause, 0)
    if is_movable(pyramid, clauses, options, cell[1], clause):
        header = word[start]
        size, n_movable = list_size(header), list_extra(header)
        # Swap with the first that may not move down. No signature here: the path has proven every keyword.
        swap_entries(word, entry_at(word, start, n_movable), entry_at(word, start, size - 1))
        word[start] = list_header(size, list_capacity(header), n_movable + 1)


@inline_kernel
def area_within(number, entry, frame, max_depth, depth, column, row):
    """The area of a box within a cell, in cells of the finest grid."""
    n_columns, shift = 1 << max_depth, max_depth - depth
    left, bottom = column << shift, row << shift
    x0 = max(left, column_of(number[entry], frame[0], frame[1], frame[2], n_columns))
    x1 = min(left + (1 << shift) - 1, column_of(number[entry + 2], frame[0], frame[1], frame[2], n_columns))
    y0 = max(bottom, column_of(number[entry + 1], frame[3], frame[4], frame[5], n_columns))
    y1 = min(bottom + (1 << shift) - 1, column_of(number[entry + 3], frame[3], frame[4], frame[5], n_columns))
    return (x1 - x0 + 1) * (y1 - y0 + 1)


@kernel
def move_to_children(pyramid, work, options, cell, quarter, number):
    """Move those clauses of a node to the quarters below whose area within the cell is below the average."""
    pyramid, work = borrow(pyramid), borrow(work)
    node, word, values, frame = pyramid.node, pyramid.word, pyramid.number, pyramid.frame
    block, depth, column, row = cell
    # The root has no cell above it.
    cell_column, cell_row = (2 * column + (quarter & 1), 2 * row + (quarter >> 1))
    start = node[NODE_FIELDS * number + BELOW]
    header = word[start]
    size, n_movable = list_size(header), list_extra(header)
    total = 0
    for position in range(n_movable):
        total += area_within(values, entry_at(word, start, position), frame, options.max_depth, depth, cell_column, cell_row)
    record = NODE_FIELDS * (block + quarter)
    if node[record + BELOW] == NOTHING:
        node[record + BELOW] = new_nodes(pyramid, 4)
    below = (node[record + BELOW], depth + 1, cell_column, cell_row)
    position, n_before = 0, n_movable
    while position < n_movable:
        entry = entry_at(word, start, position)
        if area_within(values, entry, frame, options.max_depth, depth, cell_column, cell_row) * n_before > total:
            position += 1
            continue
        push_item(work, word[entry + CLAUSE], quarters_of_entry(values, entry, frame, options.max_depth, below), below)
        # The last that may move down replaces it, and the last of all replaces that one.
        n_movable, size = n_movable - 1, size - 1
        copy_entry(word, start, n_movable, start, position)
        copy_entry(word, start, size, start, n_movable)
        pyramid.head[N_ENTRIES] -= 1
    word[start] = list_header(size, list_capacity(header), n_movable)


@kernel
def put_in_trie(pyramid, clauses, work, options, cell, quarter, clause):
    """File a clause in the trie of a quarter in which all its keywords are frequent."""
    pyramid, clauses, work = borrow(pyramid), borrow(clauses), borrow(work)
    word, slot, is_alive = pyramid.word, pyramid.slot, clauses.is_alive
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    n_path = path_length(keyword_start, clause)
    number = ~find_edge(slot, cell[0] + quarter, nth_anchor(keyword_start, keyword, clause, 0))
    for position in range(1, n_path):
        anchor = nth_anchor(keyword_start, keyword, clause, position)
        start = find_edge(slot, number, anchor)
        if start >= 0 and list_size(word[start]) >= options.list_size:
            remove_dead(pyramid, is_alive, start, False)
            if list_size(word[start]) >= options.list_size:
                start = ~split_list(pyramid, clauses, options, cell, start, position + 1)
                set_edge(pyramid, number, anchor, start)
        if start >= NOTHING:
            start = new_list(pyramid, 1, 0) if start == NOTHING else reserve_entry(pyramid, start)
            append_clause(pyramid, clauses, start, clause, unproven_bits(keyword_start, keyword, clause, position + 1))
            set_edge(pyramid, number, anchor, start)
            return
        number = ~start
    end_at(pyramid, clauses, options, cell, number, clause)
    start = pyramid.node[NODE_FIELDS * number + BELOW]
    if list_extra(word[start]) > options.node_size:
        remove_dead(pyramid, is_alive, start, True)
        if list_extra(word[start]) > options.node_size:
            move_to_children(pyramid, work, options, cell, quarter, number)
