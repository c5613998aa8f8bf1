"""The scores of changes that were told without them."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.simd import prefetch
from nearcast.ranked.kernels.layouts import BASE, MESSAGE_RECORD, RECORD
from nearcast.ranked.kernels.rank_changes import NOT_TOLD
from nearcast.ranked.kernels.window_search import score_at

# Changes that are asked for ahead of their use.
_AHEAD = 12


@kernel
def score_told(judge, window, changes):
    """Score what was told without a score; the messages are still in the window."""
    judge, window, changes = borrow(judge), borrow(window), borrow(changes)
    ground, subscribers, common = judge.ground, judge.subscribers, judge.common
    subscriber, number, score, base = changes.subscriber, changes.number, changes.score, window.head[BASE]
    record, message, keyword_start = subscribers.record, window.record, window.keyword_start
    keyword, value, n = window.keyword, window.value, changes.n[0]
    for i in range(n):
        ahead = i + 2 * _AHEAD
        if ahead < n and score[ahead] == NOT_TOLD:
            s, place = int(subscriber[ahead]), number[ahead] - base
            prefetch(record, RECORD * s)
            prefetch(message, MESSAGE_RECORD * place)
            prefetch(message, MESSAGE_RECORD * (place + 1))
        ahead = i + _AHEAD
        if ahead < n and score[ahead] == NOT_TOLD:
            place = number[ahead] - base
            at, end = keyword_start[place], keyword_start[place + 1] - 1
            prefetch(keyword, at)
            prefetch(keyword, end)
            prefetch(value, at)
            prefetch(value, end)
        if score[i] == NOT_TOLD:
            score[i] = score_at(ground, subscribers, window, int(subscriber[i]), number[i] - base, common)
