"""Scan lists of messages for what lies in the one of two boxes and not in the other, sixteen or four points at once."""

from __future__ import annotations

import numpy as np

from nearcast.indexes.frequency_grid.keys import narrow
from nearcast.indexes.moving_grid.layout import (
    MASK,
    MASKS,
    MESSAGE_BLOCK,
    MESSAGES,
    NEEDS_WORDS,
    NO_ROOM,
    PLACE_SHIFT,
    RECORD,
    SIZE_MASK,
    WORDS,
)
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import (
    append_four,
    append_sixteen,
    four_masks,
    four_places,
    lowest_lane,
    prefetch,
    sixteen_masks,
    sixteen_places,
)

_BOUNDS = 32
_FOUR, _SIXTEEN, _WITH_BORDER = 15, (1 << 16) - 1, (1 << 32) - 1
_ROWS = 4 * MESSAGE_BLOCK


@inline_kernel
def holds(x0, y0, x1, y1, x, y):
    return x0 <= x and x <= x1 and y0 <= y and y <= y1


@inline_kernel
def write_bounds(bounds, first, ax0, ay0, ax1, ay1, bx0, by0, bx1, by1):
    """Two boxes as `four_places` reads them."""
    for lane in range(4):
        bounds[first + lane], bounds[first + 4 + lane] = narrow(ax0), narrow(ay0)
        bounds[first + 8 + lane], bounds[first + 12 + lane] = narrow(bx0), narrow(by0)
        bounds[first + 16 + lane], bounds[first + 20 + lane] = narrow(ax1), narrow(ay1)
        bounds[first + 24 + lane], bounds[first + 28 + lane] = narrow(bx1), narrow(by1)


@kernel
def settle_borders(pool, at, lanes, x, y, a, b):
    """The lanes of `four_places` with points on rounded borders decided: bits 0 to 3 in the first box, 4 to 7 in the second."""
    unsure = (lanes ^ (lanes >> 8)) & 255
    lanes &= 255
    unsure = (unsure | (unsure >> 4)) & _FOUR
    while unsure != 0:
        lane = lowest_lane(unsure)
        unsure &= unsure - 1
        message = pool[at + MESSAGES + lane]
        lanes &= ~(17 << lane)
        if holds(a[0], a[1], a[2], a[3], x[message], y[message]):
            lanes |= 1 << lane
        if holds(b[0], b[1], b[2], b[3], x[message], y[message]):
            lanes |= 16 << lane
    return lanes


@kernel
def settle_rows(pool, place, at, bounds, x, y, a, b):
    """What of four blocks lies only in the first box, and only in the second, with points on rounded borders decided."""
    only_old, only_new = np.int64(0), np.int64(0)
    for row in range(4):
        block = at + row * MESSAGE_BLOCK
        lanes = settle_borders(pool, block, four_places(place, block, bounds, 0), x, y, a, b)
        only_old |= (lanes & ~(lanes >> 4) & _FOUR) << (4 * row)
        only_new |= ((lanes >> 4) & ~lanes & _FOUR) << (4 * row)
    return only_old, only_new


@kernel
def scan_lists(
    pool, lists, list_end, record, slots, first, n, old, new, live, words, left, left_marks, entered, entered_marks, room
):
    """Write what the clauses of a group have in their old box only (left) and in their new box only (entered).

    Dead messages are among them, and some without the keywords. What belongs to clause j ends at its marks. Returns the
    messages tested, or NO_ROOM.
    """
    mx, my = live.x0, live.y0
    place, bounds = pool.view(np.float32), np.empty(_BOUNDS, np.float32)
    to_left, to_entered, n_tested, at_list = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for j in range(n):
        ax0, ay0, ax1, ay1 = old[4 * j], old[4 * j + 1], old[4 * j + 2], old[4 * j + 3]
        bx0, by0, bx1, by1 = new[4 * j], new[4 * j + 1], new[4 * j + 2], new[4 * j + 3]
        write_bounds(bounds, 0, ax0, ay0, ax1, ay1, bx0, by0, bx1, by1)
        asked = np.int64(record[RECORD * np.int64(slots[first + j]) + MASK])
        mask, needs_words = asked & ~NEEDS_WORDS, asked & NEEDS_WORDS != 0
        begin_left, begin_entered = to_left, to_entered
        for k in range(at_list, list_end[j]):
            value = lists[k]
            size = value & SIZE_MASK
            n_tested += size
            if max(to_left, to_entered) + size > room:
                return np.int64(NO_ROOM)
            at = (value >> PLACE_SHIFT) * MESSAGE_BLOCK
            # Four full blocks at once; the others one by one.
            for block in range(at, at + (size >> 4) * _ROWS, _ROWS):
                lanes = sixteen_places(place, block, bounds, 0)
                only_old, only_new = lanes & ~(lanes >> 16) & _SIXTEEN, (lanes >> 16) & ~lanes & _SIXTEEN
                if lanes & _WITH_BORDER != (lanes >> 32) & _WITH_BORDER:
                    only_old, only_new = settle_rows(
                        pool, place, block, bounds, mx, my, (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1)
                    )
                if only_old | only_new == 0:
                    continue
                if mask != 0:
                    fitting = sixteen_masks(pool, block + MASKS, mask)
                    only_old, only_new = only_old & fitting, only_new & fitting
                to_left = append_sixteen(pool, block + MESSAGES, only_old, left, to_left)
                to_entered = append_sixteen(pool, block + MESSAGES, only_new, entered, to_entered)
            at += (size >> 4) * _ROWS
            for block in range(at, at + (((size & 15) + 3) >> 2) * MESSAGE_BLOCK, MESSAGE_BLOCK):
                lanes = four_places(place, block, bounds, 0)
                if (lanes ^ (lanes >> 8)) & 255 != 0:
                    lanes = settle_borders(pool, block, lanes, mx, my, (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1))
                only_old, only_new = lanes & ~(lanes >> 4) & _FOUR, (lanes >> 4) & ~lanes & _FOUR
                if only_old | only_new == 0:
                    continue
                if mask != 0:
                    fitting = four_masks(pool, block + MASKS, mask)
                    only_old, only_new = only_old & fitting, only_new & fitting
                to_left = append_four(pool, block + MESSAGES, only_old, left, to_left)
                to_entered = append_four(pool, block + MESSAGES, only_new, entered, to_entered)
        at_list = list_end[j]
        if needs_words:
            for k in range(begin_left, to_left):
                prefetch(words, WORDS * np.int64(left[k]))
            for k in range(begin_entered, to_entered):
                prefetch(words, WORDS * np.int64(entered[k]))
        left_marks[j], entered_marks[j] = to_left, to_entered
    return n_tested
