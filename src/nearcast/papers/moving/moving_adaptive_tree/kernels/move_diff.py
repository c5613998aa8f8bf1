"""What moves of clauses change: one scan of each list on the old and the new path, before clauses are filed elsewhere.

A message that matches a clause is stored at exactly one node of the clause's path. So a node on both paths shows what leaves
and what enters, a node on the old path only what leaves, a node on the new path only what enters; each change is found once.
Paper: Algorithm 6, whose single pass over the nodes of both paths reports a message twice when a box comes to cover a region.
"""

from __future__ import annotations

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.simd import prefetch
from nearcast.moving.kernels.live_messages import has_keywords
from nearcast.papers.boolean.adaptive_tree.kernels.maintain import widen_leaf, wider_capacity
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import unproven_bits
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import is_check_due
from nearcast.papers.boolean.adaptive_tree.layout import (
    EXTRA,
    FIRST,
    KIND,
    LEAF,
    N_CHANGES,
    N_ENTRIES,
    N_FILED,
    NODE_FIELDS,
    SIZE,
)
from nearcast.papers.moving.moving_adaptive_tree.kernels.find_messages import follow, prefilter, rank_clause
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import bits_of, rounded
from nearcast.papers.moving.moving_adaptive_tree.layout import BEGIN, COUNT, LIST_FIELDS

N_PAIRS, N_PAIRS_AND_CURRENT = 2, 3  # of `counters`: pairs of the finished moves; the same with those of the current move
DIFF_COUNTERS = 4

_LEAVES, _ENTERS, _BOTH = 1, 2, 3
# Memory is prefetched this many moves ahead: the record of a clause; its keywords and the record of its leaf; the ranks of its
# keywords and the contents of the leaf.
_RECORD_AHEAD, _KEYWORDS_AHEAD, _LEAF_AHEAD = 24, 16, 8
# The processor prefetches the rest of a list by itself.
_MESSAGES_AHEAD, _PER_LINE = 64, 8


# --- entries of a clause that moves ------------------------------------------------------------------------------------


@kernel
def write_leaf_guesses(tree, n_nodes, leaf):
    """Write one leaf of each clause."""
    node, entry_clause = tree.node, tree.clause
    for number in range(n_nodes):
        record = NODE_FIELDS * number
        if node[record + KIND] == LEAF:
            for entry in range(node[record + FIRST], node[record + FIRST] + node[record + SIZE]):
                leaf[entry_clause[entry]] = number


@inline_kernel
def find_entry(node, entry_clause, record, clause):
    entry = node[record + FIRST]
    while entry_clause[entry] != clause:
        entry += 1
    return entry


@inline_kernel
def rewrite_entries(node, entries, queue, n_nodes, clause, box):
    """Write the new box of a clause to its leaves."""
    entry_clause, _, entry_box = entries
    for number in range(n_nodes):
        record = NODE_FIELDS * queue[number]
        if node[record + KIND] == LEAF:
            entry = find_entry(node, entry_clause, record, clause)
            for side in range(4):
                entry_box[4 * entry + side] = box[side]


@inline_kernel
def keeps_shape(tree, new_queue, n_new, seen, mark, options):
    """Whether a clause can be filed on its new path with the given capacity, and no node must be rebuilt or checked.

    `seen` is `-mark` at the nodes of both paths, `mark` at those of the old path only.
    """
    node, block, n_below, n_filed = tree.node, tree.block, tree.n_below, tree.head[N_FILED]
    n_entries, leaf_size = tree.head[N_ENTRIES], options.leaf_size
    for number in range(n_new):
        node_number = new_queue[number]
        record = NODE_FIELDS * node_number
        if node[record + KIND] != LEAF:
            is_empty = 2 * n_below[node_number] < leaf_size
            if is_empty or is_check_due(block, node[record + FIRST], n_below[node_number] + 1, n_filed, options):
                return False
        elif seen[node_number] != -mark:
            size, capacity = node[record + SIZE], node[record + EXTRA]
            if size == capacity:
                capacity = wider_capacity(size, leaf_size)
                n_entries += capacity
            if size + 1 >= leaf_size and size + 1 == capacity:
                return False
    return n_entries <= tree.clause.size


