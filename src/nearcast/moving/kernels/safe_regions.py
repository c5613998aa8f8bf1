"""How far a subscriber may go before a message enters or leaves its region."""

from __future__ import annotations

from nearcast.kernels.boxes import euclidean_to_box, haversine_to_box_m
from nearcast.kernels.compile import borrow, inline_kernel, kernel

NOT_SAFE, CIRCLE, BOX = 0, 1, 2
OUT, IN, MIXED = 0, 1, 2


@inline_kernel
def border_distance(kind, x, y, wide, high, is_lonlat, x0, y0, x1, y1):
    """How far a region around (x, y) can be moved in any direction until a message (a closed box) is in it or out of it.

    A circle has the radius `wide`; a box reaches `wide` and `high` from its middle, and goes as far in x and in y. A move of
    that length changes no distance by more than its own length. Paper: footnote 17 has the distance minus the radius, which is
    negative for a message inside; and one inside may leave.
    """
    if kind == CIRCLE:
        if is_lonlat:
            return abs(haversine_to_box_m(x, y, x0, y0, x1, y1) - wide)
        return abs(euclidean_to_box(x, y, x0, y0, x1, y1) - wide)
    in_x, in_y = min(x1 - (x - wide), (x + wide) - x0), min(y1 - (y - high), (y + high) - y0)
    return abs(min(in_x, in_y))


@kernel
def shrink_radii(places, is_lonlat, number, pair_subject, messages, pair_message, radius):
    """Let no radius reach beyond the border distance of one of its messages; `number[s]` is the subscriber of subject s."""
    places, messages = borrow(places), borrow(messages)
    kind, x, y, wide, high = places
    mx0, my0, mx1, my1 = messages
    for i in range(pair_subject.size):
        subject, message = pair_subject[i], pair_message[i]
        own = number[subject]
        distance = border_distance(
            kind[own], x[own], y[own], wide[own], high[own], is_lonlat, mx0[message], my0[message], mx1[message], my1[message]
        )
        radius[subject] = min(radius[subject], distance)


@kernel
def find_concerned(places, is_lonlat, radius, owner, messages, pair_message, is_concerned):
    """Mark the subscribers for whom a message lies where they may have come to by now, or have come from."""
    places, messages = borrow(places), borrow(messages)
    kind, x, y, wide, high = places
    mx0, my0, mx1, my1 = messages
    for i in range(owner.size):
        own, message = owner[i], pair_message[i]
        distance = border_distance(
            kind[own], x[own], y[own], wide[own], high[own], is_lonlat, mx0[message], my0[message], mx1[message], my1[message]
        )
        if distance <= radius[own]:
            is_concerned[own] = 1


# --- safe cells of a grid ----------------------------------------------------------------------------------------------


@inline_kernel
def state_in_cell(kind, wide, high, slack, left, bottom, right, top, x0, y0, x1, y1):
    """Whether a message (a closed box) is in a region whose middle is in a cell: IN or OUT wherever it is, else MIXED."""
    if kind == CIRCLE:
        farthest = max(
            max(euclidean_to_box(left, bottom, x0, y0, x1, y1), euclidean_to_box(right, bottom, x0, y0, x1, y1)),
            max(euclidean_to_box(left, top, x0, y0, x1, y1), euclidean_to_box(right, top, x0, y0, x1, y1)),
        )
        if farthest <= wide - slack:
            return IN
        across, along = max(x0 - right, 0.0, left - x1), max(y0 - top, 0.0, bottom - y1)
        far = wide + slack
        return OUT if across > far or along > far or across * across + along * along > far * far else MIXED
    if x0 - wide + slack <= left and right <= x1 + wide - slack and y0 - high + slack <= bottom and top <= y1 + high - slack:
        return IN
    if x0 - wide - slack > right or x1 + wide + slack < left or y0 - high - slack > top or y1 + high + slack < bottom:
        return OUT
    return MIXED


@inline_kernel
def keeps_state(place, grid, code, sides, message, is_in):
    """Whether a message is in the result everywhere in a cell, or nowhere, as it is now."""
    kind, wide, high, slack = place
    low_x, low_y, width, height, side = grid
    column, row = code % side, code // side
    state = state_in_cell(
        kind,
        wide,
        high,
        slack,
        low_x + column * width,
        low_y + row * height,
        low_x + (column + 1) * width,
        low_y + (row + 1) * height,
        sides[0][message],
        sides[1][message],
        sides[2][message],
        sides[3][message],
    )
    return state == (IN if is_in else OUT)


@kernel
def spread_cells(place, grid, home, most_away, budget, sides, message, is_in, seen, mark, cells):
    """Write the safe cells around `home`, near ones first, at most `budget`; returns how many. `seen` is marked with `mark`.

    None if home is not safe; not more than `most_away` columns and rows away.
    """
    side = grid[4]
    cells[0] = home
    seen[home] = mark
    n_cells, at = 0, 0
    n_waiting = 1
    while at < n_waiting and n_cells < budget:
        code = cells[at]
        is_safe = True
        for i in range(message.size):
            if not keeps_state(place, grid, code, sides, message[i], is_in[i]):
                is_safe = False
                break
        at += 1
        if not is_safe:
            continue
        # What is safe moves to the front; what waits stands behind `at`.
        cells[n_cells] = code
        n_cells += 1
        column, row = code % side, code // side
        for step in range(4):
            to_column = column + (1 if step == 0 else -1 if step == 1 else 0)
            to_row = row + (1 if step == 2 else -1 if step == 3 else 0)
            if to_column < 0 or to_column >= side or to_row < 0 or to_row >= side:
                continue
            away = max(abs(to_column - home % side), abs(to_row - home // side))
            if away <= most_away and seen[to_row * side + to_column] != mark and n_waiting < cells.size:
                seen[to_row * side + to_column] = mark
                cells[n_waiting] = to_row * side + to_column
                n_waiting += 1
    return n_cells


@kernel
def breaks_promise(place, grid, cells, sides, message, is_in):
    """Whether a message is not in the same state in all safe cells."""
    sides = borrow(sides)
    for at in range(cells.size):
        if not keeps_state(place, grid, cells[at], sides, message, is_in):
            return True
    return False
