"""The scores of some subscriptions and some messages, all of them with each other."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, kernel
from nearcast.ranked.kernels.window_search import NOT_HERE, score_at


@kernel
def score_some(ground, subscribers, window, floor, numbers, first, last, common, start, subscriber, score):
    """For each message at places `first` … `last - 1` those of `numbers` whose floors it reaches, from `start[i]` on.

    `subscriber` and `score` have room for all of them, `common` for the words of the longest; returns how many there are.
    """
    subscribers, window = borrow(subscribers), borrow(window)
    n = 0
    for place in range(first, last):
        start[place - first] = n
        for i in range(numbers.size):
            s = int(numbers[i])
            found = score_at(ground, subscribers, window, s, place, common)
            if found != NOT_HERE and found >= floor[s]:
                subscriber[n], score[n] = s, found
                n += 1
    start[last - first] = n
    return n
