"""Which subscriptions to look after when a message ends: each waits at one message, its oldest or one before that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.papers.ranked.skyband.kernels.buffers import oldest_held
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.run_layout import NO_MESSAGE

NOBODY = -1


class CalendarArrays(NamedTuple):
    """Doubly linked lists of subscriptions, one for each place of the window."""

    first: np.ndarray  # int32[places], a subscription or NOBODY
    following: np.ndarray  # int32[subscriptions]
    preceding: np.ndarray  # int32[subscriptions], NOBODY for the first
    waits_at: np.ndarray  # int64[subscriptions], a sequence number or NOBODY


@kernel
def wait_at(calendar, base, s, number):
    """Let a subscription wait at a message, and no longer where it did."""
    wait_nowhere(calendar, base, s)
    following = calendar.first[number - base]
    calendar.following[s], calendar.preceding[s], calendar.waits_at[s] = following, NOBODY, number
    if following != NOBODY:
        calendar.preceding[following] = s
    calendar.first[number - base] = s


@kernel
def wait_nowhere(calendar, base, s):
    number = calendar.waits_at[s]
    if number == NOBODY:
        return
    before, after = calendar.preceding[s], calendar.following[s]
    if before == NOBODY:
        calendar.first[number - base] = after
    else:
        calendar.following[before] = after
    if after != NOBODY:
        calendar.preceding[after] = before
    calendar.waits_at[s] = NOBODY


@kernel
def wait_for_oldest(calendar, buffers, window, asked):
    """Let each of these subscriptions wait at the oldest message it holds, if it holds any."""
    base = window.head[BASE]
    for i in range(asked.size):
        s = asked[i]
        oldest = oldest_held(buffers, window, s)
        if oldest == NO_MESSAGE:
            wait_nowhere(calendar, base, s)
        else:
            wait_at(calendar, base, s, oldest)