@inline_kernel
def change_leaves(tree, entries, paths, seen, mark, clause, box, required, leaf_size):
    """Remove a clause from the leaves of its old path and file it in those of the new one; `seen` as for `keeps_shape`."""
    node, block, n_below = tree.node, tree.block, tree.n_below
    entry_clause, signature, entry_box = entries
    rank, n_ranks, proven = required
    queue, n_old, new_queue, n_new = paths
    for number in range(n_old):
        node_number = queue[number]
        record = NODE_FIELDS * node_number
        is_shared = seen[node_number] == -mark
        n_below[node_number] -= 0 if is_shared else 1
        if node[record + KIND] != LEAF:
            block[node[record + FIRST] + N_CHANGES] += 2 if is_shared else 1
            continue
        entry = find_entry(node, entry_clause, record, clause)
        if is_shared:
            for side in range(4):
                entry_box[4 * entry + side] = box[side]
            continue
        last = node[record + FIRST] + node[record + SIZE] - 1
        entry_clause[entry], signature[entry] = entry_clause[last], signature[last]
        for side in range(4):
            entry_box[4 * entry + side] = entry_box[4 * last + side]
        node[record + SIZE] -= 1
    for number in range(n_new):
        node_number = new_queue[number]
        record = NODE_FIELDS * node_number
        if seen[node_number] == -mark:
            continue
        n_below[node_number] += 1
        if node[record + KIND] != LEAF:
            block[node[record + FIRST] + N_CHANGES] += 1
            continue
        if node[record + SIZE] == node[record + EXTRA]:
            widen_leaf(tree, record, wider_capacity(node[record + SIZE], leaf_size))
        entry = node[record + FIRST] + node[record + SIZE]
        entry_clause[entry], signature[entry] = clause, unproven_bits(rank, 0, n_ranks, proven[number])
        for side in range(4):
            entry_box[4 * entry + side] = box[side]
        node[record + SIZE] += 1


# --- what a move changes -----------------------------------------------------------------------------------------------


@inline_kernel
def change_of(message, old, new, required, live):
    """-1 if a live message leaves, 1 if it enters, 0 if nothing changes for it."""
    mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member = live
    keyword, start, stop = required
    x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
    was_in = meets(old[0], old[1], old[2], old[3], x0, y0, x1, y1)
    is_in = meets(new[0], new[1], new[2], new[3], x0, y0, x1, y1)
    if was_in == is_in or is_alive[message] == 0:
        return 0
    if not has_keywords(keyword, start, stop, member, keyword_first[message], n_keywords[message]):
        return 0
    return 1 if is_in else -1


@inline_kernel
def append_changes(
    entry_arrays, first, last, near, bits, allowed, clause, old, new, required, live, out_clause, out_message, n_out
):
    """Append the changes of the messages of a list; a message that enters is written as its complement. The output is large
    enough."""
    n_candidates_left = prefilter(entry_arrays, first, last, near, bits, out_message[n_out:])
    for at in range(n_out, n_out + n_candidates_left):
        message = out_message[at]
        change = change_of(message, old, new, required, live)
        if (change < 0 and allowed & _LEAVES) or (change > 0 and allowed & _ENTERS):
            out_clause[n_out] = clause
            out_message[n_out] = message if change < 0 else ~message
            n_out += 1
    return n_out


@inline_kernel
def prefetch_ahead(slots, i, sides, keyword_start, keyword, rank_of, leaf, node, entry_clause, node_list, point):
    """Prefetch the memory of the clauses that move next."""
    if i + _RECORD_AHEAD < slots.size:
        ahead = slots[i + _RECORD_AHEAD]
        prefetch(leaf, ahead)
        prefetch(keyword_start, ahead)
        for side in range(4):
            prefetch(sides[side], ahead)
    if i + _KEYWORDS_AHEAD < slots.size:
        ahead = slots[i + _KEYWORDS_AHEAD]
        prefetch(keyword, keyword_start[ahead])
        prefetch(node, NODE_FIELDS * leaf[ahead])
        prefetch(node_list, LIST_FIELDS * leaf[ahead])
    if i + _LEAF_AHEAD < slots.size:
        ahead = slots[i + _LEAF_AHEAD]
        for at in range(keyword_start[ahead], keyword_start[ahead + 1]):
            prefetch(rank_of, keyword[at])
        if NODE_FIELDS * leaf[ahead] < node.size:
            entry = node[NODE_FIELDS * leaf[ahead] + FIRST]
            prefetch(entry_clause, entry)
            prefetch(entry_clause, entry + 2 * _PER_LINE)
            entry = node_list[LIST_FIELDS * leaf[ahead] + BEGIN]
            last = entry + min(_MESSAGES_AHEAD, node_list[LIST_FIELDS * leaf[ahead] + COUNT])
            for line in range(entry, last, _PER_LINE):
                prefetch(point, 2 * line)


