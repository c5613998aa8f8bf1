"""Write the lists: count what each owner needs, spread its clauses over its cells, sort them by cell, lay the lists out."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.keys import fold_of, list_key, narrow, owner_of
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
from nearcast.kernels.keyword_sets import filter_bit

_DIGIT = 11
_FEW = 48
_CLASS_BITS = 2
# A clause and its other keywords, while its owner is at work.
_NAMED = 1 + N_OTHERS


@kernel
def folds_of_box(cells, max_level):
    """The bits of every folded cell a box meets."""
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
def count_entries(owner_start, order, keyword_start, cells, level, wide, max_level, owner_room):
    """Copies per kind over all owners; fills `owner_room` with an upper bound of the int32 each owner's lists take.

    Returns the copies of all, the most copies and clauses of one owner, and the most lists there can be in cells.
    """
    n_all, most_copies, most_clauses, n_lists_all = 0, 0, 0, 0
    for owner in range(level.size):
        begin, end = owner_start[owner], owner_start[owner + 1]
        n_single, n_multiple, n_wide = 0, 0, 0
        shift = max_level - level[owner]
        for i in range(begin, end):
            n_cells = 1
            if level[owner] > 0:
                n_cells = n_cells_at(cells[i], shift)
                if n_cells > wide[owner]:
                    n_cells = 1
                    n_wide += 1
            if keyword_start[order[i] + 1] - keyword_start[order[i]] > 1:
                n_multiple += n_cells
            else:
                n_single += n_cells
        n_copies = n_single + n_multiple
        n_lists = 0
        if level[owner] > 0:
            n_lists = min(n_copies, 1 << (2 * level[owner]))
            n_lists_all += n_lists
        owner_room[owner] = 0
        if n_copies > 0:
            # A list may begin up to a line later, so as not to lie across one more.
            owner_room[owner] = SINGLE_FIELDS * n_single + MULTIPLE_SIZE * n_multiple + (HEADER + LINE) * (n_lists + 1)
        n_all += n_copies
        most_copies = max(most_copies, n_copies)
        most_clauses = max(most_clauses, end - begin)
    return n_all, most_copies, most_clauses, n_lists_all


@inline_kernel
def others_of(keyword_start, keyword, frequency, owner, clause, named, at):
    """Write a clause and its keywords besides the owner's, rarest first, and give the signature of the first three.

    A signature of fewer keywords names bit 0 for the rest, which every message has.
    """
    named[at] = clause
    n_others = 0
    for position in range(keyword_start[clause], keyword_start[clause + 1]):
        word = keyword[position]
        if 1 + word == owner:
            continue
        # Insertion, where the most frequent ones fall out at the end.
        place = min(n_others, N_OTHERS)
        while place > 0 and frequency[named[at + place]] > frequency[word]:
            if place < N_OTHERS:
                named[at + place + 1] = named[at + place]
            place -= 1
        if place < N_OTHERS:
            named[at + place + 1] = word
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
    """Sort keys of `n_bits` with their items, in place; `key2`, `item2` and `counts` are scratch."""
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
    """Lay out one list from sorted entries; returns the place behind it."""
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
        for side in range(4):
            box[at + side * n_single + i] = clause_box[4 * local + side]
        run[at + 4 * n_single + i] = named[_NAMED * local]
    at += SINGLE_FIELDS * n_single
    records = at + n_multiple
    for i in range(n_multiple):
        local, record = item[begin + n_covering + n_single + i], records + RECORD_FIELDS * i
        run[at + i] = signature[local]
        run[record] = named[_NAMED * local]
        for side in range(4):
            box[record + RECORD_BOX + side] = clause_box[4 * local + side]
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
def list_place(at, size):
    """Where a list begins: here, or at the next line if it lies on fewer lines there."""
    n_lines = (at % LINE + size + LINE - 1) // LINE
    if n_lines > (size + LINE - 1) // LINE:
        return at + (-at) % LINE
    return at


@inline_kernel
def lines_beyond(at, size):
    return min((at % LINE + size - 1) // LINE, LINES_MASK)


@kernel
def spread_owner(begin, end, order, cells, clauses, frequency, owner, level, wide, max_level, work):
    """Prepare the clauses of an owner and list their entries by cell; returns the number of entries.

    The key of an entry is its cell (1 + cell of the grid, or 0 for the list without a cell) and its kind.
    """
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    key, item, clause_box, named, signature = work
    n_entries = 0
    shift = max_level - level
    for i in range(begin, end):
        clause, local = order[i], i - begin
        clause_box[4 * local], clause_box[4 * local + 1] = narrow(x0[clause]), narrow(y0[clause])
        clause_box[4 * local + 2], clause_box[4 * local + 3] = narrow(x1[clause]), narrow(y1[clause])
        is_multiple = keyword_start[clause + 1] - keyword_start[clause] > 1
        kind = MULTIPLE if is_multiple else SINGLE
        if is_multiple:
            signature[local] = others_of(keyword_start, keyword, frequency, owner, clause, named, _NAMED * local)
        else:
            named[_NAMED * local] = clause
        if level == 0 or n_cells_at(cells[i], shift) > wide:
            key[n_entries], item[n_entries] = kind, local
            n_entries += 1
            continue
        column0, column1 = first_column(cells[i]) >> shift, last_column(cells[i]) >> shift
        row0, row1 = first_row(cells[i]) >> shift, last_row(cells[i]) >> shift
        for column in range(column0, column1 + 1):
            is_inner = kind == SINGLE and column0 < column and column < column1
            for row in range(row0, row1 + 1):
                # Strictly between its outermost columns and rows a box holds every place of the cell, whatever the rounding.
                own = COVERING if is_inner and row0 < row and row < row1 else kind
                key[n_entries] = ((((column << level) | row) + 1) << _CLASS_BITS) | own
                item[n_entries] = local
                n_entries += 1
    return n_entries


@kernel
def fill_lists(clauses, owner_start, order, cells, frequency, level, wide, max_level, owners, at, grid, most, found):
    """Write every list of a range of owners, from `at` on.

    `most` is the greatest number of copies and of clauses of one owner; `found` takes the keys and places of lists in cells.
    Returns the place behind the last list, and the number of lists in cells.
    """
    door, run, box = grid
    found_key, found_place = found
    most_copies, most_clauses = most
    key, item = np.empty(most_copies, np.int32), np.empty(most_copies, np.int32)
    key2, item2 = np.empty(most_copies, np.int32), np.empty(most_copies, np.int32)
    clause_box, named = np.empty(4 * most_clauses, np.float32), np.empty(_NAMED * most_clauses, np.int32)
    signature = np.empty(most_clauses, np.int32)
    counts = np.empty((1 << _DIGIT) + 1, np.int64)
    work = (key, item, clause_box, named, signature)
    n_found = 0
    for owner in range(owners[0], owners[1]):
        begin, end = owner_start[owner], owner_start[owner + 1]
        if begin == end:
            continue
        own_level = np.int64(level[owner])
        n = spread_owner(begin, end, order, cells, clauses, frequency, owner, own_level, wide[owner], max_level, work)
        sort_by_key(key, item, n, 2 * own_level + _CLASS_BITS + 1, key2, item2, counts)
        door[2 * owner] = own_level
        first = 0
        while first < n:
            cell = key[first] >> _CLASS_BITS
            last = first + 1
            while last < n and key[last] >> _CLASS_BITS == cell:
                last += 1
            size = list_size(key, first, last)
            at = list_place(at, size)
            place = (at << LINES_BITS) | lines_beyond(at, size)
            if cell == 0:
                door[2 * owner] = (place << LEVEL_BITS) | own_level
                folds = np.int64(0)
                for i in range(first, last):
                    folds |= folds_of_box(cells[begin + item[i]], max_level)
                door[2 * owner + 1] = folds
            else:
                found_key[n_found], found_place[n_found] = list_key(owner, cell - 1), place
                n_found += 1
            at = write_list(run, box, at, key, item, first, last, clause_box, named, signature)
            first = last
    return at, n_found


@kernel
def fill_owners(clauses, frequency, slots, owners, sizes):
    """The owner of each clause; `sizes` counts the clauses of each owner."""
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    for i in range(slots.size):
        owners[i] = owner_of(keyword_start, keyword, frequency, slots[i])
        sizes[owners[i]] += 1


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
