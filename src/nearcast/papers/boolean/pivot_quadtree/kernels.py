"""The arrays of the quadtree, how it is cut, how pivotal keywords are chosen, and how it is matched."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.region_trie.kernels import box_meets, seek, seeking_is_cheaper, stamp_ranks

NO_NODE = -1
OUTPUT_FULL = -1  # what verifying returns if the matches of a message did not fit
BEGINS_X, BEGINS_Y = 1, 2  # bits of `begins`


class QuadtreeArrays(NamedTuple):
    """Nodes level by level from the root; the children of a node are contiguous, a node without children has a list.

    Space is cut into columns and rows (`build.py`); a node's cell is the square of `cell_size` columns and rows from
    cell_x, cell_y on. A child is a quadrant that is not empty, or a run of clauses that stay with the node: then it
    has the cell of the node. Items are positions in trie order (`region_trie/layout.py:TrieEntries`), ascending in a list.
    Words are ranks. Paper: cover = CSet, other = NSet, item = the inverted list of a leaf.
    """

    frame: np.ndarray  # float64[6]: low x, high x, columns per half unit, low y, high y, rows per half unit
    parent: np.ndarray  # int32[n_nodes]; NO_NODE for the root
    cell_x: np.ndarray  # int32[n_nodes]
    cell_y: np.ndarray  # int32[n_nodes]
    cell_size: np.ndarray  # int32[n_nodes]
    child_start: np.ndarray  # int32[n_nodes + 1]: children of n are child_start[n] … child_start[n + 1] - 1
    cover_start: np.ndarray  # int64[n_nodes + 1]
    cover: np.ndarray  # int32[]: words that are pivotal in every list below the node, but not below its parent; ascending
    other_start: np.ndarray  # int64[n_nodes + 1]
    other: np.ndarray  # int32[]: words that are pivotal in some list below the node, not in all; ascending
    item_start: np.ndarray  # int64[n_nodes + 1]
    item: np.ndarray  # int32[n_copies]
    rarest: np.ndarray  # int32[n_copies]: the rarest word of the item, tested first
    begins: np.ndarray  # int8[n_copies]: whether the item's first column (BEGINS_X) and row (BEGINS_Y) are in the cell
    level_start: np.ndarray  # int64[n_levels + 1]: first node of each level
    widest: np.ndarray  # int64[1]: most children of a node


class MessageCells(NamedTuple):
    """The columns and rows that each message of a batch meets, ends included."""

    x0: np.ndarray  # int32[n]
    y0: np.ndarray  # int32[n]
    x1: np.ndarray  # int32[n]
    y1: np.ndarray  # int32[n]


IS_LEAF, IS_CUT, IS_SPLIT = 0, 1, 2  # what becomes of a node: a list, runs of a list, quadrants and runs
N_QUADRANTS = 4


@inline_kernel
def stays(low_x, low_y, high_x, high_y, x, y, size, is_once):
    """Whether a clause stays with a node instead of going on into its quadrants.

    Filed once, it stays where no quadrant holds all of it. Filed in every leaf it meets, it stays where it covers the whole
    cell: every message that comes to a leaf below would find it there as well.
    """
    if is_once:
        middle_x, middle_y = x + size // 2, y + size // 2
        return (low_x < middle_x <= high_x) or (low_y < middle_y <= high_y)
    return low_x <= x and high_x >= x + size - 1 and low_y <= y and high_y >= y + size - 1


@kernel
def measure_splits(node_of, position_of, low_x, low_y, high_x, high_y, x, y, size, is_once, n_going, n_copies):
    """Count, for each node, the clauses that would go on into quadrants, and the copies they would become."""
    for i in range(node_of.size):
        node, at = node_of[i], position_of[i]
        if not stays(low_x[at], low_y[at], high_x[at], high_y[at], x[node], y[node], size[node], is_once):
            middle_x, middle_y = x[node] + size[node] // 2, y[node] + size[node] // 2
            crosses_x = low_x[at] < middle_x <= high_x[at]
            crosses_y = low_y[at] < middle_y <= high_y[at]
            n_going[node] += 1
            n_copies[node] += (2 if crosses_x else 1) * (2 if crosses_y else 1)


@kernel
def route_clauses(
    node_of, position_of, low_x, low_y, high_x, high_y, x, y, size, is_once, fate, slot_start, run_length, n_stayed, cursor, out
):
    """Distribute clauses to the slots of their nodes: four quadrants, then runs of `run_length`.

    With an empty `out` it only counts, in `cursor`; otherwise `cursor` has the next position of each slot.
    """
    for i in range(node_of.size):
        node, at = node_of[i], position_of[i]
        if fate[node] == IS_LEAF:
            continue
        slot = slot_start[node]
        if fate[node] == IS_CUT or stays(low_x[at], low_y[at], high_x[at], high_y[at], x[node], y[node], size[node], is_once):
            slot += N_QUADRANTS + n_stayed[node] // run_length
            n_stayed[node] += 1
            if out.size:
                out[cursor[slot]] = at
            cursor[slot] += 1
            continue
        middle_x, middle_y = x[node] + size[node] // 2, y[node] + size[node] // 2
        for quadrant in range(N_QUADRANTS):
            is_right, is_upper = quadrant % 2 == 1, quadrant >= 2
            if (high_x[at] >= middle_x if is_right else low_x[at] < middle_x) and (
                high_y[at] >= middle_y if is_upper else low_y[at] < middle_y
            ):
                if out.size:
                    out[cursor[slot + quadrant]] = at
                cursor[slot + quadrant] += 1


@kernel
def choose_pivots(item_start, item, word_start, word, n_ranks, frequency, n_uncovered, pivot_start, pivot):
    """Choose a few words for each list so that every clause has one: always the word that most clauses without one have.

    On a tie the word of more clauses in all, then the lower rank. `n_uncovered` is all zero, by rank, before and after; a
    clause without words has the word that every message has. Returns the number of pivots.
    """
    n_out = 0
    pivot_start[0] = 0
    for list_id in range(item_start.size - 1):
        begin = n_out
        first, stop = item_start[list_id], item_start[list_id + 1]
        has_wordless = False
        n_left = 0
        for i in range(first, stop):
            has_words = word_start[item[i]] < word_start[item[i] + 1]
            n_left += has_words
            has_wordless = has_wordless or not has_words
            for at in range(word_start[item[i]], word_start[item[i] + 1]):
                n_uncovered[word[at]] += 1
        while n_left > 0:
            best, n_best = -1, 0
            for i in range(first, stop):
                for at in range(word_start[item[i]], word_start[item[i] + 1]):
                    n = n_uncovered[word[at]]
                    if n > n_best or (n == n_best and n > 0 and is_preferred(word[at], best, frequency)):
                        best, n_best = word[at], n
            pivot[n_out] = best
            n_out += 1
            n_left -= n_best
            for i in range(first, stop):
                if has_word(word, word_start[item[i]], word_start[item[i] + 1], best) and not has_earlier(
                    word, word_start[item[i]], word_start[item[i] + 1], pivot, begin, n_out - 1
                ):
                    for at in range(word_start[item[i]], word_start[item[i] + 1]):
                        n_uncovered[word[at]] -= 1
        if has_wordless:
            pivot[n_out] = n_ranks
            n_out += 1
        pivot_start[list_id + 1] = n_out
    return n_out


@inline_kernel
def is_preferred(word, other, frequency):
    return frequency[word] > frequency[other] or (frequency[word] == frequency[other] and word < other)


@inline_kernel
def has_word(word, start, stop, needed):
    for at in range(start, stop):
        if word[at] == needed:
            return True
    return False


@inline_kernel
def has_earlier(word, start, stop, pivot, first, last):
    """Whether a clause has one of the pivots first … last - 1."""
    for i in range(first, last):
        if has_word(word, start, stop, pivot[i]):
            return True
    return False


@kernel
def describe_items(item_start, item, low_x, low_y, cell_x, cell_y, rarest_of, rarest, begins):
    """Fill what is tested first for each item: its rarest word, and whether it begins in the cell."""
    for list_id in range(item_start.size - 1):
        for i in range(item_start[list_id], item_start[list_id + 1]):
            at = item[i]
            rarest[i] = rarest_of[at]
            begins[i] = (BEGINS_X if low_x[at] >= cell_x[list_id] else 0) + (BEGINS_Y if low_y[at] >= cell_y[list_id] else 0)


@inline_kernel
def has_common(words, start, stop, rank, first, last, stamp, first_mark):
    """Whether a set of words and a stamped message have one in common, by the cheaper method.

    `first_mark` is the mark of the message's first word: smaller stamps are those of other messages.
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
        if stamp[words[at]] >= first_mark:
            return True
    return False


