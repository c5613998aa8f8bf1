"""What the lists of touched subscriptions were before, and how they differ from what they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.ranked.kernels.layouts import BASE
from nearcast.ranked.kernels.window import ranks_before


class JournalArrays(NamedTuple):
    """Lists as they were when a subscription was first touched; `stamp[s]` tells whether it was since the last reckoning."""

    head: np.ndarray  # int64[3], at STAMP, N_TOUCHED, N_SAVED
    stamp: np.ndarray  # int64[capacity]
    touched: np.ndarray  # int32[capacity], subscriptions in order
    saved_from: np.ndarray  # int64[capacity + 1], of each touched one
    score: np.ndarray  # float64[room]
    number: np.ndarray  # int64[room]


STAMP, N_TOUCHED, N_SAVED = 0, 1, 2


@kernel
def remember(journal, buffers, k, s):
    """Keep the list of a subscription before it is touched; False if there is no room."""
    head = journal.head
    if journal.stamp[s] == head[STAMP]:
        return True
    n_shown = min(k, buffers.size[s])
    n_saved, n_touched = head[N_SAVED], head[N_TOUCHED]
    if n_saved + n_shown > journal.score.size:
        return False
    start = buffers.start[s]
    for i in range(n_shown):
        journal.score[n_saved + i] = buffers.score[start + i]
        journal.number[n_saved + i] = buffers.number[start + i]
    journal.stamp[s] = head[STAMP]
    journal.touched[n_touched] = s
    journal.saved_from[n_touched] = n_saved
    journal.saved_from[n_touched + 1] = n_saved + n_shown
    head[N_SAVED], head[N_TOUCHED] = n_saved + n_shown, n_touched + 1
    return True


@kernel
def most_changes(journal, subscribers, buffers):
    """How many changes a reckoning may tell at most."""
    total = journal.head[N_SAVED]
    for i in range(journal.head[N_TOUCHED]):
        s = journal.touched[i]
        total += min(subscribers.k[s], buffers.size[s])
    return total


@kernel
def reckon(journal, subscribers, window, buffers, tick, changes):
    """Tell the differences of all touched subscriptions and begin anew; False if there is no room for them."""
    n_out = changes.n[0]
    if n_out + most_changes(journal, subscribers, buffers) > changes.tick.size:
        return False
    time, base = window.time, window.head[BASE]
    for i in range(journal.head[N_TOUCHED]):
        s = journal.touched[i]
        old, old_end = journal.saved_from[i], journal.saved_from[i + 1]
        new = buffers.start[s]
        new_end = new + min(subscribers.k[s], buffers.size[s])
        # Both are in order, so what is in one of them only shows in one pass.
        while old < old_end or new < new_end:
            if old < old_end and new < new_end:
                was, is_now = journal.number[old], buffers.number[new]
                was_score, score = journal.score[old], buffers.score[new]
                if was == is_now and was_score == score:
                    old, new = old + 1, new + 1
                    continue
                leaves = ranks_before(time, base, was_score, was, score, is_now)
            else:
                leaves = old < old_end
            changes.tick[n_out] = tick
            changes.subscriber[n_out] = s
            if leaves:
                changes.number[n_out], changes.change[n_out], changes.score[n_out] = journal.number[old], -1, journal.score[old]
                old += 1
            else:
                changes.number[n_out], changes.change[n_out], changes.score[n_out] = buffers.number[new], 1, buffers.score[new]
                new += 1
            n_out += 1
    changes.n[0] = n_out
    journal.head[N_TOUCHED], journal.head[N_SAVED] = 0, 0
    journal.head[STAMP] += 1
    return True


@kernel
def remember_all(journal, subscribers, buffers, asked, first):
    """Keep the lists of these subscriptions from position `first` on; returns where it stopped for lack of room."""
    for i in range(first, asked.size):
        if not remember(journal, buffers, subscribers.k[asked[i]], asked[i]):
            return i
    return asked.size
