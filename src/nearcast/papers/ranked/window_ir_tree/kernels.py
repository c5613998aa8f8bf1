"""The arrays of trees of boxes with words."""

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


class TreeArrays(NamedTuple):
    """Pieces one after the other; `table` says where each starts in every group of columns, and all starts count from there.

    The nodes of a piece are those over messages, then those over them, and so on; the last one is the root. A node has `FANOUT`
    members or what is left. `heft` of a word in a node is the most that a message of it has of the word: count over length.
    """

    table: np.ndarray  # int64[pieces, N_COLUMNS]
    offset: np.ndarray  # int32[messages], sequence number from the first of the piece, neighbours together
    first_member: np.ndarray  # int32[nodes], a message in the order of `offset`, or a node
    end_member: np.ndarray  # int32[nodes]
    box: np.ndarray  # float32[6 · nodes], low and high corner of each
    word_start: np.ndarray  # int32[nodes + 1 of each piece]
    keyword: np.ndarray  # int32[words], rising in each node
    heft: np.ndarray  # float32[words], rounded up


# Columns of the table, after the sequence numbers.
MESSAGE_START, NODE_START, BOX_START, BORDER_START, WORD_START, N_LEAVES, N_NODES = range(2, 9)


# -- Search trees of boxes with words for the best messages of a subscription, from the most promising node down.

_NO_WORD = -1.0


@kernel
def find_best(tree: TreeArrays, frame: Frame, search: SearchArrays, queue, asked, turns, n_wanted, start, n_found):
    """Write the best messages of each subscription asked for, best first, from `start[i]` on; `queue` is scratch."""
    tree, search, queue = borrow(tree), borrow(search), borrow(queue)
    for turn in range(turns.size):
        i = turns[turn]
        s, first, wanted = asked[i], start[i], n_wanted[i]
        n = search_trees(tree, frame, search, queue, s, first, wanted)
        n = search_tail(search, s, turn + 1, first, n, wanted)
        n_found[i] = n
        put_in_order(search.window.time, search.window.head[BASE], search.number, search.score, first, n)


@inline_kernel
def search_trees(tree, frame, search, queue, s, first, wanted):
    """Open nodes until none can hold a message that is good enough; returns how many of the best there are."""
    table, first_member, end_member, offset = tree.table, tree.first_member, tree.end_member, tree.offset
    window, limits, n_pieces = search.window, search.limits, tree.table.shape[0]
    base, is_alive, counters = window.head[BASE], window.is_alive, search.counters
    own_place = coordinates(frame, search.subscribers.x[s], search.subscribers.y[s])
    n, least = 0, least_useful(search, first, 0, wanted)
    clear_queue(queue)
    for piece in range(n_pieces):
        # Nothing of the piece may be asked for.
        if table[piece, END] > limits.first and table[piece, FIRST] < limits.end:
            root = table[piece, N_NODES] - 1
            reached = most_in(tree, frame, search.subscribers, s, own_place, piece, root)
            if reached >= least:
                push_bound(queue, reached, root * n_pieces + piece)
    while True:
        place = pop_bound(queue, least)
        if place == NOTHING:
            return n
        node, piece = queue.part[place] // n_pieces, queue.part[place] % n_pieces
        counters[N_PARTS] += 1
        at = table[piece, NODE_START] + node
        counters[N_ENTRIES] += end_member[at] - first_member[at]
        for member in range(first_member[at], end_member[at]):
            if node >= table[piece, N_LEAVES]:
                reached = most_in(tree, frame, search.subscribers, s, own_place, piece, member)
                if reached >= least:
                    push_bound(queue, reached, np.int64(member) * n_pieces + piece)
                continue
            number = table[piece, FIRST] + offset[table[piece, MESSAGE_START] + member]
            # What is over may have lost its place.
            if not max(base, limits.first) <= number < limits.end or is_alive[number - base] == 0:
                continue
            counters[N_SCORED] += 1
            score = score_at(search.ground, search.subscribers, window, s, number - base, search.common)
            if score != NOT_HERE and score >= limits.least_score:
                n = offer(window.time, base, search.number, search.score, first, n, wanted, number, score)
                least = least_useful(search, first, n, wanted)


@inline_kernel
def most_in(tree, frame, subscribers, s, own_place, piece, node):
    """The most that a message of a node can score; _NO_WORD if none has a word of the subscription."""
    box, heft, keyword, weight_of = tree.box, tree.heft, subscribers.keyword, subscribers.weight_of
    text = 0.0
    has_word = False
    for own in range(subscribers.first[s], subscribers.first[s] + subscribers.n_words[s]):
        at = word_in(tree, piece, node, keyword[own])
        if at >= 0:
            has_word = True
            weight = weight_of[keyword[own]]
            text += weight * weight * heft[at]
    if not has_word:
        return _NO_WORD
    x, y, z = own_place
    corner = 6 * (tree.table[piece, NODE_START] + node)
    dx = max(0.0, box[corner] - x, x - box[corner + 3])
    dy = max(0.0, box[corner + 1] - y, y - box[corner + 4])
    dz = max(0.0, box[corner + 2] - z, z - box[corner + 5])
    near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
    spatial = subscribers.spatial_weight[s]
    return spatial * near + (1.0 - spatial) * min(1.0, text / subscribers.length[s]) + ROUNDING


@inline_kernel
def word_in(tree, piece, node, wanted):
    """Where a node has a keyword, or -1."""
    border, first_word, keyword = tree.table[piece, BORDER_START] + node, tree.table[piece, WORD_START], tree.keyword
    low, end = np.int64(tree.word_start[border]), np.int64(tree.word_start[border + 1])
    high = end
    while low < high:
        middle = (low + high) // 2
        if keyword[first_word + middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return first_word + low if low < end and keyword[first_word + low] == wanted else -1
