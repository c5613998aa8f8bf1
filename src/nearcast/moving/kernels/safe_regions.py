"""How far a subscriber may travel before a message enters or leaves its region: radii, and cells of a grid."""

from __future__ import annotations

from nearcast.kernels.boxes import euclidean_to_box, haversine_to_box_m
from nearcast.kernels.compile import borrow, inline_kernel, kernel

NOT_SAFE, CIRCLE, BOX = 0, 1, 2
OUT, IN, MIXED = 0, 1, 2


@inline_kernel
def border_distance(kind, x, y, half_width, half_height, is_lonlat, x0, y0, x1, y1):
    """How far a region around (x, y) can move in any direction before a message (a closed box) enters or leaves it.

    A circle has the radius `half_width`. A box reaches `half_width` and `half_height` from its middle, and may move that far in
    x and also in y. No distance changes by more than the length of the move. Paper: footnote 17 has the distance minus the
    radius, which is negative for a message inside, although a message inside may leave.
    """
    if kind == CIRCLE:
        if is_lonlat:
            return abs(haversine_to_box_m(x, y, x0, y0, x1, y1) - half_width)
        return abs(euclidean_to_box(x, y, x0, y0, x1, y1) - half_width)
    in_x, in_y = min(x1 - (x - half_width), (x + half_width) - x0), min(y1 - (y - half_height), (y + half_height) - y0)
    return abs(min(in_x, in_y))


@kernel
def shrink_radii(extents, is_lonlat, number, pair_row, messages, pair_message, radius):
    """Shrink each radius to the smallest border distance of its messages. Radius i is that of subscription `number[i]`."""
    extents, messages = borrow(extents), borrow(messages)
    kind, x, y, half_width, half_height = extents
    mx0, my0, mx1, my1 = messages
    for i in range(pair_row.size):
        row, message = pair_row[i], pair_message[i]
        s = number[row]
        distance = border_distance(
            kind[s],
            x[s],
            y[s],
            half_width[s],
            half_height[s],
            is_lonlat,
            mx0[message],
            my0[message],
            mx1[message],
            my1[message],
        )
        radius[row] = min(radius[row], distance)


@kernel
def find_affected(extents, is_lonlat, radius, pair_subscription, messages, pair_message, is_affected):
    """Mark the subscribers whose region a message may have entered or left by now: its border is within the radius."""
    extents, messages = borrow(extents), borrow(messages)
    kind, x, y, half_width, half_height = extents
    mx0, my0, mx1, my1 = messages
    for i in range(pair_subscription.size):
        s, message = pair_subscription[i], pair_message[i]
        distance = border_distance(
            kind[s],
            x[s],
            y[s],
            half_width[s],
            half_height[s],
            is_lonlat,
            mx0[message],
            my0[message],
            mx1[message],
            my1[message],
        )
        if distance <= radius[s]:
            is_affected[s] = 1


# --- safe cells of a grid ----------------------------------------------------------------------------------------------


@inline_kernel
def state_in_cell(kind, half_width, half_height, slack, left, bottom, right, top, x0, y0, x1, y1):
    """Whether a message (a closed box) is in a region with its middle in a cell: always (IN), never (OUT), or MIXED."""
    wide, high = half_width, half_height
    if kind == CIRCLE:
        farthest = max(
            max(euclidean_to_box(left, bottom, x0, y0, x1, y1), euclidean_to_box(right, bottom, x0, y0, x1, y1)),
            max(euclidean_to_box(left, top, x0, y0, x1, y1), euclidean_to_box(right, top, x0, y0, x1, y1)),
        )
        if farthest <= wide - slack:
            return IN
        across, along = max(x0 - right, 0.0, left - x1), max(y0 - top, 0.0, bottom - y1)
        reach = wide + slack
        return OUT if across > reach or along > reach or across * across + along * along > reach * reach else MIXED
    if x0 - wide + slack <= left and right <= x1 + wide - slack and y0 - high + slack <= bottom and top <= y1 + high - slack:
        return IN
    if x0 - wide - slack > right or x1 + wide + slack < left or y0 - high - slack > top or y1 + high + slack < bottom:
        return OUT
    return MIXED


@inline_kernel
def keeps_result(extent, grid, code, boxes, message, is_in):
    """Whether a message is in the result everywhere in a cell if `is_in`, else nowhere."""
    kind, half_width, half_height, slack = extent
    low_x, low_y, width, height, n_columns = grid
    column, row = code % n_columns, code // n_columns
    state = state_in_cell(
        kind,
        half_width,
        half_height,
        slack,
        low_x + column * width,
        low_y + row * height,
        low_x + (column + 1) * width,
        low_y + (row + 1) * height,
        boxes[0][message],
        boxes[1][message],
        boxes[2][message],
        boxes[3][message],
    )
    return state == (IN if is_in else OUT)


@kernel
def find_safe_cells(extent, grid, start, max_cells_away, budget, boxes, message, is_in, seen, mark, cells):
    """Write the safe cells connected to `start`, near ones first, at most `budget`; returns how many: 0 if `start` is not safe.

    They lie at most `max_cells_away` columns and rows away. Cells that were looked at have `mark` in `seen`.
    """
    n_columns = grid[4]
    cells[0] = start
    seen[start] = mark
    n_cells, at = 0, 0
    n_waiting = 1
    while at < n_waiting and n_cells < budget:
        code = cells[at]
        is_safe = True
        for i in range(message.size):
            if not keeps_result(extent, grid, code, boxes, message[i], is_in[i]):
                is_safe = False
                break
        at += 1
        if not is_safe:
            continue
        # Safe cells come first in `cells`; cells to look at follow from `at` on.
        cells[n_cells] = code
        n_cells += 1
        column, row = code % n_columns, code // n_columns
        for step in range(4):
            to_column = column + (1 if step == 0 else -1 if step == 1 else 0)
            to_row = row + (1 if step == 2 else -1 if step == 3 else 0)
            if to_column < 0 or to_column >= n_columns or to_row < 0 or to_row >= n_columns:
                continue
            away = max(abs(to_column - start % n_columns), abs(to_row - start // n_columns))
            if away <= max_cells_away and seen[to_row * n_columns + to_column] != mark and n_waiting < cells.size:
                seen[to_row * n_columns + to_column] = mark
                cells[n_waiting] = to_row * n_columns + to_column
                n_waiting += 1
    return n_cells


@kernel
def is_affected_in_cells(extent, grid, cells, boxes, message, is_in):
    """Whether a message could be in the result in one safe cell and out of it in another."""
    boxes = borrow(boxes)
    for at in range(cells.size):
        if not keeps_result(extent, grid, cells[at], boxes, message, is_in):
            return True
    return False
