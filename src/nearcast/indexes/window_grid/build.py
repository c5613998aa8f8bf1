"""Put the messages of a piece into lists by keyword and blocks of neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.window_grid.layout import BLOCK, GROUP, LENGTH, N_WORDS, TIMES_BITS, WORDS, X, Y
from nearcast.indexes.window_pieces import Piece
from nearcast.kernels.compile import kernel
from nearcast.kernels.near_bounds import CURVE_BITS, Frame, curve_positions, describe_messages
from nearcast.kernels.ranked_layouts import BASE, WindowArrays
from nearcast.kernels.window_search import sign_messages

# Shares of a piece that the classes of falling heft begin with.
_CLASS_BORDERS = (1 / 64, 1 / 16, 1 / 4)


def make_piece(window: WindowArrays, first: int, last: int, frame: Frame) -> Piece:
    """File the messages at places `first` … `last - 1`."""
    n = last - first
    place = np.empty((3, n), np.float32)
    heft = np.empty(n, np.float32)
    describe_messages(window, first, frame, place, heft)
    signature = np.empty(n, np.int64)
    sign_messages(window.keyword_start, window.keyword, first, signature)
    order = np.argsort(_classes(heft) << (3 * CURVE_BITS) | curve_positions(place), kind="stable")
    begin, end = int(window.keyword_start[first]), int(window.keyword_start[last])
    count = np.zeros(int(window.keyword[begin:end].max(initial=-1)) + 1, np.int32)
    distinct = np.empty(end - begin, np.int32)
    n_lists = count_keywords(window.keyword, begin, end, count, distinct)
    keyword = np.sort(distinct[:n_lists])
    entry_start = np.concatenate([[0], np.cumsum(count[keyword])]).astype(np.int32)
    entry_message = np.empty(end - begin, np.int32)
    fill_lists(window, first, order, keyword, entry_start, count, entry_message)
    length = np.diff(entry_start)
    n_blocks = np.where(length > BLOCK, -(-length // BLOCK), 0)
    block_start = np.concatenate([[0], np.cumsum(n_blocks)]).astype(np.int32)
    n_groups = np.where(n_blocks > GROUP, -(-n_blocks // GROUP), 0)
    group_start = np.concatenate([[0], np.cumsum(n_groups)]).astype(np.int32)
    figures = np.empty(4 * len(entry_message), np.float32)
    box, block_heft = np.empty((int(block_start[-1]), 6), np.float32), np.empty(int(block_start[-1]), np.float32)
    fill_blocks(entry_start, block_start, entry_message, place, heft, figures, box, block_heft)
    group_box, group_heft = np.empty((int(group_start[-1]), 6), np.float32), np.empty(int(group_start[-1]), np.float32)
    fill_groups(block_start, group_start, box, block_heft, group_box, group_heft)
    shift = _shift_of(keyword)
    n_coarse = (int(keyword[-1]) >> shift) + 2 if n_lists else 1
    coarse = np.searchsorted(keyword, np.arange(n_coarse, dtype=np.int64) << shift).astype(np.int32)
    record_start, record = np.empty(n, np.int32), np.empty(WORDS * n + end - begin)
    write_records(window, first, order, record_start, record, record.view(np.int64))
    lists = {"coarse": coarse, "keyword": keyword}
    borders = {"entry_start": entry_start, "block_start": block_start, "group_start": group_start}
    entries = {"offset": record_start[entry_message], "signature": signature[entry_message].astype(np.int32)}
    blocks = {"figures": figures, "block_heft": block_heft, "box": box.reshape(-1)}
    groups = {"group_heft": group_heft, "group_box": group_box.reshape(-1)}
    return Piece({**lists, **borders, **entries, **blocks, **groups, "record": record}, (shift, n_coarse))


def _classes(heft: NDArray[np.float32]) -> NDArray[np.int64]:
    """0 for the messages of the largest heft, and so on."""
    falling = np.sort(heft)[::-1]
    borders = falling[[int(share * len(falling)) for share in _CLASS_BORDERS]] if len(heft) else falling
    return np.searchsorted(-borders, -heft, side="left").astype(np.int64)


def _shift_of(keyword: NDArray[np.int32]) -> int:
    """So that each step of the coarse directory has a few lists."""
    shift = 0
    while len(keyword) and int(keyword[-1]) >> shift > max(16, len(keyword) // 4):
        shift += 1
    return shift


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
def fill_lists(window, first, order, keyword, entry_start, count, entry_message):
    """Write the messages of each list in the given order."""
    for i in range(keyword.size):
        # From here on the number of the list, from 1; then zero again.
        count[keyword[i]] = i + 1
    filled = entry_start[:-1].copy()
    keyword_start, message_keyword = window.keyword_start, window.keyword
    for i in range(order.size):
        message = order[i]
        for at in range(keyword_start[first + message], keyword_start[first + message + 1]):
            of = count[message_keyword[at]] - 1
            entry_message[filled[of]] = message
            filled[of] += 1
    for i in range(keyword.size):
        count[keyword[i]] = 0


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
def fill_blocks(entry_start, block_start, entry_message, place, heft, figures, box, block_heft):
    """Write coordinates and hefts run by run, and the box and the largest heft of each block."""
    for of in range(entry_start.size - 1):
        n_blocks = block_start[of + 1] - block_start[of]
        for run in range(max(1, n_blocks)):
            begin = np.int64(entry_start[of]) + run * BLOCK
            end = min(begin + BLOCK, np.int64(entry_start[of + 1]))
            n = end - begin
            for at in range(begin, end):
                message, to = entry_message[at], 4 * begin + at - begin
                for axis in range(3):
                    figures[to + axis * n] = place[axis, message]
                figures[to + 3 * n] = heft[message]
            if n_blocks > 0:
                block = block_start[of] + run
                for axis in range(3):
                    side = figures[4 * begin + axis * n : 4 * begin + axis * n + n]
                    box[block, axis], box[block, axis + 3] = side.min(), side.max()
                block_heft[block] = figures[4 * begin + 3 * n : 4 * end].max()


@kernel
def fill_groups(block_start, group_start, box, block_heft, group_box, group_heft):
    """Write the box and the largest heft of each group."""
    for of in range(group_start.size - 1):
        for group in range(group_start[of], group_start[of + 1]):
            begin = block_start[of] + (group - group_start[of]) * GROUP
            end = min(begin + GROUP, block_start[of + 1])
            for axis in range(3):
                group_box[group, axis] = box[begin:end, axis].min()
                group_box[group, axis + 3] = box[begin:end, axis + 3].max()
            group_heft[group] = block_heft[begin:end].max()
