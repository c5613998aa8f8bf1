"""Search lists by keyword for the best messages of a subscription, from the most promising block down.

Messages with several words of a subscription are found by one of them, the rarest: the words are ranked by the lengths of their
lists, and an entry of a list may count on words of its own rank and above only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.indexes.window_grid.layout import (
    BLOCK,
    BLOCK_START,
    BORDER_START,
    COARSE_START,
    ENTRY_START,
    GROUP,
    GROUP_START,
    LENGTH,
    LIST_START,
    MOST_TIMES,
    N_COARSE,
    N_WORDS,
    RECORD_START,
    SHIFT,
    TIMES_BITS,
    WORDS,
    GridArrays,
    X,
    Y,
)
from nearcast.indexes.window_pieces import END, FIRST
from nearcast.kernels.best_heap import offer, put_in_order
from nearcast.kernels.bound_heap import pop_bound, push_bound
from nearcast.kernels.compile import inline_kernel, kernel, lent
from nearcast.kernels.near_bounds import Frame, coordinates, nearest_possible
from nearcast.kernels.ranked_layouts import BASE
from nearcast.kernels.relevance import proximity, relevance, short_sum, similarity
from nearcast.kernels.simd import prefetch
from nearcast.kernels.window_search import (
    N_ENTRIES,
    N_PARTS,
    N_SCORED,
    NOT_HERE,
    ROUNDING,
    SearchArrays,
    bit_of,
    least_useful,
    search_tail,
)

NO_LIST = -1


class WordArrays(NamedTuple):
    """Of the subscription in turn, its words by rank; and what is still to be searched for it."""

    word: np.ndarray  # int64[words], position among its words
    rank: np.ndarray  # int64[words], the inverse
    n_entries: np.ndarray  # int64[words], in all lists of the word, by position
    bit: np.ndarray  # int64[words]
    text: np.ndarray  # float64[words + 1], the similarity that words of this rank and above add up to, for a heft of 1
    most: np.ndarray  # float64[words], the largest similarity with these words only
    list_of: np.ndarray  # int64[words, pieces], by position: list of the piece or NO_LIST
    bound: np.ndarray  # float64[groups + blocks + entries], heap of what is still to be looked at
    part: np.ndarray  # int64[the same]: group or block, piece and rank in one number; or record and rank, below 0
    reached: np.ndarray  # float64[BLOCK], the most that each entry of a block can score


@kernel
def find_best(grid: GridArrays, frame: Frame, search: SearchArrays, words: WordArrays, asked, turns, n_wanted, start, n_found):
    """Write the best messages of each subscription asked for, best first, from `start[i]` on."""
    grid, search, words = lent(grid), lent(search), lent(words)
    for turn in range(turns.size):
        i = turns[turn]
        s, first, wanted = asked[i], start[i], n_wanted[i]
        rank_words(grid, search.subscribers, words, s)
        n = search_tail(search, s, first, wanted)
        own_place = coordinates(frame, search.subscribers.x[s], search.subscribers.y[s])
        n = search_lists(grid, frame, search, words, s, own_place, first, n, wanted)
        n_found[i] = n
        put_in_order(search.window.time, search.window.head[BASE], search.number, search.score, first, n)


@inline_kernel
def rank_words(grid, subscribers, words, s):
    """Find the lists of the words of a subscription and rank the words by them, the rarest first."""
    table, entry_start, keyword, weight_of = grid.table, grid.entry_start, subscribers.keyword, subscribers.weight_of
    begin, n_words, length = subscribers.first[s], subscribers.n_words[s], subscribers.length[s]
    word, list_of, n_entries = words.word, words.list_of, words.n_entries
    for own in range(n_words):
        total = 0
        for piece in range(table.shape[0]):
            of = list_with(grid, piece, keyword[begin + own])
            list_of[own, piece] = of
            if of != NO_LIST:
                border = table[piece, BORDER_START] + of
                total += entry_start[border + 1] - entry_start[border]
        n_entries[own] = total
        at = own
        while at > 0 and n_entries[word[at - 1]] > total:
            word[at] = word[at - 1]
            at -= 1
        word[at] = own
    total_weight = 0.0
    words.text[n_words] = 0.0
    for rank in range(n_words - 1, -1, -1):
        own = word[rank]
        words.rank[own] = rank
        words.bit[rank] = bit_of(keyword[begin + own])
        weight = weight_of[keyword[begin + own]]
        total_weight += weight * weight
        words.text[rank] = total_weight / length
        # Both vectors have length one, so their similarity is at most the length of the part they share.
        words.most[rank] = min(1.0, math.sqrt(total_weight) / length)


@inline_kernel
def list_with(grid, piece, wanted):
    """The list of a keyword in a piece, or NO_LIST."""
    table, coarse, keyword = grid.table, grid.coarse, grid.keyword
    step = wanted >> table[piece, SHIFT]
    if step + 1 >= table[piece, N_COARSE]:
        return NO_LIST
    first_list = table[piece, LIST_START]
    low = np.int64(coarse[table[piece, COARSE_START] + step])
    end = np.int64(coarse[table[piece, COARSE_START] + step + 1])
    high = end
    while low < high:
        middle = (low + high) // 2
        if keyword[first_list + middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and keyword[first_list + low] == wanted else NO_LIST


@inline_kernel
def search_lists(grid, frame, search, words, s, own_place, first, n, wanted):
    """Take groups, blocks and entries from the most promising down, until none can be good enough.

    Groups and blocks are opened, entries scored. Returns how many of the best there are.
    """
    table, entry_start, block_start, group_start = grid.table, grid.entry_start, grid.block_start, grid.group_start
    bound, part, n_pieces, n_words = words.bound, words.part, table.shape[0], search.subscribers.n_words[s]
    window, base, record, as_number = search.window, search.window.head[BASE], grid.record, grid.as_number
    least = least_useful(search, first, n, wanted)
    n_parts = 0
    for rank in range(n_words):
        for piece in range(n_pieces):
            of = words.list_of[words.word[rank], piece]
            # Nothing of the piece may be asked for.
            if of == NO_LIST or table[piece, END] <= search.limits.first or table[piece, FIRST] >= search.limits.end:
                continue
            border, first_entry = table[piece, BORDER_START] + of, table[piece, ENTRY_START]
            if group_start[border] < group_start[border + 1]:
                begin, end = group_start[border], group_start[border + 1]
                n_parts = push_runs(grid, frame, search, words, s, own_place, least, n_parts, rank, piece, begin, end, True)
            elif block_start[border] < block_start[border + 1]:
                begin, end = block_start[border], block_start[border + 1]
                n_parts = push_runs(grid, frame, search, words, s, own_place, least, n_parts, rank, piece, begin, end, False)
            else:
                begin, end = first_entry + entry_start[border], first_entry + entry_start[border + 1]
                n_parts = push_entries(grid, frame, search, words, s, own_place, least, n_parts, rank, piece, begin, end)
    while n_parts > 0 and bound[0] >= least:
        taken = part[0]
        n_parts = pop_bound(bound, part, n_parts)
        if taken >= 0:
            rank, piece = taken % n_words, taken // n_words % n_pieces
            run, is_group = taken // n_words // n_pieces >> 1, (taken // n_words // n_pieces) & 1
            border, first_entry = table[piece, BORDER_START] + words.list_of[words.word[rank], piece], table[piece, ENTRY_START]
            if is_group:
                begin = block_start[border] + (run - group_start[border]) * GROUP
                end = min(begin + GROUP, block_start[border + 1])
                n_parts = push_runs(grid, frame, search, words, s, own_place, least, n_parts, rank, piece, begin, end, False)
                continue
            begin = first_entry + entry_start[border] + (run - block_start[border]) * BLOCK
            end = min(begin + BLOCK, first_entry + entry_start[border + 1])
            n_parts = push_entries(grid, frame, search, words, s, own_place, least, n_parts, rank, piece, begin, end)
            continue
        at, rank = (-1 - taken) // n_words, (-1 - taken) % n_words
        if n_parts > 0 and part[0] < 0:
            # Most likely the next one.
            prefetch(record, (-1 - part[0]) // n_words)
        number = as_number[at]
        # What is over may have lost its place.
        if not max(base, search.limits.first) <= number < search.limits.end or window.is_alive[number - base] == 0:
            continue
        search.counters[N_SCORED] += 1
        score = score_record(search, record, as_number, at, s, words.rank, rank)
        if score != NOT_HERE and score >= search.limits.least_score:
            n = offer(window.time, base, search.number, search.score, first, n, wanted, number, score)
            least = least_useful(search, first, n, wanted)
    return n


@inline_kernel
def score_record(search, record, as_number, at, s, rank, least_rank):
    """As `score_at`, from the record of a message that has the word of rank `least_rank`.

    NOT_HERE if it has a word of lower rank too, by which it is found. `rank` is by position among the words.
    """
    subscribers, common = search.subscribers, search.common
    keyword, weight_of, begin = subscribers.keyword, subscribers.weight_of, subscribers.first[s]
    end = begin + subscribers.n_words[s]
    is_lonlat, max_distance = search.ground
    own = begin
    n_common = 0
    for there in range(at + WORDS, at + WORDS + as_number[at + N_WORDS]):
        message_keyword = as_number[there] >> TIMES_BITS
        while own < end and keyword[own] < message_keyword:
            own += 1
        if own == end:
            break
        if keyword[own] == message_keyword:
            if rank[own - begin] < least_rank:
                return NOT_HERE
            # The same operations as in `weigh_messages`.
            weight = weight_of[message_keyword]
            common[n_common] = (as_number[there] & MOST_TIMES) * (weight * weight)
            n_common += 1
    dot = short_sum(common, n_common)
    near = proximity(is_lonlat, max_distance, subscribers.x[s], subscribers.y[s], record[at + X], record[at + Y])
    return relevance(subscribers.spatial_weight[s], near, similarity(dot, record[at + LENGTH], subscribers.length[s]))


@inline_kernel
def push_runs(grid, frame, search, words, s, own_place, least, n_parts, rank, piece, begin, end, is_group):
    """Put groups or blocks that may hold good enough messages among the parts to look at; returns how many these are."""
    box, heft, first = grid.box, grid.block_heft, grid.table[piece, BLOCK_START]
    if is_group:
        box, heft, first = grid.group_box, grid.group_heft, grid.table[piece, GROUP_START]
    bound, part = words.bound, words.part
    x, y, z = own_place
    spatial, text, most = search.subscribers.spatial_weight[s], words.text[rank], words.most[rank]
    n_pieces, n_words = grid.table.shape[0], search.subscribers.n_words[s]
    search.counters[N_PARTS] += end - begin
    for run in range(begin, end):
        at = first + run
        dx = max(0.0, box[6 * at] - x, x - box[6 * at + 3])
        dy = max(0.0, box[6 * at + 1] - y, y - box[6 * at + 4])
        dz = max(0.0, box[6 * at + 2] - z, z - box[6 * at + 5])
        near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
        reached = spatial * near + (1.0 - spatial) * min(most, text * heft[at]) + ROUNDING
        if reached >= least:
            n_parts = push_bound(bound, part, n_parts, reached, ((2 * run + is_group) * n_pieces + piece) * n_words + rank)
    return n_parts


@inline_kernel
def push_entries(grid, frame, search, words, s, own_place, least, n_parts, rank, piece, begin, end):
    """Put the entries that may be good enough among the parts to look at; returns how many these are."""
    reached, n_words, offset = words.reached, search.subscribers.n_words[s], grid.offset
    first_record, bound, part = grid.table[piece, RECORD_START], words.bound, words.part
    bound_entries(grid, frame, search.subscribers, words, s, own_place, rank, begin, end)
    search.counters[N_ENTRIES] += end - begin
    for i in range(end - begin):
        if reached[i] >= least:
            n_parts = push_bound(bound, part, n_parts, reached[i], -1 - ((first_record + offset[begin + i]) * n_words + rank))
    return n_parts


@inline_kernel
def bound_entries(grid, frame, subscribers, words, s, own_place, rank, begin, end):
    """Write the most that each of some entries can score: a message has the words whose bits it has."""
    reached, bit, text, n_words, n = words.reached, words.bit, words.text, subscribers.n_words[s], end - begin
    figures, signature = grid.figures[4 * begin : 4 * end], grid.signature[begin:end]
    x, y, z, heft = figures[:n], figures[n : 2 * n], figures[2 * n : 3 * n], figures[3 * n :]
    own_text = text[rank] - text[rank + 1]
    for i in range(n):
        reached[i] = own_text
    for other in range(rank + 1, n_words):
        other_bit, other_text = bit[other], text[other] - text[other + 1]
        for i in range(n):
            reached[i] += other_text * ((signature[i] >> other_bit) & 1)
    own_x, own_y, own_z = own_place
    spatial, most = subscribers.spatial_weight[s], words.most[rank]
    for i in range(n):
        dx, dy, dz = x[i] - own_x, y[i] - own_y, z[i] - own_z
        near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
        reached[i] = spatial * near + (1.0 - spatial) * min(most, reached[i] * heft[i]) + ROUNDING
