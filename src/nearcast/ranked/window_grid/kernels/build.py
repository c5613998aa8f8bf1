"""Build a segment: the arrays of lists by keyword and blocks of neighbours, and how they are filled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.ranked.kernels.bounds import ROUNDED_UP, gather_repeated, message_weight_at
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.window_search import bit_of

# Entries of a block, blocks of a group. A list that fits into one block has none; one that fits into a group has no groups.
BLOCK = GROUP = 32


class WindowGridArrays(NamedTuple):
    """Segments, one after the other; `table` says where each starts in every group of columns, and all starts count from there.

    A list holds the messages of the segment with one keyword, each with its weight for subscriptions whose rarest word in
    common it is: common words add at most their squared weights times that, over the length of the subscription, to the
    similarity. The lengths of lists say which words are rarer. The entries of a long list are in classes of falling weight, and
    within a class along a curve that keeps neighbours together. A run is a block, or a list without blocks; a group is GROUP
    consecutive blocks of a list.
    """

    table: np.ndarray  # int64[segments, N_COLUMNS]
    coarse: np.ndarray  # int32[], the first list with a keyword of at least i << shift
    keyword: np.ndarray  # int32[lists], rising
    entry_start: np.ndarray  # int32[lists + 1 of each segment]
    block_start: np.ndarray  # int32[lists + 1 of each segment]
    group_start: np.ndarray  # int32[lists + 1 of each segment]
    entry: np.ndarray  # int32[ENTRY · entries], run by run its columns, see below
    figure: np.ndarray  # float32[ENTRY · entries], the same memory
    block: np.ndarray  # float32[RUN · blocks], low and high corner, largest weight
    group: np.ndarray  # float32[RUN · groups], the same
    record: np.ndarray  # float64[], all of a message in one place, see below
    as_number: np.ndarray  # int64[], the same memory


# Columns of the table, after the sequence numbers.
COARSE_START, LIST_START, BORDER_START, ENTRY_START, BLOCK_START, GROUP_START = range(2, 8)
RECORD_START, SHIFT, N_COARSE = range(8, 11)
# Columns of an entry: three coordinates (`bounds.py`); weight; what a word counts that the message has once, and what a
# repeated word counts more at most, all rounded up; the start of its record, from the first of the segment; bits of its words,
# and of those that it repeats.
LOCATION, MESSAGE_WEIGHT, ONCE, MORE, OFFSET, SIGNATURE, REPEATED, ENTRY = 0, 3, 4, 5, 6, 7, 8, 9
# Of a block or group: a box, and the largest weight.
LOW, HIGH, LARGEST, RUN = 0, 3, 6, 7
# A record: sequence number, location, length, number of words, then each word with its count in one number, ascending.
X, Y, LENGTH, N_WORDS, WORDS = 1, 2, 3, 4, 5
TIMES_BITS = 31
MOST_TIMES = (1 << TIMES_BITS) - 1


# --- filling -----------------------------------------------------------------------------------------------------

# Each class of falling weight begins at this share of the rest of a list, for at most _MAX_EDGES + 1 classes of at least
# _LEAST_IN_CLASS entries; edges are taken from a sample of about this many entries.
_CLASS_SHARE, _MAX_EDGES, _LEAST_IN_CLASS, _SAMPLE = 0.25, 6, 64, 128


@kernel
def count_keywords(keyword, begin, end, count, distinct):
    """Count the occurrences of each keyword and write the distinct keywords; returns their number."""
    n = 0
    for at in range(begin, end):
        if count[keyword[at]] == 0:
            distinct[n] = keyword[at]
            n += 1
        count[keyword[at]] += 1
    return n


@kernel
def describe_words(window, first, share, signature):
    """Write for each message from position `first` on what a word counts, what a repeated one counts more, and bits of both."""
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
def fill_lists(window, first, order, list_of, entry_start, count, repeated, entry_message, entry_weight):
    """Write the messages of each list in the given order, and their weights; `repeated` is scratch."""
    window, count, repeated = borrow(window), borrow(count), borrow(repeated)
    filled = entry_start[:-1].copy()
    keyword_start, keyword = window.keyword_start, window.keyword
    for i in range(order.size):
        position = first + order[i]
        n_repeated = gather_repeated(count, window, position, repeated)
        for at in range(keyword_start[position], keyword_start[position + 1]):
            list_id = list_of[keyword[at]]
            entry_message[filled[list_id]] = order[i]
            entry_weight[filled[list_id]] = message_weight_at(count, window, position, at, repeated, n_repeated) * ROUNDED_UP
            filled[list_id] += 1


@kernel
def sort_by_class(entry_start, entry_message, entry_weight):
    """Sort the entries of long lists into classes of falling weight; the order within a class stays."""
    edge, sample = np.empty(_MAX_EDGES, np.float32), np.empty(2 * _SAMPLE, np.float32)
    to = np.empty(_MAX_EDGES + 2, np.int64)
    for list_id in range(entry_start.size - 1):
        begin, end = np.int64(entry_start[list_id]), np.int64(entry_start[list_id + 1])
        n, n_edges = end - begin, 0
        if n <= BLOCK:
            continue
        few = sample[: -(-n // max(1, n // _SAMPLE))]
        few[:] = entry_weight[begin : end : max(1, n // _SAMPLE)]
        few.sort()
        share = _CLASS_SHARE
        while n_edges < _MAX_EDGES and min(n, few.size * _LEAST_IN_CLASS) * share >= _LEAST_IN_CLASS:
            edge[n_edges] = few[few.size - 1 - int(few.size * share)]
            n_edges += 1
            share *= _CLASS_SHARE
        message, message_weight = entry_message[begin:end].copy(), entry_weight[begin:end].copy()
        to[:] = 0
        for i in range(n):
            to[class_of(edge, n_edges, message_weight[i]) + 1] += 1
        for c in range(n_edges + 1):
            to[c + 1] += to[c]
        for i in range(n):
            c = class_of(edge, n_edges, message_weight[i])
            entry_message[begin + to[c]], entry_weight[begin + to[c]] = message[i], message_weight[i]
            to[c] += 1


@inline_kernel
def class_of(edge, n_edges, message_weight):
    """The number of edges, which ascend, that are not exceeded."""
    n = n_edges
    while n > 0 and message_weight > edge[n_edges - n]:
        n -= 1
    return n


@kernel
def write_records(window, first, order, record_start, record, as_number):
    """Write the records of the messages in the given order; `as_number` is the same memory."""
    keyword_start, keyword, n_times, base = window.keyword_start, window.keyword, window.n_times, window.head[BASE]
    to = 0
    for i in range(order.size):
        position = first + order[i]
        record_start[order[i]] = to
        as_number[to] = base + position
        record[to + X], record[to + Y], record[to + LENGTH] = window.x[position], window.y[position], window.length[position]
        as_number[to + N_WORDS] = keyword_start[position + 1] - keyword_start[position]
        to += WORDS
        for at in range(keyword_start[position], keyword_start[position + 1]):
            as_number[to] = (np.int64(keyword[at]) << TIMES_BITS) | n_times[at]
            to += 1


@kernel
def fill_blocks(entry_start, block_start, entry_message, entry_weight, described, entry, figure, block):
    """Write entries run by run, and the box and largest weight of each block; `figure` is the memory of `entry`."""
    location, share, record_start, signature = described
    for list_id in range(entry_start.size - 1):
        n_blocks = block_start[list_id + 1] - block_start[list_id]
        for run in range(max(1, n_blocks)):
            begin = np.int64(entry_start[list_id]) + run * BLOCK
            end = min(begin + BLOCK, np.int64(entry_start[list_id + 1]))
            n = end - begin
            for at in range(begin, end):
                message, to = entry_message[at], ENTRY * begin + at - begin
                for axis in range(3):
                    figure[to + (LOCATION + axis) * n] = location[axis, message]
                figure[to + MESSAGE_WEIGHT * n] = entry_weight[at]
                figure[to + ONCE * n], figure[to + MORE * n] = share[0, message], share[1, message]
                entry[to + OFFSET * n] = record_start[message]
                entry[to + SIGNATURE * n], entry[to + REPEATED * n] = signature[0, message], signature[1, message]
            if n_blocks > 0:
                to = block_start[list_id] + run
                for axis in range(3):
                    axis_values = figure[ENTRY * begin + (LOCATION + axis) * n :][:n]
                    block[to, LOW + axis], block[to, HIGH + axis] = axis_values.min(), axis_values.max()
                block[to, LARGEST] = entry_weight[begin:end].max()


@kernel
def fill_groups(block_start, group_start, block, group):
    """Write the box and the largest weight of each group."""
    for list_id in range(group_start.size - 1):
        for to in range(group_start[list_id], group_start[list_id + 1]):
            begin = block_start[list_id] + (to - group_start[list_id]) * GROUP
            end = min(begin + GROUP, block_start[list_id + 1])
            for axis in range(3):
                group[to, LOW + axis] = block[begin:end, LOW + axis].min()
                group[to, HIGH + axis] = block[begin:end, HIGH + axis].max()
            group[to, LARGEST] = block[begin:end, LARGEST].max()
