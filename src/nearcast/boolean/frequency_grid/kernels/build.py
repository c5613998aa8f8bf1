"""Write the lists: for each anchor, count its entries, copy its clauses to its cells, sort by cell, write the lists."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.keys import fold_of, list_key, to_float32
from nearcast.boolean.frequency_grid.kernels.levels import first_column, first_row, last_column, last_row, n_cells_at
from nearcast.boolean.frequency_grid.layout import (
    COVERING,
    FOLD_LEVEL,
    HEADER,
    LEVEL_BITS,
    LINE,
    LINES_BITS,
    LINES_MASK,
    MORE_KEYWORDS,
    MULTIPLE,
    MULTIPLE_SIZE,
    N_OTHERS,
    NO_KEYWORD,
    RECORD_BOX,
    RECORD_FIELDS,
    RECORD_OTHERS,
    SINGLE,
    SINGLE_FIELDS,
)
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.keyword_sets import filter_bit, rarest_anchor

_DIGIT = 11
_FEW = 48
_CLASS_BITS = 2
# Elements of a clause and its other keywords in `named`.
_NAMED = 1 + N_OTHERS


@kernel
def folds_of_box(cells, max_level):
    """The bits of every folded cell that a box meets."""
    shift = max(0, max_level - FOLD_LEVEL)
    column0, row0, column1, row1 = first_column(cells), first_row(cells), last_column(cells), last_row(cells)
    n_columns = min(8, (column1 >> shift) - (column0 >> shift) + 1)
    n_rows = min(8, (row1 >> shift) - (row0 >> shift) + 1)
    bits = np.int64(0)
    for i in range(n_columns):
        for j in range(n_rows):
            bits |= np.int64(1) << np.int64(fold_of(column0 + (i << shift), row0 + (j << shift), max_level))
    return bits


@kernel
def count_entries(anchor_start, order, keyword_start, cells, level, cell_limit, max_level, list_sizes):
    """Count the entries of all anchors; fills `list_sizes` with an upper bound of the int32 that the lists of each take.

    Returns all copies, the most copies and the most clauses of one anchor, and an upper bound of the lists in cells.
    """
    n_all, most_copies, most_clauses, n_lists_all = 0, 0, 0, 0
    for anchor in range(level.size):
        begin, end = anchor_start[anchor], anchor_start[anchor + 1]
        n_single, n_multiple, n_wide = 0, 0, 0
        shift = max_level - level[anchor]
        for i in range(begin, end):
            n_cells = 1
            if level[anchor] > 0:
                n_cells = n_cells_at(cells[i], shift)
                if n_cells > cell_limit[anchor]:
                    n_cells = 1
                    n_wide += 1
            if keyword_start[order[i] + 1] - keyword_start[order[i]] > 1:
                n_multiple += n_cells
            else:
                n_single += n_cells
        n_copies = n_single + n_multiple
        n_lists = 0
        if level[anchor] > 0:
            n_lists = min(n_copies, 1 << (2 * level[anchor]))
            n_lists_all += n_lists
        list_sizes[anchor] = 0
        if n_copies > 0:
            # A list may begin up to one cache line later, so that it does not span one more.
            list_sizes[anchor] = SINGLE_FIELDS * n_single + MULTIPLE_SIZE * n_multiple + (HEADER + LINE) * (n_lists + 1)
        n_all += n_copies
        most_copies = max(most_copies, n_copies)
        most_clauses = max(most_clauses, end - begin)
    return n_all, most_copies, most_clauses, n_lists_all


@inline_kernel
def others_of(keyword_start, keyword, frequency, anchor, clause, named, at):
    """Write a clause and its keywords other than the anchor, rarest first; returns the signature of the first three.

    A signature of fewer keywords has bit 0, which every message has, for the missing ones.
    """
    named[at] = clause
    n_others = 0
    for position in range(keyword_start[clause], keyword_start[clause + 1]):
        other = keyword[position]
        if 1 + other == anchor:
            continue
        # Insertion sort; the most frequent ones drop out at the end.
        rank = min(n_others, N_OTHERS)
        while rank > 0 and frequency[named[at + rank]] > frequency[other]:
            if rank < N_OTHERS:
                named[at + rank + 1] = named[at + rank]
            rank -= 1
        if rank < N_OTHERS:
            named[at + rank + 1] = other
        n_others += 1
    for i in range(n_others, N_OTHERS):
        named[at + i + 1] = NO_KEYWORD
    signature = 0
    for i in range(min(N_OTHERS, n_others)):
        signature |= filter_bit(named[at + 1 + i]) << (9 * i)
    if n_others > N_OTHERS:
        named[at + N_OTHERS] = MORE_KEYWORDS
    return signature


@kernel
def sort_by_key(key, item, n, n_bits, key2, item2, counts):
    """Sort keys of `n_bits` bits with their items, in place; `key2`, `item2` and `counts` are scratch."""
    if n < _FEW:
        for i in range(1, n):
            moved_key, moved_item = key[i], item[i]
            j = i - 1
            while j >= 0 and key[j] > moved_key:
                key[j + 1], item[j + 1] = key[j], item[j]
                j -= 1
            key[j + 1], item[j + 1] = moved_key, moved_item
        return
    from_key, from_item, to_key, to_item = key, item, key2, item2
    mask = (1 << _DIGIT) - 1
    n_passes = (n_bits + _DIGIT - 1) // _DIGIT
    for turn in range(n_passes):
        shift = turn * _DIGIT
        counts[:] = 0
        for i in range(n):
            counts[((from_key[i] >> shift) & mask) + 1] += 1
        for i in range(mask + 1):
            counts[i + 1] += counts[i]
        for i in range(n):
            digit = (from_key[i] >> shift) & mask
            to_key[counts[digit]], to_item[counts[digit]] = from_key[i], from_item[i]
            counts[digit] += 1
        from_key, from_item, to_key, to_item = to_key, to_item, from_key, from_item
    if n_passes % 2 == 1:
        for i in range(n):
            key[i], item[i] = key2[i], item2[i]


@kernel
def write_list(run, box, at, key, item, begin, end, clause_box, named, signature):
    """Write one list from sorted entries; returns the position after it."""
    n_covering, n_single = 0, 0
    for i in range(begin, end):
        kind = key[i] & ((1 << _CLASS_BITS) - 1)
        n_covering += kind == COVERING
        n_single += kind == SINGLE
    n_multiple = end - begin - n_covering - n_single
    run[at], run[at + 1], run[at + 2] = n_covering, n_single, n_multiple
    at += HEADER
    for i in range(n_covering):
        run[at + i] = named[_NAMED * item[begin + i]]
    at += n_covering
    for i in range(n_single):
        local = item[begin + n_covering + i]
        for bound in range(4):
            box[at + bound * n_single + i] = clause_box[4 * local + bound]
        run[at + 4 * n_single + i] = named[_NAMED * local]
    at += SINGLE_FIELDS * n_single
    records = at + n_multiple
    for i in range(n_multiple):
        local, record = item[begin + n_covering + n_single + i], records + RECORD_FIELDS * i
        run[at + i] = signature[local]
        run[record] = named[_NAMED * local]
        for bound in range(4):
            box[record + RECORD_BOX + bound] = clause_box[4 * local + bound]
        for other in range(N_OTHERS):
            run[record + RECORD_OTHERS + other] = named[_NAMED * local + 1 + other]
    return records + RECORD_FIELDS * n_multiple


@inline_kernel
def list_size(key, begin, end):
    """How many int32 a list of sorted entries takes."""
    size = HEADER
    for i in range(begin, end):
        kind = key[i] & ((1 << _CLASS_BITS) - 1)
        size += MULTIPLE_SIZE if kind == MULTIPLE else (SINGLE_FIELDS if kind == SINGLE else 1)
    return size


@inline_kernel
def list_start_for(at, size):
    """The first position of a list: `at`, or the next cache line if the list spans fewer lines there."""
    n_lines = (at % LINE + size + LINE - 1) // LINE
    if n_lines > (size + LINE - 1) // LINE:
        return at + (-at) % LINE
    return at


@inline_kernel
def lines_beyond(at, size):
    """How many cache lines a list spans after its first, as far as they are counted."""
    return min((at % LINE + size - 1) // LINE, LINES_MASK)


@kernel
def spread_clauses(begin, end, order, cells, clauses, frequency, anchor, level, cell_limit, max_level, work):
    """Prepare the clauses of an anchor and write an entry for each of their cells; returns the number of entries.

    The key of an entry is its cell (1 + cell of the grid, or 0 for the list without a cell) and its kind.
    """
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    key, item, clause_box, named, signature = work
    n_entries = 0
    shift = max_level - level
    for i in range(begin, end):
        clause, local = order[i], i - begin
        clause_box[4 * local], clause_box[4 * local + 1] = to_float32(x0[clause]), to_float32(y0[clause])
        clause_box[4 * local + 2], clause_box[4 * local + 3] = to_float32(x1[clause]), to_float32(y1[clause])
        is_multiple = keyword_start[clause + 1] - keyword_start[clause] > 1
        kind = MULTIPLE if is_multiple else SINGLE
        if is_multiple:
            signature[local] = others_of(keyword_start, keyword, frequency, anchor, clause, named, _NAMED * local)
        else:
            named[_NAMED * local] = clause
        if level == 0 or n_cells_at(cells[i], shift) > cell_limit:
            key[n_entries], item[n_entries] = kind, local
            n_entries += 1
            continue
        column0, column1 = first_column(cells[i]) >> shift, last_column(cells[i]) >> shift
        row0, row1 = first_row(cells[i]) >> shift, last_row(cells[i]) >> shift
        for column in range(column0, column1 + 1):
            is_inner = kind == SINGLE and column0 < column and column < column1
            for row in range(row0, row1 + 1):
                # Strictly between its outermost columns and rows a box covers the whole cell, whatever the rounding.
                cell_kind = COVERING if is_inner and row0 < row and row < row1 else kind
                key[n_entries] = ((((column << level) | row) + 1) << _CLASS_BITS) | cell_kind
                item[n_entries] = local
                n_entries += 1
    return n_entries


@kernel
def fill_lists(
    clauses, anchor_start, order, cells, frequency, level, cell_limit, max_level, anchors, at, grid, largest, cell_lists
):
    """Write every list of a range of anchors, from position `at` on.

    `largest` is the greatest number of copies and of clauses of one anchor; `cell_lists` takes the keys and spans of lists in
    cells. Returns the position after the last list, and the number of lists in cells.
    """
    directory, run, box = grid
    key_of_list, span_of_list = cell_lists
    most_copies, most_clauses = largest
    key, item = np.empty(most_copies, np.int32), np.empty(most_copies, np.int32)
    key2, item2 = np.empty(most_copies, np.int32), np.empty(most_copies, np.int32)
    clause_box, named = np.empty(4 * most_clauses, np.float32), np.empty(_NAMED * most_clauses, np.int32)
    signature = np.empty(most_clauses, np.int32)
    counts = np.empty((1 << _DIGIT) + 1, np.int64)
    work = (key, item, clause_box, named, signature)
    n_lists = 0
    for anchor in range(anchors[0], anchors[1]):
        begin, end = anchor_start[anchor], anchor_start[anchor + 1]
        if begin == end:
            continue
        anchor_level = np.int64(level[anchor])
        n = spread_clauses(
            begin, end, order, cells, clauses, frequency, anchor, anchor_level, cell_limit[anchor], max_level, work
        )
        sort_by_key(key, item, n, 2 * anchor_level + _CLASS_BITS + 1, key2, item2, counts)
        directory[2 * anchor] = anchor_level
        first = 0
        while first < n:
            cell = key[first] >> _CLASS_BITS
            last = first + 1
            while last < n and key[last] >> _CLASS_BITS == cell:
                last += 1
            size = list_size(key, first, last)
            at = list_start_for(at, size)
            span = (at << LINES_BITS) | lines_beyond(at, size)
            if cell == 0:
                directory[2 * anchor] = (span << LEVEL_BITS) | anchor_level
                folds = np.int64(0)
                for i in range(first, last):
                    folds |= folds_of_box(cells[begin + item[i]], max_level)
                directory[2 * anchor + 1] = folds
            else:
                key_of_list[n_lists], span_of_list[n_lists] = list_key(anchor, cell - 1), span
                n_lists += 1
            at = write_list(run, box, at, key, item, first, last, clause_box, named, signature)
            first = last
    return at, n_lists


@kernel
def fill_anchors(clauses, frequency, slots, anchors, sizes):
    """The anchor of each clause; `sizes` counts the clauses of each anchor."""
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    for i in range(slots.size):
        anchors[i] = rarest_anchor(keyword_start, keyword, frequency, slots[i])
        sizes[anchors[i]] += 1


@kernel
def count_frequency(clauses, slots, frequency):
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    for i in range(slots.size):
        for at in range(keyword_start[slots[i]], keyword_start[slots[i] + 1]):
            frequency[keyword[at]] += np.int32(1)


@kernel
def alive_slots(is_alive, slots):
    """Write the slots of living clauses; returns how many."""
    n = 0
    for clause in range(is_alive.size):
        if is_alive[clause]:
            slots[n] = clause
            n += 1
    return n
