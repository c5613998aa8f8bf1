"""Search lists by keyword for the best messages of a subscription, from the most promising block down.

Messages with several words of a subscription are found by one of them, the rarest: in each piece the words are ranked by the
lengths of their lists, and an entry of a list may count on words of its own rank and above only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.ranked.kernels.bounds import Frame, coordinates, nearest_possible
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.scoring import NOT_HERE, proximity, relevance, short_sum, similarity
from nearcast.ranked.kernels.search_queues import NOTHING, BoundQueue, clear_queue, offer, pop_bound, push_bound, put_in_order
from nearcast.ranked.kernels.window_search import (
    END,
    FIRST,
    N_ENTRIES,
    N_PARTS,
    N_SCORED,
    ROUNDING,
    SearchArrays,
    bit_of,
    least_useful,
    search_tail,
)
from nearcast.ranked.window_grid.kernels.build import (
    BLOCK,
    BLOCK_START,
    BORDER_START,
    COARSE_START,
    ENTRY,
    ENTRY_START,
    GROUP,
    GROUP_START,
    HEFT,
    HIGH,
    LARGEST,
    LENGTH,
    LIST_START,
    LOW,
    MORE,
    MOST_TIMES,
    N_COARSE,
    N_WORDS,
    OFFSET,
    ONCE,
    PLACE,
    RECORD_START,
    REPEATED,
    RUN,
    SHIFT,
    SIGNATURE,
    TIMES_BITS,
    WORDS,
    GridArrays,
    X,
    Y,
)

NO_LIST = -1
# Messages are scored so many at a time: their records are on the way from memory meanwhile.
_TOGETHER = 8
# Numbers in a line of memory.
LINE = 8
_PLACE = (1 << 32) - 1


class WordArrays(NamedTuple):
    """Of the subscription in turn, those of its words that a piece has, by rank; and what is still to be searched for it."""

    n: np.ndarray  # int64[pieces], how many words
    list_of: np.ndarray  # int64[pieces, words]
    n_entries: np.ndarray  # int64[pieces, words], of the list
    position: np.ndarray  # int64[pieces, words], among all words
    rank: np.ndarray  # int64[pieces, words], the inverse
    bit: np.ndarray  # int64[pieces, words]
    text: np.ndarray  # float64[pieces, words + 1], the similarity that words of this rank and above add up to, for a heft of 1
    most: np.ndarray  # float64[pieces, words], the largest similarity with these words only
    queue: BoundQueue  # what is still to be looked at, see `part_of_run` and `part_of_entry`
    reached: np.ndarray  # float64[BLOCK], the most that each entry of a block can score
    plain: np.ndarray  # float64[BLOCK], what the words that each entry has would add up to for a heft of 1
    taken: np.ndarray  # int64[3, _TOGETHER], records to be scored, with their pieces and the ranks of the words


def words_for(n_pieces: int, n_words: int, queue: BoundQueue) -> WordArrays:
    """For subscriptions of up to so many words."""
    list_of, n_entries, position, rank, bit = np.empty((5, n_pieces, n_words), np.int64)
    text, most = np.empty((n_pieces, n_words + 1)), np.empty((n_pieces, n_words))
    scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty((3, _TOGETHER), np.int64)
    return WordArrays(np.empty(n_pieces, np.int64), list_of, n_entries, position, rank, bit, text, most, queue, *scratch)


@inline_kernel
def part_of_run(run, is_group, place):
    """A group or block; `place` is its piece and the rank of its word, in one number below 1 << 32."""
    return np.int64(2 * run + is_group) << 32 | place


@inline_kernel
def part_of_entry(record, place):
    """An entry, by where the record of its message starts: below 0."""
    return -1 - (np.int64(record) << 32 | place)


@kernel
def find_best(
    grid: GridArrays, frame: Frame, search: SearchArrays, words: WordArrays, n_lines, asked, turns, n_wanted, start, n_found
):
    """Write the best messages of each subscription asked for, best first, from `start[i]` on.

    Records of messages take some `n_lines` of memory.
    """
    grid, search, words = borrow(grid), borrow(search), borrow(words)
    for turn in range(turns.size):
        i = turns[turn]
        s, first, wanted = asked[i], start[i], n_wanted[i]
        for piece in range(grid.table.shape[0]):
            rank_words(grid, search.subscribers, words, s, piece)
        own_place = coordinates(frame, search.subscribers.x[s], search.subscribers.y[s])
        n = search_lists(grid, frame, search, words, n_lines, s, own_place, first, wanted)
        n = search_tail(search, s, turn + 1, first, n, wanted)
        n_found[i] = n
        put_in_order(search.window.time, search.window.head[BASE], search.number, search.score, first, n)


@inline_kernel
def rank_words(grid, subscribers, words, s, piece):
    """Find the lists of the words of a subscription in a piece, and rank the words by them, the rarest first."""
    entry_start, keyword, weight_of = grid.entry_start, subscribers.keyword, subscribers.weight_of
    begin, length = subscribers.first[s], subscribers.length[s]
    position, list_of, n_entries = words.position[piece], words.list_of[piece], words.n_entries[piece]
    n = 0
    # Words come by number: of equally many messages the lower one is the rarer.
    for own in range(subscribers.n_words[s]):
        of = list_with(grid, piece, keyword[begin + own])
        if of == NO_LIST:
            continue
        border = grid.table[piece, BORDER_START] + of
        total = np.int64(entry_start[border + 1] - entry_start[border])
        at = n
        while at > 0 and n_entries[at - 1] > total:
            position[at], list_of[at], n_entries[at] = position[at - 1], list_of[at - 1], n_entries[at - 1]
            at -= 1
        position[at], list_of[at], n_entries[at] = own, of, total
        n += 1
    words.n[piece] = n
    squares = 0.0
    words.text[piece, n] = 0.0
    for rank in range(n - 1, -1, -1):
        own = keyword[begin + position[rank]]
        words.rank[piece, position[rank]], words.bit[piece, rank] = rank, bit_of(own)
        squares += weight_of[own] * weight_of[own]
        words.text[piece, rank] = squares / length
        # Both vectors have length one, so their similarity is at most the length of the part they share.
        words.most[piece, rank] = min(1.0, math.sqrt(squares) / length)


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
def search_lists(grid, frame, search, words, n_lines, s, own_place, first, wanted):
    """Take groups, blocks and entries from the most promising down, until none can be good enough.

    Groups and blocks are opened, entries scored. Returns how many of the best there are.
    """
    table, entry_start, block_start, group_start = grid.table, grid.entry_start, grid.block_start, grid.group_start
    queue, n_words, taken = words.queue, search.subscribers.n_words[s], words.taken
    n, n_taken = 0, 0
    least = least_useful(search, first, n, wanted)
    clear_queue(queue)
    for piece in range(table.shape[0]):
        # Nothing of the piece may be asked for.
        if table[piece, END] <= search.limits.first or table[piece, FIRST] >= search.limits.end:
            continue
        for rank in range(words.n[piece]):
            border, place = table[piece, BORDER_START] + words.list_of[piece, rank], piece * n_words + rank
            if group_start[border] < group_start[border + 1]:
                begin, end = group_start[border], group_start[border + 1]
                push_runs(grid, frame, search, words, s, own_place, least, place, begin, end, True)
            elif block_start[border] < block_start[border + 1]:
                begin, end = block_start[border], block_start[border + 1]
                push_runs(grid, frame, search, words, s, own_place, least, place, begin, end, False)
            else:
                begin, end = np.int64(entry_start[border]), np.int64(entry_start[border + 1])
                push_entries(grid, frame, search, words, s, own_place, least, place, begin, end)
    while True:
        at = pop_bound(queue, least)
        if at == NOTHING:
            return score_taken(grid, search, words, s, n_taken, first, n, wanted)
        part = queue.part[at]
        place = (part if part >= 0 else -1 - part) & _PLACE
        piece, rank = place // n_words, place % n_words
        if part < 0:
            record = (-1 - part) >> 32
            taken[0, n_taken], taken[1, n_taken], taken[2, n_taken] = record, piece, rank
            for line in range(n_lines):
                prefetch(grid.record, record + LINE * line)
            n_taken += 1
            if n_taken == _TOGETHER:
                n = score_taken(grid, search, words, s, n_taken, first, n, wanted)
                n_taken, least = 0, least_useful(search, first, n, wanted)
            continue
        run, is_group = part >> 33, (part >> 32) & 1
        border = table[piece, BORDER_START] + words.list_of[piece, rank]
        if is_group:
            begin = block_start[border] + (run - group_start[border]) * GROUP
            end = min(begin + GROUP, np.int64(block_start[border + 1]))
            push_runs(grid, frame, search, words, s, own_place, least, place, begin, end, False)
        else:
            begin = entry_start[border] + (run - block_start[border]) * BLOCK
            end = min(begin + BLOCK, np.int64(entry_start[border + 1]))
            push_entries(grid, frame, search, words, s, own_place, least, place, begin, end)


@inline_kernel
def score_taken(grid, search, words, s, n_taken, first, n, wanted):
    """Offer the messages that were taken, if they live; returns how many of the best there are."""
    window, base, limits, taken = search.window, search.window.head[BASE], search.limits, words.taken
    search.counters[N_SCORED] += n_taken
    for i in range(n_taken):
        at = taken[0, i]
        score = score_record(search, grid.record, grid.as_number, at, s, words.rank[taken[1, i]], taken[2, i])
        if score == NOT_HERE or score < least_useful(search, first, n, wanted):
            continue
        number = grid.as_number[at]
        # What is over may have lost its place.
        if max(base, limits.first) <= number < limits.end and window.is_alive[number - base] != 0:
            n = offer(window.time, base, search.number, search.score, first, n, wanted, number, score)
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
def push_runs(grid, frame, search, words, s, own_place, least, place, begin, end, is_group):
    """Put groups or blocks that may hold good enough messages among the parts to look at."""
    n_words = search.subscribers.n_words[s]
    piece, rank = place // n_words, place % n_words
    runs, first = grid.block, grid.table[piece, BLOCK_START]
    if is_group:
        runs, first = grid.group, grid.table[piece, GROUP_START]
    x, y, z = own_place
    spatial, text, most = search.subscribers.spatial_weight[s], words.text[piece, rank], words.most[piece, rank]
    search.counters[N_PARTS] += end - begin
    for run in range(begin, end):
        at = first + RUN * run
        dx = max(0.0, runs[at + LOW] - x, x - runs[at + HIGH])
        dy = max(0.0, runs[at + LOW + 1] - y, y - runs[at + HIGH + 1])
        dz = max(0.0, runs[at + LOW + 2] - z, z - runs[at + HIGH + 2])
        near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
        reached = spatial * near + (1.0 - spatial) * min(most, text * runs[at + LARGEST]) + ROUNDING
        if reached >= least:
            push_bound(words.queue, reached, part_of_run(run, is_group, place))


@inline_kernel
def push_entries(grid, frame, search, words, s, own_place, least, place, begin, end):
    """Put the entries that may be good enough among the parts to look at."""
    n_words, n, reached = search.subscribers.n_words[s], end - begin, words.reached
    piece, rank = place // n_words, place % n_words
    first, first_record = grid.table[piece, ENTRY_START] + ENTRY * begin, grid.table[piece, RECORD_START]
    bound_entries(grid, frame, search.subscribers, words, s, own_place, piece, rank, first, n)
    search.counters[N_ENTRIES] += n
    offset = grid.entry[first + OFFSET * n :][:n]
    for i in range(n):
        if reached[i] >= least:
            push_bound(words.queue, reached[i], part_of_entry(first_record + offset[i], place))


@inline_kernel
def bound_entries(grid, frame, subscribers, words, s, own_place, piece, rank, first, n):
    """Write the most that each of some entries can score: a message has the words whose bits it has."""
    reached, bit, text = words.reached, words.bit[piece], words.text[piece]
    figure, entry = grid.figure[first : first + ENTRY * n], grid.entry[first : first + ENTRY * n]
    once, more = figure[ONCE * n :][:n], figure[MORE * n :][:n]
    signature, repeated = entry[SIGNATURE * n :][:n], entry[REPEATED * n :][:n]
    heft, plain = figure[HEFT * n :][:n], words.plain
    for i in range(n):
        reached[i], plain[i] = 0.0, 0.0
    for own in range(rank, words.n[piece]):
        own_bit, own_text = bit[own], text[own] - text[own + 1]
        for i in range(n):
            plain[i] += own_text * ((signature[i] >> own_bit) & 1)
            reached[i] += own_text * ((repeated[i] >> own_bit) & 1)
    for i in range(n):
        reached[i] = min(plain[i] * heft[i], plain[i] * once[i] + reached[i] * more[i])
    x, y, z = figure[PLACE * n :][:n], figure[(PLACE + 1) * n :][:n], figure[(PLACE + 2) * n :][:n]
    own_x, own_y, own_z = own_place
    spatial, most = subscribers.spatial_weight[s], words.most[piece, rank]
    for i in range(n):
        dx, dy, dz = x[i] - own_x, y[i] - own_y, z[i] - own_z
        near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
        reached[i] = spatial * near + (1.0 - spatial) * min(most, reached[i]) + ROUNDING
