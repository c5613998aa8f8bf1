"""Search lists by keyword for the best messages of a subscription, from the most promising block down.

A message with several words of a subscription is found through the rarest of them: in each segment the words are ranked by the
lengths of their lists, and an entry of a list may count only on words of its own rank and above.
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
    HIGH,
    LARGEST,
    LENGTH,
    LIST_START,
    LOCATION,
    LOW,
    MESSAGE_WEIGHT,
    MORE,
    MOST_TIMES,
    N_COARSE,
    N_WORDS,
    OFFSET,
    ONCE,
    RECORD_START,
    REPEATED,
    RUN,
    SHIFT,
    SIGNATURE,
    TIMES_BITS,
    WORDS,
    WindowGridArrays,
    X,
    Y,
)

NO_LIST = -1
# Messages are scored this many at a time, so that their records are prefetched.
_TOGETHER = 8
# Numbers in a line of memory.
LINE = 8
_LIST_NUMBER = (1 << 32) - 1


class SubscriptionWordArrays(NamedTuple):
    """The words of the current subscription that each segment has, by rank, and the queue of what is still to be searched."""

    n: np.ndarray  # int64[segments], how many words
    list_of: np.ndarray  # int64[segments, words]
    n_entries: np.ndarray  # int64[segments, words], of the list
    position: np.ndarray  # int64[segments, words], among all words
    rank: np.ndarray  # int64[segments, words], the inverse
    bit: np.ndarray  # int64[segments, words]
    text: np.ndarray  # float64[segments, words + 1], the similarity of words of this rank and above, for a weight of 1
    most: np.ndarray  # float64[segments, words], the largest similarity with these words only
    queue: BoundQueue  # see `queue_item_of_run` and `queue_item_of_entry`
    reached: np.ndarray  # float64[BLOCK], the most that each entry of a block can score
    plain: np.ndarray  # float64[BLOCK], the similarity of the words that each entry has, for a weight of 1
    pending: np.ndarray  # int64[3, _TOGETHER], records to be scored, with their segments and the ranks of the words


def words_for(n_segments: int, n_words: int, queue: BoundQueue) -> SubscriptionWordArrays:
    """For subscriptions of up to `n_words` words."""
    list_of, n_entries, position, rank, bit = np.empty((5, n_segments, n_words), np.int64)
    text, most = np.empty((n_segments, n_words + 1)), np.empty((n_segments, n_words))
    scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty((3, _TOGETHER), np.int64)
    return SubscriptionWordArrays(
        np.empty(n_segments, np.int64), list_of, n_entries, position, rank, bit, text, most, queue, *scratch
    )


@inline_kernel
def queue_item_of_run(run, is_group, list_number):
    """A group or block; `list_number` is the segment and the rank of the word, as one number below 1 << 32."""
    return np.int64(2 * run + is_group) << 32 | list_number


@inline_kernel
def queue_item_of_entry(record, list_number):
    """An entry, by the start of its record; negative."""
    return -1 - (np.int64(record) << 32 | list_number)


@kernel
def find_best(
    grid: WindowGridArrays,
    frame: Frame,
    search: SearchArrays,
    words: SubscriptionWordArrays,
    n_lines,
    numbers,
    turns,
    n_requested,
    start,
    n_written,
):
    """Write the best messages of each of these subscriptions, best first, from `start[i]` on.

    A record takes about `n_lines` lines of memory.
    """
    grid, search, words = borrow(grid), borrow(search), borrow(words)
    for turn in range(turns.size):
        i = turns[turn]
        s, first, n_best = numbers[i], start[i], n_requested[i]
        for segment in range(grid.table.shape[0]):
            rank_words(grid, search.subscriptions, words, s, segment)
        center = coordinates(frame, search.subscriptions.x[s], search.subscriptions.y[s])
        n = search_lists(grid, frame, search, words, n_lines, s, center, first, n_best)
        n = search_tail(search, s, turn + 1, first, n, n_best)
        n_written[i] = n
        put_in_order(search.window.time, search.window.head[BASE], search.number, search.score, first, n)


@inline_kernel
def rank_words(grid, subscriptions, words, s, segment):
    """Find the lists of the words of a subscription in a segment, and rank the words by their lengths, the rarest first."""
    entry_start, keyword, weight_of = grid.entry_start, subscriptions.keyword, subscriptions.weight_of
    begin, length = subscriptions.first[s], subscriptions.length[s]
    position, list_of, n_entries = words.position[segment], words.list_of[segment], words.n_entries[segment]
    n = 0
    # Words are in the order of their ids: of equal lengths the lower one is the rarer.
    for word in range(subscriptions.n_words[s]):
        of = list_with(grid, segment, keyword[begin + word])
        if of == NO_LIST:
            continue
        list_at = grid.table[segment, BORDER_START] + of
        total = np.int64(entry_start[list_at + 1] - entry_start[list_at])
        at = n
        while at > 0 and n_entries[at - 1] > total:
            position[at], list_of[at], n_entries[at] = position[at - 1], list_of[at - 1], n_entries[at - 1]
            at -= 1
        position[at], list_of[at], n_entries[at] = word, of, total
        n += 1
    words.n[segment] = n
    squares = 0.0
    words.text[segment, n] = 0.0
    for rank in range(n - 1, -1, -1):
        word = keyword[begin + position[rank]]
        words.rank[segment, position[rank]], words.bit[segment, rank] = rank, bit_of(word)
        squares += weight_of[word] * weight_of[word]
        words.text[segment, rank] = squares / length
        # Both vectors have length one, so their similarity is at most the length of the common part.
        words.most[segment, rank] = min(1.0, math.sqrt(squares) / length)


@inline_kernel
def list_with(grid, segment, word):
    """The list of a keyword in a segment, or NO_LIST."""
    table, coarse, keyword = grid.table, grid.coarse, grid.keyword
    step = word >> table[segment, SHIFT]
    if step + 1 >= table[segment, N_COARSE]:
        return NO_LIST
    first_list = table[segment, LIST_START]
    low = np.int64(coarse[table[segment, COARSE_START] + step])
    end = np.int64(coarse[table[segment, COARSE_START] + step + 1])
    high = end
    while low < high:
        middle = (low + high) // 2
        if keyword[first_list + middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < end and keyword[first_list + low] == word else NO_LIST


@inline_kernel
def search_lists(grid, frame, search, words, n_lines, s, center, first, n_best):
    """Take groups, blocks and entries from the most promising down, until none can be good enough.

    Groups and blocks are opened, entries scored. Returns how many of the best there are.
    """
    table, entry_start, block_start, group_start = grid.table, grid.entry_start, grid.block_start, grid.group_start
    queue, n_words, pending = words.queue, search.subscriptions.n_words[s], words.pending
    n, n_pending = 0, 0
    least = least_useful(search, first, n, n_best)
    clear_queue(queue)
    for segment in range(table.shape[0]):
        # Nothing in the segment is within the limits.
        if table[segment, END] <= search.limits.first or table[segment, FIRST] >= search.limits.end:
            continue
        for rank in range(words.n[segment]):
            list_at, list_number = table[segment, BORDER_START] + words.list_of[segment, rank], segment * n_words + rank
            if group_start[list_at] < group_start[list_at + 1]:
                begin, end = group_start[list_at], group_start[list_at + 1]
                push_runs(grid, frame, search, words, s, center, least, list_number, begin, end, True)
            elif block_start[list_at] < block_start[list_at + 1]:
                begin, end = block_start[list_at], block_start[list_at + 1]
                push_runs(grid, frame, search, words, s, center, least, list_number, begin, end, False)
            else:
                begin, end = np.int64(entry_start[list_at]), np.int64(entry_start[list_at + 1])
                push_entries(grid, frame, search, words, s, center, least, list_number, begin, end)
    while True:
        at = pop_bound(queue, least)
        if at == NOTHING:
            return score_pending(grid, search, words, s, n_pending, first, n, n_best)
        part = queue.part[at]
        list_number = (part if part >= 0 else -1 - part) & _LIST_NUMBER
        segment, rank = list_number // n_words, list_number % n_words
        if part < 0:
            record = (-1 - part) >> 32
            pending[0, n_pending], pending[1, n_pending], pending[2, n_pending] = record, segment, rank
            for line in range(n_lines):
                prefetch(grid.record, record + LINE * line)
            n_pending += 1
            if n_pending == _TOGETHER:
                n = score_pending(grid, search, words, s, n_pending, first, n, n_best)
                n_pending, least = 0, least_useful(search, first, n, n_best)
            continue
        run, is_group = part >> 33, (part >> 32) & 1
        list_at = table[segment, BORDER_START] + words.list_of[segment, rank]
        if is_group:
            begin = block_start[list_at] + (run - group_start[list_at]) * GROUP
            end = min(begin + GROUP, np.int64(block_start[list_at + 1]))
            push_runs(grid, frame, search, words, s, center, least, list_number, begin, end, False)
        else:
            begin = entry_start[list_at] + (run - block_start[list_at]) * BLOCK
            end = min(begin + BLOCK, np.int64(entry_start[list_at + 1]))
            push_entries(grid, frame, search, words, s, center, least, list_number, begin, end)


@inline_kernel
def score_pending(grid, search, words, s, n_pending, first, n, n_best):
    """Score the pending entries and offer those that live; returns how many of the best there are."""
    window, base, limits, pending = search.window, search.window.head[BASE], search.limits, words.pending
    search.counters[N_SCORED] += n_pending
    for i in range(n_pending):
        at = pending[0, i]
        score = score_record(search, grid.record, grid.as_number, at, s, words.rank[pending[1, i]], pending[2, i])
        if score == NOT_HERE or score < least_useful(search, first, n, n_best):
            continue
        number = grid.as_number[at]
        # Expired messages may have been dropped from the window.
        if max(base, limits.first) <= number < limits.end and window.is_alive[number - base] != 0:
            n = offer(window.time, base, search.number, search.score, first, n, n_best, number, score)
    return n


@inline_kernel
def score_record(search, record, as_number, at, s, rank, least_rank):
    """As `score_at`, from the record of a message that has the word of rank `least_rank`.

    NOT_HERE if it has a word of lower rank too, through which it is found. `rank` is by position among the words.
    """
    subscriptions, common = search.subscriptions, search.common
    keyword, weight_of, begin = subscriptions.keyword, subscriptions.weight_of, subscriptions.first[s]
    end = begin + subscriptions.n_words[s]
    is_lonlat, max_distance = search.distances
    word = begin
    n_common = 0
    for record_word in range(at + WORDS, at + WORDS + as_number[at + N_WORDS]):
        message_keyword = as_number[record_word] >> TIMES_BITS
        while word < end and keyword[word] < message_keyword:
            word += 1
        if word == end:
            break
        if keyword[word] == message_keyword:
            if rank[word - begin] < least_rank:
                return NOT_HERE
            # The same operations as in `weigh_messages`.
            weight = weight_of[message_keyword]
            common[n_common] = (as_number[record_word] & MOST_TIMES) * (weight * weight)
            n_common += 1
    dot = short_sum(common, n_common)
    near = proximity(is_lonlat, max_distance, subscriptions.x[s], subscriptions.y[s], record[at + X], record[at + Y])
    return relevance(subscriptions.spatial_weight[s], near, similarity(dot, record[at + LENGTH], subscriptions.length[s]))


@inline_kernel
def push_runs(grid, frame, search, words, s, center, least, list_number, begin, end, is_group):
    """Queue the groups or blocks that may hold good enough messages."""
    n_words = search.subscriptions.n_words[s]
    segment, rank = list_number // n_words, list_number % n_words
    runs, first = grid.block, grid.table[segment, BLOCK_START]
    if is_group:
        runs, first = grid.group, grid.table[segment, GROUP_START]
    x, y, z = center
    spatial, text, most = search.subscriptions.spatial_weight[s], words.text[segment, rank], words.most[segment, rank]
    search.counters[N_PARTS] += end - begin
    for run in range(begin, end):
        at = first + RUN * run
        dx = max(0.0, runs[at + LOW] - x, x - runs[at + HIGH])
        dy = max(0.0, runs[at + LOW + 1] - y, y - runs[at + HIGH + 1])
        dz = max(0.0, runs[at + LOW + 2] - z, z - runs[at + HIGH + 2])
        near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
        reached = spatial * near + (1.0 - spatial) * min(most, text * runs[at + LARGEST]) + ROUNDING
        if reached >= least:
            push_bound(words.queue, reached, queue_item_of_run(run, is_group, list_number))


@inline_kernel
def push_entries(grid, frame, search, words, s, center, least, list_number, begin, end):
    """Queue the entries that may be good enough."""
    n_words, n, reached = search.subscriptions.n_words[s], end - begin, words.reached
    segment, rank = list_number // n_words, list_number % n_words
    first, first_record = grid.table[segment, ENTRY_START] + ENTRY * begin, grid.table[segment, RECORD_START]
    bound_entries(grid, frame, search.subscriptions, words, s, center, segment, rank, first, n)
    search.counters[N_ENTRIES] += n
    offset = grid.entry[first + OFFSET * n :][:n]
    for i in range(n):
        if reached[i] >= least:
            push_bound(words.queue, reached[i], queue_item_of_entry(first_record + offset[i], list_number))


@inline_kernel
def bound_entries(grid, frame, subscriptions, words, s, center, segment, rank, first, n):
    """Write an upper bound of the score of each entry: a message has the words whose bits it has."""
    reached, bit, text = words.reached, words.bit[segment], words.text[segment]
    figure, entry = grid.figure[first : first + ENTRY * n], grid.entry[first : first + ENTRY * n]
    once, more = figure[ONCE * n :][:n], figure[MORE * n :][:n]
    signature, repeated = entry[SIGNATURE * n :][:n], entry[REPEATED * n :][:n]
    message_weight, plain = figure[MESSAGE_WEIGHT * n :][:n], words.plain
    for i in range(n):
        reached[i], plain[i] = 0.0, 0.0
    for word in range(rank, words.n[segment]):
        word_bit, word_text = bit[word], text[word] - text[word + 1]
        for i in range(n):
            plain[i] += word_text * ((signature[i] >> word_bit) & 1)
            reached[i] += word_text * ((repeated[i] >> word_bit) & 1)
    for i in range(n):
        reached[i] = min(plain[i] * message_weight[i], plain[i] * once[i] + reached[i] * more[i])
    x, y, z = figure[LOCATION * n :][:n], figure[(LOCATION + 1) * n :][:n], figure[(LOCATION + 2) * n :][:n]
    center_x, center_y, center_z = center
    spatial, most = subscriptions.spatial_weight[s], words.most[segment, rank]
    for i in range(n):
        dx, dy, dz = x[i] - center_x, y[i] - center_y, z[i] - center_z
        near = nearest_possible(frame, dx * dx + dy * dy + dz * dz)
        reached[i] = spatial * near + (1.0 - spatial) * min(most, reached[i]) + ROUNDING
