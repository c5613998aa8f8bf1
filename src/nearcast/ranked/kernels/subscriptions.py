"""What the records of ranked subscriptions say of their words: the first of them, and how long their vectors are."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.ranked.kernels.layouts import MOST_WORDS, RECORD, WORDS
from nearcast.ranked.kernels.relevance import steady_sum


@kernel
def weigh_subscribers(subscribers, number, weights):
    """Write the lengths of the vectors of these subscriptions' words; `weights[w]` is that of keyword `w`."""
    first, n_words, keyword, length = subscribers.first, subscribers.n_words, subscribers.keyword, subscribers.length
    most = 0
    for i in range(number.size):
        most = max(most, n_words[number[i]])
    squares = np.empty(most, np.float64)
    for i in range(number.size):
        s = number[i]
        for j in range(n_words[s]):
            weight = weights[keyword[first[s] + j]]
            squares[j] = weight * weight
        length[s] = math.sqrt(steady_sum(squares, n_words[s]))


@kernel
def note_words(subscribers, number):
    """Write the first words of these subscriptions into their records."""
    first, n_words, keyword, record = subscribers.first, subscribers.n_words, subscribers.keyword, subscribers.record_words
    for i in range(number.size):
        s = int(number[i])
        for j in range(min(n_words[s], MOST_WORDS)):
            record[2 * RECORD * s + WORDS + j] = keyword[first[s] + j]
