"""Find the candidates of a move: scan lists of messages for points in only one of two boxes, then filter them by mask and
keywords. The scan tests eight points at once.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import append_eight, append_lanes, eight_points, lowest_lane, prefetch
from nearcast.kernels.simd_plain import LANES
from nearcast.moving.moving_grid.kernels.keys import cell_coordinate, cell_of_key, fine_coordinate, has_others, packed_corners
from nearcast.moving.moving_grid.kernels.lists import blocks_of
from nearcast.moving.moving_grid.kernels.range_messages import find_range_messages
from nearcast.moving.moving_grid.kernels.simd_alive import alive_lanes, matching_lanes
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    BLOCK_SHIFT,
    KEYWORD_LINE,
    MASK,
    MESSAGE_BITS,
    MESSAGES,
    NEEDS_KEYWORDS,
    NO_CAPACITY,
    RECORD,
    SIZE_MASK,
)

_EIGHT, _BOTH = 255, 65535


# --- scan lists of messages --------------------------------------------------------------------------------------------


@inline_kernel
def holds(x0, y0, x1, y1, x, y):
    return x0 <= x and x <= x1 and y0 <= y and y <= y1


@kernel
def scan_exactly(pool, value, low, high, x, y, a, b, left, to_left, entered, to_entered):
    """As the loop over blocks of `scan_lists`, but points on rounded borders are tested against the exact boxes `a` and `b`."""
    at = (value >> BLOCK_SHIFT) * BLOCK
    for block in range(at, at + blocks_of(value, MESSAGE_BITS) * BLOCK, BLOCK):
        lanes = eight_points(pool, block, low, high)
        unsure = (lanes ^ (lanes >> 16)) & _BOTH
        unsure = (unsure | (unsure >> 8)) & _EIGHT
        while unsure != 0:
            lane = lowest_lane(unsure)
            unsure &= unsure - 1
            message = pool[block + MESSAGES + lane]
            lanes &= ~(257 << lane)
            if holds(a[0], a[1], a[2], a[3], x[message], y[message]):
                lanes |= 1 << lane
            if holds(b[0], b[1], b[2], b[3], x[message], y[message]):
                lanes |= 256 << lane
        to_left = append_eight(pool, block + MESSAGES, lanes & ~(lanes >> 8) & _EIGHT, left, to_left)
        to_entered = append_eight(pool, block + MESSAGES, (lanes >> 8) & ~lanes & _EIGHT, entered, to_entered)
    return to_left, to_entered


@kernel
def scan_lists(pool, frame, key, lists, list_end, n, old, new, live, left_runs, entered_runs, capacity):
    """Write to `pending`, for each clause of a group, the points in its old box only (left) and in its new box only (entered).

    They include dead messages, and messages without the keywords. Returns the messages tested, or NO_CAPACITY.
    """
    pool, frame, key, lists = borrow(pool), borrow(frame), borrow(key), borrow(lists)
    list_end, old, new, live = borrow(list_end), borrow(old), borrow(new), borrow(live)
    left_runs, entered_runs = borrow(left_runs), borrow(entered_runs)
    mx, my, left, entered = live.x0, live.y0, left_runs.pending, entered_runs.pending
    to_left, to_entered, n_tested, at_list = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for j in range(n):
        ax0, ay0, ax1, ay1 = old[4 * j], old[4 * j + 1], old[4 * j + 2], old[4 * j + 3]
        bx0, by0, bx1, by1 = new[4 * j], new[4 * j + 1], new[4 * j + 2], new[4 * j + 3]
        fine_ax0, fine_ay0 = fine_coordinate(ax0, frame, 0), fine_coordinate(ay0, frame, 3)
        fine_ax1, fine_ay1 = fine_coordinate(ax1, frame, 0), fine_coordinate(ay1, frame, 3)
        fine_bx0, fine_by0 = fine_coordinate(bx0, frame, 0), fine_coordinate(by0, frame, 3)
        fine_bx1, fine_by1 = fine_coordinate(bx1, frame, 0), fine_coordinate(by1, frame, 3)
        for k in range(at_list, list_end[j]):
            value = lists[k]
            size = value & SIZE_MASK
            n_tested += size
            if max(to_left, to_entered) + size > capacity:
                return np.int64(NO_CAPACITY)
            level, column, row = cell_of_key(key[k])
            low = packed_corners(
                cell_coordinate(fine_ax0, column, level),
                cell_coordinate(fine_ay0, row, level),
                cell_coordinate(fine_bx0, column, level),
                cell_coordinate(fine_by0, row, level),
            )
            high = packed_corners(
                cell_coordinate(fine_ax1, column, level),
                cell_coordinate(fine_ay1, row, level),
                cell_coordinate(fine_bx1, column, level),
                cell_coordinate(fine_by1, row, level),
            )
            at, unsure, before_left, before_entered = (value >> BLOCK_SHIFT) * BLOCK, np.int64(0), to_left, to_entered
            for block in range(at, at + blocks_of(value, MESSAGE_BITS) * BLOCK, BLOCK):
                lanes = eight_points(pool, block, low, high)
                unsure |= lanes ^ (lanes >> 16)
                only_old, only_new = lanes & ~(lanes >> 8) & _EIGHT, (lanes >> 8) & ~lanes & _EIGHT
                to_left = append_eight(pool, block + MESSAGES, only_old, left, to_left)
                to_entered = append_eight(pool, block + MESSAGES, only_new, entered, to_entered)
            if unsure & _BOTH != 0:
                # Rare, and therefore done a second time: a call in the loop would empty the registers.
                a, b = (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1)
                to_left, to_entered = scan_exactly(
                    pool, value, low, high, mx, my, a, b, left, before_left, entered, before_entered
                )
        at_list = list_end[j]
        left_runs.pending_end[j], entered_runs.pending_end[j] = to_left, to_entered
    return n_tested


# --- filter what the scans found ---------------------------------------------------------------------------------------


@kernel
def filter_by_mask(record, slots, first, n, alive_bits, masks, lines, runs, n_out):
    """Keep the pending messages that are alive and pass the mask of their clause; returns the new end of the output.

    If the mask does not decide, they go to `unsure` up to `unsure_end[j]`, and their keyword lines are prefetched.
    """
    record, slots, alive_bits, masks = borrow(record), borrow(slots), borrow(alive_bits), borrow(masks)
    lines, runs = borrow(lines), borrow(runs)
    out, begin, end, pending, pending_end, unsure = (
        runs.message,
        runs.begin,
        runs.end,
        runs.pending,
        runs.pending_end,
        runs.unsure,
    )
    at, n_unsure = np.int64(0), np.int64(0)
    for j in range(n):
        required = np.int64(record[RECORD * np.int64(slots[first + j]) + MASK])
        mask, before = required & ~NEEDS_KEYWORDS, n_unsure
        begin[first + j] = n_out
        for k in range(at, pending_end[j], LANES):
            n_lanes = min(LANES, pending_end[j] - k)
            if required == 0:
                n_out = append_lanes(pending, k, alive_lanes(pending, k, n_lanes, alive_bits), out, n_out)
                continue
            lanes = matching_lanes(pending, k, n_lanes, alive_bits, masks, mask)
            if required & NEEDS_KEYWORDS == 0:
                n_out = append_lanes(pending, k, lanes, out, n_out)
            else:
                n_unsure = append_lanes(pending, k, lanes, unsure, n_unsure)
        for k in range(before, n_unsure):
            prefetch(lines, KEYWORD_LINE * np.int64(unsure[k]))
        end[first + j], runs.unsure_end[j] = n_out, n_unsure
        at = pending_end[j]
    return n_out


@kernel
def filter_by_keywords(record, slots, first, n, clause_keywords, messages, lines, runs, n_out):
    """Keep the unsure messages that have the clause's keywords; returns the new end of the output."""
    record, slots, clause_keywords, messages = borrow(record), borrow(slots), borrow(clause_keywords), borrow(messages)
    lines, runs = borrow(lines), borrow(runs)
    keyword_start, keyword = clause_keywords
    keyword_first, n_keywords, member = messages
    out, begin, end, unsure = runs.message, runs.begin, runs.end, runs.unsure
    at = np.int64(0)
    for j in range(n):
        clause = slots[first + j]
        record_at = RECORD * np.int64(clause)
        if record[record_at + MASK] & NEEDS_KEYWORDS != 0:
            begin[first + j] = n_out
            for k in range(at, runs.unsure_end[j]):
                m = unsure[k]
                line_at = KEYWORD_LINE * np.int64(m)
                if lines[line_at] < KEYWORD_LINE:
                    has_all = has_others(record, record_at, keyword_start, keyword, clause, lines, line_at + 1, lines[line_at])
                else:
                    has_all = has_others(
                        record, record_at, keyword_start, keyword, clause, member, keyword_first[m], n_keywords[m]
                    )
                if has_all:
                    out[n_out] = m
                    n_out += 1
            end[first + j] = n_out
        at = runs.unsure_end[j]
    return n_out


@kernel
def add_range_messages(grid, frame, clauses, live, record, slots, first, n, has_ranges, old, new, runs, n_out, capacity):
    """Append the range messages that meet `new` and not `old` to the run of each clause, which is copied to the end first.

    Returns the new end, or NO_CAPACITY, and the messages tested.
    """
    out, begin, end, n_tested = runs.message, runs.begin, runs.end, 0
    for j in range(n):
        i = first + j
        if has_ranges[j] == 0:
            continue
        size = end[i] - begin[i]
        if n_out + size > capacity:
            return np.int64(NO_CAPACITY), n_tested
        for k in range(size):
            out[n_out + k] = out[begin[i] + k]
        box = (new[4 * j], new[4 * j + 1], new[4 * j + 2], new[4 * j + 3])
        excluded = (old[4 * j], old[4 * j + 1], old[4 * j + 2], old[4 * j + 3])
        begin[i] = n_out
        n_out, n_more = find_range_messages(
            grid, frame, clauses, live, record, slots[i], box, excluded, out, n_out + size, capacity
        )
        if n_out == NO_CAPACITY:
            return np.int64(NO_CAPACITY), n_tested
        end[i] = n_out
        n_tested += n_more
    return np.int64(n_out), n_tested
