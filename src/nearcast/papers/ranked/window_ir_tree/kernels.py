"""Trees of boxes with words: their arrays, and the search from the most promising node down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.ranked.kernels.bounds import Frame, coordinates, nearest_possible
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.scoring import NOT_HERE, score_at
from nearcast.ranked.kernels.search_queues import NOTHING, clear_queue, offer, pop_bound, push_bound, put_in_order
from nearcast.ranked.kernels.window_search import (
    END,
    FIRST,
    N_ENTRIES,
    N_PARTS,
    N_SCORED,
    ROUNDING,
    SearchArrays,
    least_useful,
    search_tail,
)

# Members of a node.
FANOUT = 32


class BoxTreeArrays(NamedTuple):
    """Segments, one after the other; `table` says where each starts in every group of columns, and all starts count from there.

    The nodes of a segment are those over messages, then those over them, and so on; the last one is the root. A node has
    `FANOUT` members, or the rest. The `message_weight` of a word in a node is the most that a message of it has: count over
    length.
    """

    table: np.ndarray  # int64[segments, N_COLUMNS]
    offset: np.ndarray  # int32[messages], sequence number from the first of the segment, neighbours together
    first_member: np.ndarray  # int32[nodes], a message in the order of `offset`, or a node
    end_member: np.ndarray  # int32[nodes]
    box: np.ndarray  # float32[6 · nodes], low and high corner of each
    word_start: np.ndarray  # int32[nodes + 1 of each segment]
    keyword: np.ndarray  # int32[words], ascending in each node
    message_weight: np.ndarray  # float32[words], rounded up


# Columns of the table, after the sequence numbers.
MESSAGE_START, NODE_START, BOX_START, BORDER_START, WORD_START, N_LEAVES, N_NODES = range(2, 9)


_NO_WORD = -1.0


@kernel
def find_best(tree: BoxTreeArrays, frame: Frame, search: SearchArrays, queue, numbers, turns, n_requested, start, n_reached):
    """Write the best messages of each of these subscriptions, best first, from `start[i]` on; `queue` is scratch."""
    tree, search, queue = borrow(tree), borrow(search), borrow(queue)
    for turn in range(turns.size):
        i = turns[turn]
        s, first, n_best = numbers[i], start[i], n_requested[i]
        n = search_trees(tree, frame, search, queue, s, first, n_best)
        n = search_tail(search, s, turn + 1, first, n, n_best)
        n_reached[i] = n
        put_in_order(search.window.time, search.window.head[BASE], search.number, search.score, first, n)


@inline_kernel
def search_trees(tree, frame, search, queue, s, first, n_best):
    """Open nodes until none can hold a message that is good enough; returns how many of the best there are."""
    table, first_member, end_member, offset = tree.table, tree.first_member, tree.end_member, tree.offset
    window, limits, n_segments = search.window, search.limits, tree.table.shape[0]
    base, is_alive, counters = window.head[BASE], window.is_alive, search.counters
    center = coordinates(frame, search.subscriptions.x[s], search.subscriptions.y[s])
    n, least = 0, least_useful(search, first, 0, n_best)
    clear_queue(queue)
    for segment in range(n_segments):
        # Nothing in the segment is within the limits.
        if table[segment, END] > limits.first and table[segment, FIRST] < limits.end:
            root = table[segment, N_NODES] - 1
            reached = most_in(tree, frame, search.subscriptions, s, center, segment, root)
            if reached >= least:
                push_bound(queue, reached, root * n_segments + segment)
    while True:
        position = pop_bound(queue, least)
        if position == NOTHING:
            return n
        node, segment = queue.part[position] // n_segments, queue.part[position] % n_segments
        counters[N_PARTS] += 1
        at = table[segment, NODE_START] + node
        counters[N_ENTRIES] += end_member[at] - first_member[at]
        for member in range(first_member[at], end_member[at]):
            if node >= table[segment, N_LEAVES]:
                reached = most_in(tree, frame, search.subscriptions, s, center, segment, member)
                if reached >= least:
                    push_bound(queue, reached, np.int64(member) * n_segments + segment)
                continue
            number = table[segment, FIRST] + offset[table[segment, MESSAGE_START] + member]
            # Expired messages may have been dropped from the window.
            if not max(base, limits.first) <= number < limits.end or is_alive[number - base] == 0:
                continue
            counters[N_SCORED] += 1
            score = score_at(search.distances, search.subscriptions, window, s, number - base, search.common)
            if score != NOT_HERE and score >= limits.least_score:
                n = offer(window.time, base, search.number, search.score, first, n, n_best, number, score)
                least = least_useful(search, first, n, n_best)


@inline_kernel
def most_in(tree, frame, subscriptions, s, center, segment, node):
    """An upper bound of the score of a message of a node; _NO_WORD if none has a word of the subscription."""
    box, message_weight, keyword, weight_of = tree.box, tree.message_weight, subscriptions.keyword, subscriptions.weight_of
    text = 0.0
    has_word = False
    for i in range(subscriptions.first[s], subscriptions.first[s] + subscriptions.n_words[s]):
        at = word_in(tree, segment, node, keyword[i])
        if at >= 0:
            has_word = True
            weight = weight_of[keyword[i]]
            text += weight * weight * message_weight[at]
    if not has_word:
        return _NO_WORD
    x, y, z = center
    corner = 6 * (tree.table[segment, NODE_START] + node)
    dx = max(0.0, box[corner] - x, x - box[corner + 3])
    dy = max(0.0, box[corner + 1] - y, y - box[corner + 4])
    dz = max(0.0, box[corner + 2] - z, z - box[corner + 5])
    near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
    spatial = subscriptions.spatial_weight[s]
    return spatial * near + (1.0 - spatial) * min(1.0, text / subscriptions.length[s]) + ROUNDING


@inline_kernel
def word_in(tree, segment, node, word):
    """The position of a word in a node, or -1."""
    word_start_at, first_word, keyword = tree.table[segment, BORDER_START] + node, tree.table[segment, WORD_START], tree.keyword
    low, end = np.int64(tree.word_start[word_start_at]), np.int64(tree.word_start[word_start_at + 1])
    high = end
    while low < high:
        middle = (low + high) // 2
        if keyword[first_word + middle] < word:
            low = middle + 1
        else:
            high = middle
    return first_word + low if low < end and keyword[first_word + low] == word else -1
