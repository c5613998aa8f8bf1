"""The arrays of lists by keyword and blocks of neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.ranked.kernels.bounds import ROUNDED_UP, gather_repeated, heft_with
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.window_search import bit_of

# Entries of one block, blocks of one group. A list that fits into one block has none; one that fits into a group has no groups.
BLOCK = GROUP = 32


class GridArrays(NamedTuple):
    """Pieces one after the other; `table` says where each starts in every group of columns, and all starts count from there.

    A list holds the messages of the piece with one keyword, each with its heft for those whose rarest word in common it is:
    what words in common add to the similarity is at most their squared weights times that, over the length of the
    subscription. Which words are rarer is told by the lengths of their lists. The entries of a long list are in order of
    falling heft by classes, and in a class along a curve that keeps neighbours together. A run is a block, or a list without
    blocks; a group is so many blocks that follow each other in a list.
    """

    table: np.ndarray  # int64[pieces, N_COLUMNS]
    coarse: np.ndarray  # int32[], the first list with a keyword of at least i << shift
    keyword: np.ndarray  # int32[lists], rising
    entry_start: np.ndarray  # int32[lists + 1 of each piece]
    block_start: np.ndarray  # int32[lists + 1 of each piece]
    group_start: np.ndarray  # int32[lists + 1 of each piece]
    entry: np.ndarray  # int32[ENTRY · entries], run by run its columns, see below
    figure: np.ndarray  # float32[ENTRY · entries], the same memory
    block: np.ndarray  # float32[RUN · blocks], low and high corner, largest heft
    group: np.ndarray  # float32[RUN · groups], the same
    record: np.ndarray  # float64[], all of a message in one place, see below
    as_number: np.ndarray  # int64[], the same memory


# Columns of the table, after the sequence numbers.
COARSE_START, LIST_START, BORDER_START, ENTRY_START, BLOCK_START, GROUP_START = range(2, 8)
RECORD_START, SHIFT, N_COARSE = range(8, 11)
# Columns of an entry: three coordinates (`bounds.py`); heft; how much a word counts that the message has once, and
# how much more one that it repeats counts at most, all rounded up; where its record starts, from the first of the piece; bits
# of its words, and of those that it repeats.
PLACE, HEFT, ONCE, MORE, OFFSET, SIGNATURE, REPEATED, ENTRY = 0, 3, 4, 5, 6, 7, 8, 9
# Of a block or group: a box, and the largest heft.
LOW, HIGH, LARGEST, RUN = 0, 3, 6, 7
# A record: sequence number, place, length, how many words, and each word with its count in one number, rising.
X, Y, LENGTH, N_WORDS, WORDS = 1, 2, 3, 4, 5
TIMES_BITS = 31
MOST_TIMES = (1 << TIMES_BITS) - 1


# -- Put the messages of a piece into lists by keyword and blocks of neighbours.

# Of a list this share of what is left begins each class of falling heft, up to so many classes of so many entries at least; its
# borders are those of so many entries, about.
_CLASS_SHARE, _MOST_BORDERS, _LEAST_IN_CLASS, _SAMPLE = 0.25, 6, 64, 128


@kernel
def count_keywords(keyword, begin, end, count, distinct):
    """Count the occurrences of each keyword and write those there are; returns how many."""
    n = 0
    for at in range(begin, end):
        if count[keyword[at]] == 0:
            distinct[n] = keyword[at]
            n += 1
        count[keyword[at]] += 1
    return n


@kernel
def describe_words(window, first, share, signature):
    """Write of each message from place `first` on what a word counts, and how much more a repeated one; and bits of both."""
    for i in range(share.shape[1]):
        most, bits, repeated_bits = 1, 0, 0
        for at in range(window.keyword_start[first + i], window.keyword_start[first + i + 1]):
            bit = 1 << bit_of(window.keyword[at])
            bits |= bit
            if window.n_times[at] > 1:
                most = max(most, window.n_times[at])
                repeated_bits |= bit
        length = window.length[first + i]
        once = ROUNDED_UP / length if length > 0.0 else 0.0
        share[0, i], share[1, i] = once, (most - 1) * once
        signature[0, i], signature[1, i] = bits, repeated_bits


@kernel
def fill_lists(window, first, order, list_of, entry_start, count, repeated, entry_message, entry_heft):
    """Write the messages of each list in the given order, and their hefts; `repeated` is scratch."""
    window, count, repeated = borrow(window), borrow(count), borrow(repeated)
    filled = entry_start[:-1].copy()
    keyword_start, keyword = window.keyword_start, window.keyword
    for i in range(order.size):
        place = first + order[i]
        n_repeated = gather_repeated(count, window, place, repeated)
        for at in range(keyword_start[place], keyword_start[place + 1]):
            of = list_of[keyword[at]]
            entry_message[filled[of]] = order[i]
            entry_heft[filled[of]] = heft_with(count, window, place, at, repeated, n_repeated) * ROUNDED_UP
            filled[of] += 1


@kernel
def sort_by_class(entry_start, entry_message, entry_heft):
    """Put the entries of long lists in order by classes of falling heft, and leave it as it is within each."""
    border, sample = np.empty(_MOST_BORDERS, np.float32), np.empty(2 * _SAMPLE, np.float32)
    to = np.empty(_MOST_BORDERS + 2, np.int64)
    for of in range(entry_start.size - 1):
        begin, end = np.int64(entry_start[of]), np.int64(entry_start[of + 1])
        n, n_borders = end - begin, 0
        if n <= BLOCK:
            continue
        few = sample[: -(-n // max(1, n // _SAMPLE))]
        few[:] = entry_heft[begin : end : max(1, n // _SAMPLE)]
        few.sort()
        share = _CLASS_SHARE
        while n_borders < _MOST_BORDERS and min(n, few.size * _LEAST_IN_CLASS) * share >= _LEAST_IN_CLASS:
            border[n_borders] = few[few.size - 1 - int(few.size * share)]
            n_borders += 1
            share *= _CLASS_SHARE
        message, heft = entry_message[begin:end].copy(), entry_heft[begin:end].copy()
        to[:] = 0
        for i in range(n):
            to[class_of(border, n_borders, heft[i]) + 1] += 1
        for c in range(n_borders + 1):
            to[c + 1] += to[c]
        for i in range(n):
            c = class_of(border, n_borders, heft[i])
            entry_message[begin + to[c]], entry_heft[begin + to[c]] = message[i], heft[i]
            to[c] += 1


@inline_kernel
def class_of(border, n_borders, heft):
    """How many of the borders, which rise, are not exceeded."""
    n = n_borders
    while n > 0 and heft > border[n_borders - n]:
        n -= 1
    return n


@kernel
def write_records(window, first, order, record_start, record, as_number):
    """Write the records of the messages in the given order; `as_number` is the same memory."""
    keyword_start, keyword, n_times, base = window.keyword_start, window.keyword, window.n_times, window.head[BASE]
    to = 0
    for i in range(order.size):
        place = first + order[i]
        record_start[order[i]] = to
        as_number[to] = base + place
        record[to + X], record[to + Y], record[to + LENGTH] = window.x[place], window.y[place], window.length[place]
        as_number[to + N_WORDS] = keyword_start[place + 1] - keyword_start[place]
        to += WORDS
        for at in range(keyword_start[place], keyword_start[place + 1]):
            as_number[to] = (np.int64(keyword[at]) << TIMES_BITS) | n_times[at]
            to += 1


@kernel
def fill_blocks(entry_start, block_start, entry_message, entry_heft, described, entry, figure, block):
    """Write entries run by run, and the box and the largest heft of each block; `figure` is the memory of `entry`."""
    place, share, record_start, signature = described
    for of in range(entry_start.size - 1):
        n_blocks = block_start[of + 1] - block_start[of]
        for run in range(max(1, n_blocks)):
            begin = np.int64(entry_start[of]) + run * BLOCK
            end = min(begin + BLOCK, np.int64(entry_start[of + 1]))
            n = end - begin
            for at in range(begin, end):
                message, to = entry_message[at], ENTRY * begin + at - begin
                for axis in range(3):
                    figure[to + (PLACE + axis) * n] = place[axis, message]
                figure[to + HEFT * n] = entry_heft[at]
                figure[to + ONCE * n], figure[to + MORE * n] = share[0, message], share[1, message]
                entry[to + OFFSET * n] = record_start[message]
                entry[to + SIGNATURE * n], entry[to + REPEATED * n] = signature[0, message], signature[1, message]
            if n_blocks > 0:
                to = block_start[of] + run
                for axis in range(3):
                    side = figure[ENTRY * begin + (PLACE + axis) * n :][:n]
                    block[to, LOW + axis], block[to, HIGH + axis] = side.min(), side.max()
                block[to, LARGEST] = entry_heft[begin:end].max()


@kernel
def fill_groups(block_start, group_start, block, group):
    """Write the box and the largest heft of each group."""
    for of in range(group_start.size - 1):
        for to in range(group_start[of], group_start[of + 1]):
            begin = block_start[of] + (to - group_start[of]) * GROUP
            end = min(begin + GROUP, block_start[of + 1])
            for axis in range(3):
                group[to, LOW + axis] = block[begin:end, LOW + axis].min()
                group[to, HIGH + axis] = block[begin:end, HIGH + axis].max()
            group[to, LARGEST] = block[begin:end, LARGEST].max()
