"""Scan lists of messages for what lies in the one of two boxes and not in the other, eight points at once."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import append_eight, append_lanes, eight_points, lowest_lane, prefetch
from nearcast.kernels.simd_plain import LANES
from nearcast.moving.moving_grid.kernels.areas import look_for_areas
from nearcast.moving.moving_grid.kernels.keys import cell_of_key, fine_place, has_others, packed_corners, place_in_cell
from nearcast.moving.moving_grid.kernels.lists import blocks_of
from nearcast.moving.moving_grid.kernels.simd_alive import alive_lanes, matching_lanes
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    MASK,
    MESSAGE_BITS,
    MESSAGES,
    NEEDS_WORDS,
    NO_ROOM,
    PLACE_SHIFT,
    RECORD,
    SIZE_MASK,
    WORDS,
)

_EIGHT, _BOTH = 255, 65535


# --- scan lists of messages --------------------------------------------------------------------------------------------


@inline_kernel
def holds(x0, y0, x1, y1, x, y):
    return x0 <= x and x <= x1 and y0 <= y and y <= y1


@kernel
def scan_exactly(pool, value, low, high, x, y, a, b, left, to_left, entered, to_entered):
    """As the loop over blocks of `scan_lists`, with points on rounded borders decided by the boxes `a` and `b` themselves."""
    at = (value >> PLACE_SHIFT) * BLOCK
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
def scan_lists(pool, frame, key, lists, list_end, n, old, new, live, left_runs, entered_runs, room):
    """Write what the clauses of a group have in their old box only (left) and in their new box only (entered), as pending.

    Dead messages are among them, and some without the keywords. Returns the messages tested, or NO_ROOM.
    """
    pool, frame, key, lists = borrow(pool), borrow(frame), borrow(key), borrow(lists)
    list_end, old, new, live = borrow(list_end), borrow(old), borrow(new), borrow(live)
    left_runs, entered_runs = borrow(left_runs), borrow(entered_runs)
    mx, my, left, entered = live.x0, live.y0, left_runs.pending, entered_runs.pending
    to_left, to_entered, n_tested, at_list = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for j in range(n):
        ax0, ay0, ax1, ay1 = old[4 * j], old[4 * j + 1], old[4 * j + 2], old[4 * j + 3]
        bx0, by0, bx1, by1 = new[4 * j], new[4 * j + 1], new[4 * j + 2], new[4 * j + 3]
        place_ax0, place_ay0 = fine_place(ax0, frame, 0), fine_place(ay0, frame, 3)
        place_ax1, place_ay1 = fine_place(ax1, frame, 0), fine_place(ay1, frame, 3)
        place_bx0, place_by0 = fine_place(bx0, frame, 0), fine_place(by0, frame, 3)
        place_bx1, place_by1 = fine_place(bx1, frame, 0), fine_place(by1, frame, 3)
        for k in range(at_list, list_end[j]):
            value = lists[k]
            size = value & SIZE_MASK
            n_tested += size
            if max(to_left, to_entered) + size > room:
                return np.int64(NO_ROOM)
            level, column, row = cell_of_key(key[k])
            low = packed_corners(
                place_in_cell(place_ax0, column, level),
                place_in_cell(place_ay0, row, level),
                place_in_cell(place_bx0, column, level),
                place_in_cell(place_by0, row, level),
            )
            high = packed_corners(
                place_in_cell(place_ax1, column, level),
                place_in_cell(place_ay1, row, level),
                place_in_cell(place_bx1, column, level),
                place_in_cell(place_by1, row, level),
            )
            at, unsure, before_left, before_entered = (value >> PLACE_SHIFT) * BLOCK, np.int64(0), to_left, to_entered
            for block in range(at, at + blocks_of(value, MESSAGE_BITS) * BLOCK, BLOCK):
                lanes = eight_points(pool, block, low, high)
                unsure |= lanes ^ (lanes >> 16)
                only_old, only_new = lanes & ~(lanes >> 8) & _EIGHT, (lanes >> 8) & ~lanes & _EIGHT
                to_left = append_eight(pool, block + MESSAGES, only_old, left, to_left)
                to_entered = append_eight(pool, block + MESSAGES, only_new, entered, to_entered)
            if unsure & _BOTH != 0:
                # Rare, and done again: a call in the loop would empty the registers.
                a, b = (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1)
                to_left, to_entered = scan_exactly(
                    pool, value, low, high, mx, my, a, b, left, before_left, entered, before_entered
                )
        at_list = list_end[j]
        left_runs.mark[j], entered_runs.mark[j] = to_left, to_entered
    return n_tested


# --- filter what the scans found ---------------------------------------------------------------------------------------


@kernel
def keep_fitting(record, slots, first, n, alive_bits, masks, words, runs, n_out):
    """Of what was found for a group of clauses, write what lives and has the keywords, as far as masks tell; the new end.

    Where words have to be looked at it is kept apart, up to `kept[j]`, and its words are asked for.
    """
    record, slots, alive_bits, masks = borrow(record), borrow(slots), borrow(alive_bits), borrow(masks)
    words, runs = borrow(words), borrow(runs)
    out, begin, end, found, mark, unsure = runs.message, runs.begin, runs.end, runs.pending, runs.mark, runs.unsure
    at, n_unsure = np.int64(0), np.int64(0)
    for j in range(n):
        asked = np.int64(record[RECORD * np.int64(slots[first + j]) + MASK])
        mask, before = asked & ~NEEDS_WORDS, n_unsure
        begin[first + j] = n_out
        for k in range(at, mark[j], LANES):
            n_here = min(LANES, mark[j] - k)
            if asked == 0:
                n_out = append_lanes(found, k, alive_lanes(found, k, n_here, alive_bits), out, n_out)
                continue
            lanes = matching_lanes(found, k, n_here, alive_bits, masks, mask)
            if asked & NEEDS_WORDS == 0:
                n_out = append_lanes(found, k, lanes, out, n_out)
            else:
                n_unsure = append_lanes(found, k, lanes, unsure, n_unsure)
        for k in range(before, n_unsure):
            prefetch(words, WORDS * np.int64(unsure[k]))
        end[first + j], runs.kept[j] = n_out, n_unsure
        at = mark[j]
    return n_out


@kernel
def check_words(record, slots, first, n, clause_words, messages, words, runs, n_out):
    """Write what was kept where words have to be looked at, and has them; the new end."""
    record, slots, clause_words, messages = borrow(record), borrow(slots), borrow(clause_words), borrow(messages)
    words, runs = borrow(words), borrow(runs)
    keyword_start, keyword = clause_words
    keyword_first, n_keywords, member = messages
    out, begin, end, unsure = runs.message, runs.begin, runs.end, runs.unsure
    at = np.int64(0)
    for j in range(n):
        clause = slots[first + j]
        place = RECORD * np.int64(clause)
        if record[place + MASK] & NEEDS_WORDS != 0:
            begin[first + j] = n_out
            for k in range(at, runs.kept[j]):
                m = unsure[k]
                there = WORDS * np.int64(m)
                if words[there] < WORDS:
                    has_all = has_others(record, place, keyword_start, keyword, clause, words, there + 1, words[there])
                else:
                    has_all = has_others(record, place, keyword_start, keyword, clause, member, keyword_first[m], n_keywords[m])
                if has_all:
                    out[n_out] = m
                    n_out += 1
            end[first + j] = n_out
        at = runs.kept[j]
    return n_out


@kernel
def add_areas(side, frame, clauses, live, record, slots, first, n, has_areas, old, new, runs, n_out, room):
    """Add the messages with an area that meet `new` and not `old` to the runs of clauses, copied behind.

    Returns the new end, or NO_ROOM, and the messages tested.
    """
    out, begin, end, n_tested = runs.message, runs.begin, runs.end, 0
    for j in range(n):
        i = first + j
        if has_areas[j] == 0:
            continue
        size = end[i] - begin[i]
        if n_out + size > room:
            return np.int64(NO_ROOM), n_tested
        for k in range(size):
            out[n_out + k] = out[begin[i] + k]
        box = (new[4 * j], new[4 * j + 1], new[4 * j + 2], new[4 * j + 3])
        besides = (old[4 * j], old[4 * j + 1], old[4 * j + 2], old[4 * j + 3])
        begin[i] = n_out
        n_out, n_more = look_for_areas(side, frame, clauses, live, record, slots[i], box, besides, out, n_out + size, room)
        if n_out == NO_ROOM:
            return np.int64(NO_ROOM), n_tested
        end[i] = n_out
        n_tested += n_more
    return np.int64(n_out), n_tested
