"""The weights of the words of ranked subscriptions, and how long their vectors are."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.relevance import steady_sum


@kernel
def weigh_subscribers(subscribers, number, weights):
    """Write the weights of these subscriptions' words and the lengths of their vectors; `weights[w]` is that of keyword `w`."""
    first, n_words, keyword, length = subscribers.first, subscribers.n_words, subscribers.keyword, subscribers.length
    word_weight = subscribers.word_weight
    most = 0
    for i in range(number.size):
        most = max(most, n_words[number[i]])
    squares = np.empty(most, np.float64)
    for i in range(number.size):
        s = number[i]
        for j in range(n_words[s]):
            weight = weights[keyword[first[s] + j]]
            word_weight[first[s] + j] = weight
            squares[j] = weight * weight
        length[s] = math.sqrt(steady_sum(squares, n_words[s]))