@inline_kernel
def find_lists(
    cell_x, cell_y, cell_size, child_start, cover_start, cover, other_start, other, x0, y0, x1, y1, rank, first, last, stamp,
    first_mark, stack, list_nodes,
):  # fmt: skip
    """Write the nodes whose lists may contain a match of the stamped message to `list_nodes`; returns their number and the
    number of visited nodes.

    A node is entered if its cell meets the message and one of its other words is in it. Below a node with a cover word
    in the message every list may contain a match, so only cells are tested; such nodes are pushed as -1 - node.
    Paper: PT-Quadtree-Filter, where the words of a leaf are cover words.
    """
    n_lists, n_visited = 0, 0
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
            is_covered = has_common(cover, cover_start[node], cover_start[node + 1], rank, first, last, stamp, first_mark)
            if not is_covered and (
                is_leaf or not has_common(other, other_start[node], other_start[node + 1], rank, first, last, stamp, first_mark)
            ):
                continue
        if is_leaf:
            list_nodes[n_lists] = node
            n_lists += 1
            continue
        for child in range(child_start[node], child_start[node + 1]):
            x, y, size = cell_x[child], cell_y[child], cell_size[child]
            if x <= x1 and x0 < x + size and y <= y1 and y0 < y + size:
                stack[n_pending] = -1 - child if is_covered else child
                n_pending += 1
    return n_lists, n_visited