@kernel
def diff_moves(tree, lists, clauses, messages, slots, to, scratch, ranges, output, first, options):
    """Move clauses from position `first` on while the tree keeps its shape. Returns where it stops, and the length of the old
    path.

    There, the changes of that move are written but not counted, and `queue` has the old path. A negative length: the output is
    full.
    """
    tree, lists, clauses, messages, slots = borrow(tree), borrow(lists), borrow(clauses), borrow(messages), borrow(slots)
    to, scratch, ranges, output = borrow(to), borrow(scratch), borrow(ranges), borrow(output)
    node, rank_of, entries = tree.node, tree.rank, (tree.clause, tree.signature, tree.box)
    structure = (node, tree.block, tree.bound, tree.region)
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    sides = (cx0, cy0, cx1, cy1)
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, messages.is_alive, messages.keyword_first, messages.n_keywords, member)
    entry_arrays, node_list = (lists.slot, lists.signature, lists.point), lists.node_list
    tx0, ty0, tx1, ty1 = to
    rank, queue, offset, proven, region = (
        scratch.rank,
        scratch.queue,
        scratch.offset,
        scratch.proven,
        scratch.region,
    )
    new_queue, seen, is_refining, leaf = scratch.new_queue, scratch.seen, options.is_refining, lists.leaf_guess
    out_clause, out_message, counters = output.clause, output.message, output.counters
    n_out, n_visited, n_candidates = counters[N_PAIRS], 0, 0
    for i in range(first, slots.size):
        prefetch_ahead(slots, i, sides, keyword_start, keyword, rank_of, leaf, node, entries[0], node_list, entry_arrays[2])
        clause = slots[i]
        required = (keyword, keyword_start[clause], keyword_start[clause + 1])
        n_ranks = rank_clause(rank_of, keyword, required[1], required[2], rank)
        bits = bits_of(rank, n_ranks)
        old = (cx0[clause], cy0[clause], cx1[clause], cy1[clause])
        new = (tx0[i], ty0[i], tx1[i], ty1[i])
        n_old, _, is_same = follow(structure, old, new, rank, n_ranks, is_refining, queue, offset, proven, region)
        n_new, is_missing = n_old, False
        if not is_same:
            n_new, is_missing, _ = follow(structure, new, new, rank, n_ranks, is_refining, new_queue, offset, proven, region)
            for number in range(n_old):
                seen[queue[number]] = i + 1
        low = (min(old[0], new[0]), min(old[1], new[1]))
        high = (max(old[2], new[2]), max(old[3], new[3]))
        near = (rounded(low[0]), rounded(low[1]), rounded(high[0]), rounded(high[1]))
        is_full = False
        # First the nodes of the new path, including those of both paths; then the rest of the old path.
        for step in range(1 if is_same else 2):
            for number in range(n_new if step == 0 else n_old):
                node_number = queue[number] if is_same or step == 1 else new_queue[number]
                allowed = _BOTH
                if not is_same and step == 0:
                    if seen[node_number] == i + 1:
                        seen[node_number] = -(i + 1)
                    else:
                        allowed = _ENTERS
                elif step == 1:
                    if seen[node_number] != i + 1:
                        continue
                    allowed = _LEAVES
                begin = node_list[LIST_FIELDS * node_number + BEGIN]
                end = begin + node_list[LIST_FIELDS * node_number + COUNT]
                n_visited += 1
                n_candidates += end - begin
                is_full = is_full or n_out + end - begin > out_message.size
                if not is_full:
                    n_out = append_changes(
                        entry_arrays,
                        begin,
                        end,
                        near,
                        bits,
                        allowed,
                        clause,
                        old,
                        new,
                        required,
                        live,
                        out_clause,
                        out_message,
                        n_out,
                    )
        is_full = is_full or n_out + ranges.size > out_message.size
        if is_full:
            counters[NODES] += n_visited
            counters[CANDIDATES] += n_candidates
            return i, -1
        n_candidates += ranges.size
        for entry in range(ranges.size):
            change = change_of(ranges[entry], old, new, required, live)
            if change != 0:
                out_clause[n_out] = clause
                out_message[n_out] = ranges[entry] if change < 0 else ~ranges[entry]
                n_out += 1
        leaf[clause] = queue[n_old - 1] if is_same else new_queue[n_new - 1]
        if is_same:
            rewrite_entries(node, entries, queue, n_old, clause, new)
        elif is_missing or not keeps_shape(tree, new_queue, n_new, seen, i + 1, options):
            counters[NODES] += n_visited
            counters[CANDIDATES] += n_candidates
            counters[N_PAIRS_AND_CURRENT] = n_out
            return i, n_old
        else:
            keywords_of = (rank, n_ranks, proven)
            paths = (queue, n_old, new_queue, n_new)
            change_leaves(tree, entries, paths, seen, i + 1, clause, new, keywords_of, options.leaf_size)
        cx0[clause], cy0[clause], cx1[clause], cy1[clause] = new
        counters[N_PAIRS] = n_out
    counters[NODES] += n_visited
    counters[CANDIDATES] += n_candidates
    return slots.size, 0
