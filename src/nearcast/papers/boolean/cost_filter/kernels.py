"""Send each message through the trie, or through the quadtree and then, where it pays, through the trie with its lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.pivot_quadtree.kernels import OUTPUT_FULL, begins_needed, find_lists, verify_items
from nearcast.papers.boolean.region_trie.kernels import BY_COST, box_meets, n_halvings, push_children, seek, stamp_ranks

# Positions in the unit costs: a step in the trie, a step in the quadtree, the test of a clause of a list.
TRIE_STEP, QUADTREE_STEP, TEST = 0, 1, 2

FRAME_FIELDS = 5  # node, level, where the message goes on, first window, last window
WINDOW_FIELDS = 3  # first item, last item, quadtree node of the list


class CostArrays(NamedTuple):
    """The figures of the cost model. Paper: κ_T, κ_Q; L_i; F_i; S_avg; D; Avg_RT; H_q."""

    unit_cost: np.ndarray  # float64[3]: microseconds, or 1 each; at TRIE_STEP, QUADTREE_STEP, LOOK
    exponent: np.ndarray  # float64[3]: of the steps in the trie, of the lists met, of the steps per list; 1 if not calibrated
    caution: np.ndarray  # float64[1]: the trie is chosen only if it is estimated to be cheaper by this factor; at least 1
    level_size: np.ndarray  # float64[n_levels]: trie nodes on each level, 1 for the root
    fanout: np.ndarray  # float64[n_levels + 1]: mean number of children on each level; the last ones are 0
    words_per_clause: np.ndarray  # float64[1]: mean, at least 1
    words_per_cell: np.ndarray  # float64[1]: mean size of the sets of a quadtree node
    lists_before: np.ndarray  # float64[(width + 1)**2]: lists in the grid cells below and left of each corner


class HybridScratch(NamedTuple):
    """Arrays of the walk; where they are too small, lists are verified directly."""

    stamp: np.ndarray  # int32[n_ranks + 1]
    stack: np.ndarray  # int32[]: of the walk of the trie
    search_stack: np.ndarray  # int32[]: of the search in the quadtree
    list_nodes: np.ndarray  # int32[n quadtree nodes]
    frame: np.ndarray  # int64[FRAME_FIELDS * capacity]
    window: np.ndarray  # int64[WINDOW_FIELDS * capacity]


@inline_kernel
def pruning_is_dearer(n_items, n_windows, n_children, n_words, fanout_below, share, words_per_clause, step, test_cost):
    """Whether continuing in the trie costs more than testing every clause in the windows.

    Paper: C_L > C_V with Eq 5 and 6. The steps below a node are estimated from its own children, not from a whole level,
    a look-up takes one step whatever the length of the message (stamps), and every window is searched for each child that
    may be entered, not once. Windows are assumed to be equally long.
    """
    if n_words < n_children:
        steps = min(n_children, n_words * (1 + 2 * n_halvings(n_children // max(n_words, 1))))
    else:
        steps = n_children
    n_searches = min(n_words, n_children) * n_windows
    searching = test_cost * n_searches * (1 + n_halvings(n_items // n_windows))
    pruning = step * steps * (1.0 + fanout_below * share) + searching + test_cost * n_items
    return pruning > test_cost * n_items * words_per_clause


@kernel
def prune_lists(trie, tree, entries, costs, is_alive, ranked, cells, messages, message, mark, scratch, n_lists, n_out, output):
    """Append the matches in the lists found, walking the trie with them; returns the number of pairs then, or OUTPUT_FULL.

    A window is the part of a list below a trie node: lists are in trie order, so two searches find it. A node without
    windows is not entered. A node where pruning does not pay, or whose children do not fit, is verified directly.
    Paper: HybridPrune, with the windows verified in the leaves instead of the whole leaf, and no further descent from them.
    """
    stamp, stack, frame, window, list_nodes = scratch.stamp, scratch.stack, scratch.frame, scratch.window, scratch.list_nodes
    word, child_start, trie_box = trie.word, trie.child_start, trie.box
    below_first, ending_stop, below_stop = trie.first, trie.ending_stop, trie.stop
    cell_x, cell_y = tree.cell_x, tree.cell_y
    item_start, item, rarest, begins = tree.item_start, tree.item, tree.rarest, tree.begins
    clause_at, box, word_start, clause_word = entries.clause, entries.box, entries.word_start, entries.word
    x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
    column, row = cells.x0[message], cells.y0[message]
    rank, start, last = ranked.rank, ranked.start[message], ranked.start[message + 1] - 1
    out_message, out_clause, counters = output.message, output.clause, output.counters
    fanout, words_per_clause = costs.fanout, costs.words_per_clause[0]
    step, test_cost, n_ranks = costs.unit_cost[TRIE_STEP], costs.unit_cost[TEST], entries.n_ranks[0]
    first_mark = mark + start
    n_visited, n_candidates = 0, 0
    for at in range(n_lists):
        window[WINDOW_FIELDS * at] = item_start[list_nodes[at]]
        window[WINDOW_FIELDS * at + 1] = item_start[list_nodes[at] + 1]
        window[WINDOW_FIELDS * at + 2] = list_nodes[at]
    frame[0], frame[1], frame[2], frame[3], frame[4] = 0, 0, start, 0, n_lists
    n_frames = 1
    while n_frames > 0:
        n_frames -= 1
        top = FRAME_FIELDS * n_frames
        node, level, at, window_first, window_stop = frame[top], frame[top + 1], frame[top + 2], frame[top + 3], frame[top + 4]
        n_visited += 1 + (ending_stop[node] > below_first[node])
        n_items = 0
        for i in range(window_first, window_stop):
            # The message has all words of the clauses that end here: only boxes are verified.
            first, stop, list_node = window[WINDOW_FIELDS * i], window[WINDOW_FIELDS * i + 1], window[WINDOW_FIELDS * i + 2]
            needed = begins_needed(column, row, cell_x[list_node], cell_y[list_node])
            while first < stop and item[first] < ending_stop[node]:
                position = item[first]
                clause = clause_at[position]
                if (begins[first] & needed) == needed and is_alive[clause]:
                    n_candidates += 1
                    if box_meets(box, position, x0, y0, x1, y1):
                        if n_out == out_clause.size:
                            return OUTPUT_FULL
                        out_message[n_out] = message
                        out_clause[n_out] = clause
                        n_out += 1
                first += 1
            window[WINDOW_FIELDS * i] = first
            n_items += stop - first
        n_words, n_children = last - at, child_start[node + 1] - child_start[node]
        if n_words == 0 or n_items == 0:
            continue
        share = min(1.0, n_words / n_ranks)
        is_direct = pruning_is_dearer(
            n_items,
            window_stop - window_first,
            n_children,
            n_words,
            fanout[level + 1],
            share,
            words_per_clause,
            step,
            test_cost,
        )
        if not is_direct:
            n_pushed = push_children(
                word, child_start, True, trie_box, node, rank, at, last, stamp, mark, BY_COST, x0, y0, x1, y1, stack, 0
            )
            n_windows, n_before = window_stop, n_frames
            for pushed in range(n_pushed):
                child = stack[2 * pushed]
                child_first = n_windows
                top = FRAME_FIELDS * n_frames
                if top + FRAME_FIELDS > frame.size or WINDOW_FIELDS * (n_windows + window_stop - window_first) > window.size:
                    is_direct = True
                    break
                for i in range(window_first, window_stop):
                    stop = window[WINDOW_FIELDS * i + 1]
                    first = seek(item, window[WINDOW_FIELDS * i], stop, below_first[child])
                    stop = seek(item, first, stop, below_stop[child])
                    if first < stop:
                        window[WINDOW_FIELDS * n_windows] = first
                        window[WINDOW_FIELDS * n_windows + 1] = stop
                        window[WINDOW_FIELDS * n_windows + 2] = window[WINDOW_FIELDS * i + 2]
                        n_windows += 1
                if n_windows > child_first:
                    frame[top], frame[top + 1], frame[top + 2] = child, level + 1, stack[2 * pushed + 1]
                    frame[top + 3], frame[top + 4] = child_first, n_windows
                    n_frames += 1
            if is_direct:
                n_frames = n_before
        if is_direct:
            for i in range(window_first, window_stop):
                list_node = window[WINDOW_FIELDS * i + 2]
                needed = begins_needed(column, row, cell_x[list_node], cell_y[list_node])
                n_out, n_more = verify_items(
                    item, rarest, begins, window[WINDOW_FIELDS * i], window[WINDOW_FIELDS * i + 1], needed, clause_at, box,
                    word_start, clause_word, is_alive, stamp, first_mark, x0, y0, x1, y1, message, n_out, out_message,
                    out_clause,
                )  # fmt: skip
                if n_out == OUTPUT_FULL:
                    return OUTPUT_FULL
                n_candidates += n_more
    counters[NODES] += n_visited
    counters[CANDIDATES] += n_candidates
    return n_out


@kernel
def match_messages(trie, tree, entries, costs, is_alive, ranked, cells, messages, mark, scratch, first, n_out, output):
    """Append every matching pair, by the quadtree; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    stamp, stack, list_nodes, capacity = scratch.stamp, scratch.search_stack, scratch.list_nodes, scratch.window.size
    cell_x, cell_y, cell_size, child_start = tree.cell_x, tree.cell_y, tree.cell_size, tree.child_start
    cover_start, cover, other_start, other = tree.cover_start, tree.cover, tree.other_start, tree.other
    item_start, item, rarest, begins = tree.item_start, tree.item, tree.rarest, tree.begins
    clause_at, box, word_start, word = entries.clause, entries.box, entries.word_start, entries.word
    column0, row0, column1, row1 = cells.x0, cells.y0, cells.x1, cells.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    rank, start = ranked.rank, ranked.start
    out_message, out_clause, counters = output.message, output.clause, output.counters
    n_children = trie.child_start[1] - trie.child_start[0]
    n_ranks, fanout_below, words_per_clause = max(entries.n_ranks[0], 1), costs.fanout[1], costs.words_per_clause[0]
    step, test_cost = costs.unit_cost[TRIE_STEP], costs.unit_cost[TEST]
    for message in range(first, mx0.size):
        begin = n_out
        first_mark = mark + start[message]
        stamp_ranks(stamp, mark, rank, start[message], start[message + 1])
        n_lists, n_visited = find_lists(
            cell_x, cell_y, cell_size, child_start, cover_start, cover, other_start, other, column0[message], row0[message],
            column1[message], row1[message], rank, start[message], start[message + 1], stamp, first_mark, stack, list_nodes,
        )  # fmt: skip
        n_items, n_words = 0, start[message + 1] - 1 - start[message]
        for at in range(n_lists):
            n_items += item_start[list_nodes[at] + 1] - item_start[list_nodes[at]]
        # The choice at the root of the trie; the windows of a node and of one child must fit.
        is_pruned = n_lists > 0 and 2 * n_lists * WINDOW_FIELDS <= capacity
        if is_pruned and not pruning_is_dearer(
            n_items, n_lists, n_children, n_words, fanout_below, min(1.0, n_words / n_ranks), words_per_clause, step, test_cost
        ):
            n_out = prune_lists(
                trie, tree, entries, costs, is_alive, ranked, cells, messages, message, mark, scratch, n_lists, n_out, output
            )
            n_lists = 0
            if n_out == OUTPUT_FULL:
                return message, begin
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


