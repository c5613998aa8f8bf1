"""Dyadic cells of a plane: the one clamped column function, cell codes, and the cheapest cover of a box by cells.

A cell of depth d is a column and a row among 2^d each. Columns come from one function that never decreases, with the outermost
columns open to infinity, so two intervals with a common value always share a column, wherever they lie. Paper: silent.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel

DEEPEST = 15  # a code of this depth still fits 31 bits

# Prior counts: how many messages the general opinion weighs against what was counted.
PRIOR_PLACES = 16.0
PRIOR_AREA = 16.0

# Fields of a frame of the search for the cheapest cover.
_DEPTH, _COLUMN, _ROW, _QUARTER, _MARK, _ALL_FIRST, _ALL_LAST, _OWN_FIRST, _OWN_LAST = range(9)
FRAME_FIELDS = 9


@inline_kernel
def column_of(value, low, high, scale, n_columns):
    """The column of a coordinate among `n_columns` between `low` and `high`; beyond them the outermost ones.

    `scale` is `n_columns` over half of the width.
    """
    if value <= low:
        return 0
    if value >= high:
        return n_columns - 1
    # Halved first: the difference of two finite numbers may not be finite.
    return min(int((value * 0.5 - low * 0.5) * scale), n_columns - 1)


@inline_kernel
def interleave_bits(number):
    """Move bit i of a number below 2^15 to bit 2i."""
    number = (number | (number << 8)) & 0x00FF00FF
    number = (number | (number << 4)) & 0x0F0F0F0F
    number = (number | (number << 2)) & 0x33333333
    return (number | (number << 1)) & 0x55555555


@inline_kernel
def cell_code(depth, column, row):
    """A number that names the cell: a leading one, then the interleaved bits. Two bits less name the parent."""
    return (1 << (2 * depth)) | interleave_bits(column) | (interleave_bits(row) << 1)


@inline_kernel
def deinterleave_bits(number):
    """Move bit 2i to bit i and forget the odd ones: undoes `interleave_bits`."""
    number = number & 0x55555555
    number = (number | (number >> 1)) & 0x33333333
    number = (number | (number >> 2)) & 0x0F0F0F0F
    number = (number | (number >> 4)) & 0x00FF00FF
    return (number | (number >> 8)) & 0x0000FFFF


@inline_kernel
def depth_of_code(code):
    depth = 0
    while (code >> (2 * depth)) > 1:
        depth += 1
    return depth


@inline_kernel
def column_of_code(code):
    return deinterleave_bits(code - (1 << (2 * depth_of_code(code))))


@inline_kernel
def row_of_code(code):
    return deinterleave_bits((code - (1 << (2 * depth_of_code(code)))) >> 1)


@inline_kernel
def first_not_below(values, wanted, first, last):
    """The first position of a sorted run whose value is at least `wanted`."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    return first


@inline_kernel
def share_in_cell(depth, n_own, n_own_total, n_all, n_all_total):
    """The share of a keyword's messages that lie in a cell, from counts of its own and of all messages.

    Few own counts are filled up with the distribution of all messages, few of those with the area.
    """
    everyone = (n_all + PRIOR_AREA / (1 << (2 * depth))) / (n_all_total + PRIOR_AREA)
    return (n_own + PRIOR_PLACES * everyone) / (n_own_total + PRIOR_PLACES)