@inline_kernel
def begins_needed(x0, y0, x, y):
    """Which bits of `begins` an item of the cell at x, y needs, for a message that begins at column x0 and row y0.

    A clause filed in several cells counts where the common part of clause and message begins. Both reach into the cell, so
    that part begins in it if either of them does, in each direction.
    """
    return (BEGINS_X if x0 < x else 0) + (BEGINS_Y if y0 < y else 0)


@inline_kernel
def has_words(word, start, stop, stamp, first_mark):
    """Whether the stamped message has every word of a run."""
    for at in range(start, stop):
        if stamp[word[at]] < first_mark:
            return False
    return True


@inline_kernel
def verify_items(
    item, rarest, begins, first, last, needed, clause_at, box, word_start, word, is_alive, stamp, first_mark, x0, y0, x1, y1,
    message, n_out, out_message, out_clause,
):  # fmt: skip
    """Append the matches among the items first … last - 1; returns the number of pairs then (or OUTPUT_FULL) and of candidates.

    A candidate is a living clause that counts in this list and whose rarest word the message has.
    """
    n_candidates = 0
    for i in range(first, last):
        if stamp[rarest[i]] < first_mark or (begins[i] & needed) != needed:
            continue
        position = item[i]
        clause = clause_at[position]
        if not is_alive[clause]:
            continue
        n_candidates += 1
        if box_meets(box, position, x0, y0, x1, y1) and has_words(
            word, word_start[position], word_start[position + 1], stamp, first_mark
        ):
            if n_out == out_clause.size:
                return OUTPUT_FULL, 0
            out_message[n_out] = message
            out_clause[n_out] = clause
            n_out += 1
    return n_out, n_candidates


@kernel
def match_messages(tree, entries, is_alive, ranked, cells, messages, mark, scratch, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    stamp, stack, list_nodes = scratch
    cell_x, cell_y, cell_size, child_start = tree.cell_x, tree.cell_y, tree.cell_size, tree.child_start
    cover_start, cover, other_start, other = tree.cover_start, tree.cover, tree.other_start, tree.other
    item_start, item, rarest, begins = tree.item_start, tree.item, tree.rarest, tree.begins
    clause_at, box, word_start, word = entries.clause, entries.box, entries.word_start, entries.word
    column0, row0, column1, row1 = cells.x0, cells.y0, cells.x1, cells.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    rank, start = ranked.rank, ranked.start
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first, mx0.size):
        begin = n_out
        first_mark = mark + start[message]
        stamp_ranks(stamp, mark, rank, start[message], start[message + 1])
        n_lists, n_visited = find_lists(
            cell_x, cell_y, cell_size, child_start, cover_start, cover, other_start, other, column0[message], row0[message],
            column1[message], row1[message], rank, start[message], start[message + 1], stamp, first_mark, stack, list_nodes,
        )  # fmt: skip
        n_candidates = 0
        for at in range(n_lists):
            node = list_nodes[at]
            needed = begins_needed(column0[message], row0[message], cell_x[node], cell_y[node])
            n_out, n_more = verify_items(
                item, rarest, begins, item_start[node], item_start[node + 1], needed, clause_at, box, word_start, word,
                is_alive, stamp, first_mark, mx0[message], my0[message], mx1[message], my1[message], message, n_out,
                out_message, out_clause,
            )  # fmt: skip
            if n_out == OUTPUT_FULL:
                return message, begin
            n_candidates += n_more
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