@kernel
def estimate_lists_met(before, width, per_cell, x0, y0, x1, y1, n_met):
    """Estimate how many lists each message meets, from `before`, which is summed over `width` by `width` cells."""
    for message in range(n_met.size):
        total = 0.0
        for corner in range(4):
            x = (x1[message] + 1) / per_cell if corner % 2 == 1 else x0[message] / per_cell
            y = (y1[message] + 1) / per_cell if corner >= 2 else y0[message] / per_cell
            # Between the corners of the grid the sums are interpolated.
            i, j = min(int(x), width - 1), min(int(y), width - 1)
            u, v = x - i, y - j
            at = i * (width + 1) + j
            low = before[at] * (1.0 - u) + before[at + width + 1] * u
            high = before[at + 1] * (1.0 - u) + before[at + width + 2] * u
            sum_before = low * (1.0 - v) + high * v
            total += sum_before if corner == 0 or corner == 3 else -sum_before
        n_met[message] = max(total, 1.0)


@kernel
def count_items(tree, ranked, cells, mark, scratch):
    """How many items are in the lists that the messages of a batch may match."""
    stamp, stack, list_nodes = scratch.stamp, scratch.search_stack, scratch.list_nodes
    cell_x, cell_y, cell_size, child_start = tree.cell_x, tree.cell_y, tree.cell_size, tree.child_start
    cover_start, cover, other_start, other = tree.cover_start, tree.cover, tree.other_start, tree.other
    column0, row0, column1, row1 = cells.x0, cells.y0, cells.x1, cells.y1
    rank, start, item_start = ranked.rank, ranked.start, tree.item_start
    n_items = 0
    for message in range(start.size - 1):
        stamp_ranks(stamp, mark, rank, start[message], start[message + 1])
        n_lists, _ = find_lists(
            cell_x, cell_y, cell_size, child_start, cover_start, cover, other_start, other, column0[message], row0[message],
            column1[message], row1[message], rank, start[message], start[message + 1], stamp, mark + start[message], stack,
            list_nodes,
        )  # fmt: skip
        for at in range(n_lists):
            n_items += item_start[list_nodes[at] + 1] - item_start[list_nodes[at]]
    return n_items
