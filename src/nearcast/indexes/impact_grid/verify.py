"""Score what may be reached, to the last bit."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel, lent
from nearcast.kernels.ranked_layouts import FLOOR, LENGTH, MOST_WORDS, N_WORDS, RECORD, WEIGHT, WORDS, X, Y
from nearcast.kernels.relevance import proximity, relevance, short_sum, similarity
from nearcast.kernels.simd import prefetch

_SPREAD = 40503
_EMPTY = -1
_AHEAD = 8


@kernel
def score_near(ground, subscribers, window, near, near_start, fresh, table, common, found):
    """Write those of the subscriptions near to each message, and of the fresh ones, whose floors it reaches; returns how many.

    `table` is a hash table of keywords and of their values, empty before and after, with room for twice the words there are.
    """
    subscribers, window = lent(subscribers), lent(window)
    first, last, start, subscriber, score = lent(found)
    of_word, value_of = lent(table)
    is_lonlat, max_distance = ground
    keyword, value = window.keyword, window.value
    record, record_words = subscribers.record, subscribers.record_words
    own_keyword, own_first = subscribers.keyword, subscribers.first
    mask = of_word.size - 1
    n = 0
    for place in range(first, last):
        start[place - first] = n
        begin, end = window.keyword_start[place], window.keyword_start[place + 1]
        for at in range(begin, end):
            to = slot_for(of_word, mask, keyword[at])
            of_word[to], value_of[to] = keyword[at], value[at]
        x, y, length = window.x[place], window.y[place], window.length[place]
        near_begin, near_end = near_start[place - first], near_start[place - first + 1]
        for i in range(near_begin, near_end + fresh.size):
            s = int(near[i]) if i < near_end else int(fresh[i - near_end])
            if i + _AHEAD < near_end:
                prefetch(record, int(near[i + _AHEAD]) * RECORD)
            at = s * RECORD
            n_words = record_words[2 * at + N_WORDS]
            n_common = 0
            for j in range(n_words):
                word = record_words[2 * at + WORDS + j] if n_words <= MOST_WORDS else own_keyword[own_first[s] + j]
                to = slot_for(of_word, mask, word)
                if of_word[to] == word:
                    common[n_common] = value_of[to]
                    n_common += 1
            if n_common == 0:
                continue
            dot = short_sum(common, n_common)
            near_by = proximity(is_lonlat, max_distance, record[at + X], record[at + Y], x, y)
            reached = relevance(record[at + WEIGHT], near_by, similarity(dot, length, record[at + LENGTH]))
            if reached >= record[at + FLOOR]:
                subscriber[n], score[n] = s, reached
                n += 1
        # The last one first: what it was moved on by is still there.
        for at in range(end - 1, begin - 1, -1):
            of_word[slot_for(of_word, mask, keyword[at])] = _EMPTY
    start[last - first] = n
    return n


@inline_kernel
def slot_for(of_word, mask, word):
    """The slot of a word, or the free one where it belongs."""
    at = (int(word) * _SPREAD >> 6) & mask
    while of_word[at] != word and of_word[at] != _EMPTY:
        at = (at + 1) & mask
    return at


def empty_table(n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """A table for messages of so many words."""
    size = 1024
    while size < 8 * n_words:
        size *= 2
    return np.full(size, _EMPTY, np.int32), np.zeros(size)