@kernel
def cover_box(box, cost, place, frame, price, cells):
    """Write the codes of disjoint cells that cover a box at the least cost; returns how many.

    `box` is (column0, row0, column1, row1) at depth `max_depth`; `cost` is (weight, update_cost, max_depth): a cell costs
    `weight` times the share of messages in it, plus `update_cost`. `place` is (all, own, own_first, own_last): sorted cells of
    depth `max_depth` where messages lie, of all and of the keyword. `frame`, `price` and `cells` are scratch and result, see
    `cover_room`. Equals: own(c) where c is at the depth limit or inside the box, else min(own(c), sum over the quarters).
    """
    column0, row0, column1, row1 = box
    weight, update_cost, max_depth = cost
    all_place, own_place, own_first, own_last = place
    n_all, n_own = all_place.size, own_last - own_first
    n_cells, level = 0, -1
    depth, column, row = 0, 0, 0
    a_first, a_last, o_first, o_last = 0, n_all, own_first, own_last
    is_entering = True
    while True:
        if is_entering:
            is_entering = False
            # Below a cell with one quarter in the box nothing is gained by staying: its share only falls.
            while True:
                shift = max_depth - depth
                left, bottom = column << shift, row << shift
                right, top = left + (1 << shift) - 1, bottom + (1 << shift) - 1
                is_inside = column0 < left and right < column1 and row0 < bottom and top < row1
                n_quarters = 1
                if is_inside or depth == max_depth:
                    break
                half = 1 << (shift - 1)
                has_left, has_right = column0 < left + half, column1 >= left + half
                has_bottom, has_top = row0 < bottom + half, row1 >= bottom + half
                if has_left and has_right:
                    n_quarters = 2
                if has_bottom and has_top:
                    n_quarters *= 2
                if n_quarters > 1:
                    break
                depth += 1
                column = 2 * column + (1 if has_right else 0)
                row = 2 * row + (1 if has_top else 0)
            code = cell_code(depth, column, row)
            begin = (code - (1 << (2 * depth))) << (2 * shift)
            end = begin + (1 << (2 * shift))
            a_first = first_not_below(all_place, begin, a_first, a_last)
            a_last = first_not_below(all_place, end, a_first, a_last)
            o_first = first_not_below(own_place, begin, o_first, o_last)
            o_last = first_not_below(own_place, end, o_first, o_last)
            own = weight * share_in_cell(depth, o_last - o_first, n_own, a_last - a_first, n_all) + update_cost
            if n_quarters == 1 or own <= update_cost * n_quarters:
                cells[n_cells] = code
                n_cells += 1
                if level < 0:
                    return n_cells
                price[level, 1] += own
                continue
            level += 1
            frame[level, _DEPTH], frame[level, _COLUMN], frame[level, _ROW] = depth, column, row
            frame[level, _QUARTER], frame[level, _MARK] = 0, n_cells
            frame[level, _ALL_FIRST], frame[level, _ALL_LAST] = a_first, a_last
            frame[level, _OWN_FIRST], frame[level, _OWN_LAST] = o_first, o_last
            price[level, 0], price[level, 1] = own, 0.0
        quarter = frame[level, _QUARTER]
        if quarter == 4:
            own, total = price[level, 0], price[level, 1]
            if own <= total:
                n_cells = frame[level, _MARK]
                cells[n_cells] = cell_code(frame[level, _DEPTH], frame[level, _COLUMN], frame[level, _ROW])
                n_cells += 1
                total = own
            level -= 1
            if level < 0:
                return n_cells
            price[level, 1] += total
            continue
        frame[level, _QUARTER] = quarter + 1
        depth = frame[level, _DEPTH] + 1
        column, row = 2 * frame[level, _COLUMN] + (quarter & 1), 2 * frame[level, _ROW] + (quarter >> 1)
        shift = max_depth - depth
        if (column1 >> shift) < column or (column0 >> shift) > column or (row1 >> shift) < row or (row0 >> shift) > row:
            continue
        if price[level, 1] + update_cost >= price[level, 0]:
            # The quarters cannot become cheaper than the cell itself any more.
            frame[level, _QUARTER] = 4
            price[level, 1] = price[level, 0]
            continue
        a_first, a_last = frame[level, _ALL_FIRST], frame[level, _ALL_LAST]
        o_first, o_last = frame[level, _OWN_FIRST], frame[level, _OWN_LAST]
        is_entering = True


def cover_room(max_depth: int, update_cost: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scratch for `cover_box`: frames, prices, and room for the cells.

    Every cell costs at least `update_cost`, and a frame gives up where its quarters cost as much as the cell, at most
    1 + update_cost: that bounds what each of the open frames has written.
    """
    n_frames = max_depth + 1
    n_cells = n_frames * (int(1.0 / update_cost) + 3)
    return np.empty((n_frames, FRAME_FIELDS), np.int64), np.empty((n_frames, 2), np.float64), np.empty(n_cells, np.int64)
