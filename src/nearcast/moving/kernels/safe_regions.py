"""How far a subscriber may go before a message enters or leaves its region."""

from __future__ import annotations

from nearcast.kernels.boxes import euclidean_to_box, haversine_to_box_m
from nearcast.kernels.compile import borrow, inline_kernel, kernel

NOT_SAFE, CIRCLE, BOX = 0, 1, 2


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
