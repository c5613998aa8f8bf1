"""Walk the quadtree to the lists a message may match; verify the clauses in them."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.pivot_quadtree.layout import BEGINS_X, BEGINS_Y, NO_ROOM
from nearcast.papers.boolean.region_trie.kernels.match import box_meets, seek, seeking_is_cheaper, stamp_ranks


@inline_kernel
def has_common(words, start, stop, rank, first, last, stamp, here):
    """Whether a set of words and a stamped message have one in common; the shorter way round.

    `here` is the mark of the message's first word: what is stamped with less is of another message.
    """
    if seeking_is_cheaper(last - first, stop - start):
        for i in range(first, last):
            start = seek(words, start, stop, rank[i])
            if start == stop:
                return False
            if words[start] == rank[i]:
                return True
        return False
    for at in range(start, stop):
        if stamp[words[at]] >= here:
            return True
    return False


@inline_kernel
def find_lists(
    cell_x, cell_y, cell_size, child_start, cover_start, cover, other_start, other, x0, y0, x1, y1, rank, first, last, stamp,
    here, stack, found,
):  # fmt: skip
    """Write the nodes with lists that may hold a match of one stamped message to `found`; returns how many, and nodes visited.

    A node is entered if its cell meets the message and one of its other words is in it. Below a node with a cover word
    in the message every list may hold a match, so that only cells are tested; such nodes are pushed as -1 - node.
    Paper: PT-Quadtree-Filter, where the words of a leaf are cover words.
    """
    n_found, n_visited = 0, 0
    stack[0] = 0
    n_pending = 1
    while n_pending > 0:
        n_pending -= 1
        node = stack[n_pending]
        is_covered = node < 0
        if is_covered:
            node = -1 - node
        n_visited += 1
        is_leaf = child_start[node] == child_start[node + 1]
        if not is_covered:
            is_covered = has_common(cover, cover_start[node], cover_start[node + 1], rank, first, last, stamp, here)
            if not is_covered and (
                is_leaf or not has_common(other, other_start[node], other_start[node + 1], rank, first, last, stamp, here)
            ):
                continue
        if is_leaf:
            found[n_found] = node
            n_found += 1
            continue
        for child in range(child_start[node], child_start[node + 1]):
            x, y, size = cell_x[child], cell_y[child], cell_size[child]
            if x <= x1 and x0 < x + size and y <= y1 and y0 < y + size:
                stack[n_pending] = -1 - child if is_covered else child
                n_pending += 1
    return n_found, n_visited


@inline_kernel
def beginning_wanted(x0, y0, x, y):
    """Which bits of `begins` an item of the cell at x, y needs, for a message that begins at column x0 and row y0.

    A clause filed in several cells counts where the common part of clause and message begins. Both reach into the cell, so
    that part begins in it if either of them does, in each direction.
    """
    return (BEGINS_X if x0 < x else 0) + (BEGINS_Y if y0 < y else 0)


@inline_kernel
def has_words(word, start, stop, stamp, here):
    """Whether the stamped message has every word of the run."""
    for at in range(start, stop):
        if stamp[word[at]] < here:
            return False
    return True


@inline_kernel
def verify_items(
    item, rarest, begins, first, last, wanted, clause_at, box, word_start, word, is_alive, stamp, here, x0, y0, x1, y1,
    message, n_out, out_message, out_clause,
):  # fmt: skip
    """Append the matches among the items first … last - 1; returns the number of pairs then (or NO_ROOM) and of candidates.

    Only a living clause that counts in this list and whose rarest word the message has is a candidate.
    """
    n_candidates = 0
    for i in range(first, last):
        if stamp[rarest[i]] < here or (begins[i] & wanted) != wanted:
            continue
        position = item[i]
        clause = clause_at[position]
        if not is_alive[clause]:
            continue
        n_candidates += 1
        if box_meets(box, position, x0, y0, x1, y1) and has_words(
            word, word_start[position], word_start[position + 1], stamp, here
        ):
            if n_out == out_clause.size:
                return NO_ROOM, 0
            out_message[n_out] = message
            out_clause[n_out] = clause
            n_out += 1
    return n_out, n_candidates


@kernel
def match_messages(tree, filed, is_alive, ranked, cells, messages, mark, scratch, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    stamp, stack, found = scratch
    cell_x, cell_y, cell_size, child_start = tree.cell_x, tree.cell_y, tree.cell_size, tree.child_start
    cover_start, cover, other_start, other = tree.cover_start, tree.cover, tree.other_start, tree.other
    item_start, item, rarest, begins = tree.item_start, tree.item, tree.rarest, tree.begins
    clause_at, box, word_start, word = filed.clause, filed.box, filed.word_start, filed.word
    column0, row0, column1, row1 = cells.x0, cells.y0, cells.x1, cells.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    rank, start = ranked.rank, ranked.start
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first, mx0.size):
        begin = n_out
        here = mark + start[message]
        stamp_ranks(stamp, mark, rank, start[message], start[message + 1])
        n_found, n_visited = find_lists(
            cell_x, cell_y, cell_size, child_start, cover_start, cover, other_start, other, column0[message], row0[message],
            column1[message], row1[message], rank, start[message], start[message + 1], stamp, here, stack, found,
        )  # fmt: skip
        n_candidates = 0
        for at in range(n_found):
            node = found[at]
            wanted = beginning_wanted(column0[message], row0[message], cell_x[node], cell_y[node])
            n_out, n_more = verify_items(
                item, rarest, begins, item_start[node], item_start[node + 1], wanted, clause_at, box, word_start, word,
                is_alive, stamp, here, mx0[message], my0[message], mx1[message], my1[message], message, n_out, out_message,
                out_clause,
            )  # fmt: skip
            if n_out == NO_ROOM:
                return message, begin
            n_candidates += n_more
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
