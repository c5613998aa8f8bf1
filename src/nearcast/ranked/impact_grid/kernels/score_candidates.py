"""The exact scores of candidates."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.ranked.kernels.layouts import LENGTH, MOST_WORDS, N_WORDS, RECORD, THRESHOLD, WEIGHT, WORDS, X, Y
from nearcast.ranked.kernels.scoring import NOTHING_IN_COMMON, proximity, relevance, short_sum, similarity, sum_of_five

_SPREAD = 40503
_EMPTY = -1
_AHEAD = 8
_BITS = 63


@kernel
def score_near(
    distances, subscriptions, window, first, last, near, near_start, unindexed, unindexed_bits, table, common, matches, n
):
    """Write the subscriptions that the messages at positions `first` … `last - 1` reach, of candidates and of `unindexed`.

    Results are appended to the `n` found before; returns how many there are then. `table` is a hash table from keywords to
    values, empty before and after, with twice the capacity of a message's words.
    """
    subscriptions, window = borrow(subscriptions), borrow(window)
    first_position, _, start, subscription, score = borrow(matches)
    near, near_start, unindexed, unindexed_bits, common = borrow((near, near_start, unindexed, unindexed_bits, common))
    of_word, value_of = borrow(table)
    is_lonlat, max_distance = distances
    keyword, value = window.keyword, window.value
    record, record_words = subscriptions.record, subscriptions.record_words
    mask = of_word.size - 1
    likely = np.empty(unindexed.size, np.int32)
    for position in range(first, last):
        start[position - first_position] = n
        begin, end = window.keyword_start[position], window.keyword_start[position + 1]
        is_at_home = True
        for at in range(begin, end):
            to = slot_for(of_word, mask, keyword[at])
            of_word[to], value_of[to] = keyword[at], value[at]
            is_at_home = is_at_home and to == home_of(mask, keyword[at])
        x, y, length = window.x[position], window.y[position], window.length[position]
        near_begin, near_end = near_start[position - first], near_start[position - first + 1]
        # Most unindexed subscriptions share no word with a message, as their bits show.
        bits, n_likely = bits_of(keyword, begin, end), 0
        for i in range(unindexed.size):
            likely[n_likely] = unindexed[i]
            n_likely += (unindexed_bits[i] & bits) != 0
        for i in range(near_begin, near_end + n_likely):
            s = int(near[i]) if i < near_end else int(likely[i - near_end])
            if i + _AHEAD < near_end:
                prefetch(record, int(near[i + _AHEAD]) * RECORD)
            at = s * RECORD
            if is_at_home and record_words[2 * at + N_WORDS] <= MOST_WORDS:
                dot = few_in_common(of_word, value_of, mask, record_words, 2 * at)
            else:
                dot = many_in_common(of_word, value_of, mask, subscriptions, s, common)
            if dot == NOTHING_IN_COMMON:
                continue
            proximity_of = proximity(is_lonlat, max_distance, record[at + X], record[at + Y], x, y)
            score_of = relevance(record[at + WEIGHT], proximity_of, similarity(dot, length, record[at + LENGTH]))
            # Without a branch: about every second one is reached.
            subscription[n], score[n] = s, score_of
            n += score_of >= record[at + THRESHOLD]
        # In reverse order: a word that displaced another one is still there.
        for at in range(end - 1, begin - 1, -1):
            of_word[slot_for(of_word, mask, keyword[at])] = _EMPTY
    start[last - first_position] = n
    return n


@kernel
def bits_of_subscriptions(subscriptions, numbers, bits):
    """Write `bits_of` the words of subscriptions."""
    for i in range(numbers.size):
        first = subscriptions.first[numbers[i]]
        bits[i] = bits_of(subscriptions.keyword, first, first + subscriptions.n_words[numbers[i]])


@inline_kernel
def bits_of(keyword, begin, end):
    """A few bits that separate most sets of keywords without a common one."""
    bits = 0
    for at in range(begin, end):
        bits |= 1 << int(keyword[at]) % _BITS
    return bits


@inline_kernel
def few_in_common(of_word, value_of, mask, record_words, at):
    """The sum of the values of the words of a record that a message has, if all are in their home slots; or NOTHING_IN_COMMON.

    Which words these are cannot be predicted, so there are no branches.
    """
    n_words = record_words[at + N_WORDS]
    a, has_a = value_at_home(of_word, value_of, mask, record_words[at + WORDS], n_words > 0)
    b, has_b = value_at_home(of_word, value_of, mask, record_words[at + WORDS + 1], n_words > 1)
    c, has_c = value_at_home(of_word, value_of, mask, record_words[at + WORDS + 2], n_words > 2)
    d, has_d = value_at_home(of_word, value_of, mask, record_words[at + WORDS + 3], n_words > 3)
    e, has_e = value_at_home(of_word, value_of, mask, record_words[at + WORDS + 4], n_words > 4)
    dot = sum_of_five(a, b, c, d, e)
    return dot if has_a | has_b | has_c | has_d | has_e else NOTHING_IN_COMMON


@inline_kernel
def value_at_home(of_word, value_of, mask, word, is_one):
    """The value of a word of a record and True, if the word exists and the message has it; else 0 and False."""
    at = home_of(mask, word)
    value, has_it = value_of[at], is_one & (of_word[at] == word)
    return (value if has_it else 0.0), has_it


@inline_kernel
def many_in_common(of_word, value_of, mask, subscriptions, s, common):
    """As `few_in_common`, for any number of words in any slots."""
    at, n_words = 2 * RECORD * s, subscriptions.record_words[2 * RECORD * s + N_WORDS]
    n_common = 0
    for j in range(n_words):
        is_few = n_words <= MOST_WORDS
        word = subscriptions.record_words[at + WORDS + j] if is_few else subscriptions.keyword[subscriptions.first[s] + j]
        to = slot_for(of_word, mask, word)
        if of_word[to] == word:
            common[n_common] = value_of[to]
            n_common += 1
    return short_sum(common, n_common) if n_common else NOTHING_IN_COMMON


@inline_kernel
def home_of(mask, word):
    return (int(word) * _SPREAD >> 6) & mask


@inline_kernel
def slot_for(of_word, mask, word):
    """The slot of a word, or the free slot where it belongs."""
    at = home_of(mask, word)
    while of_word[at] != word and of_word[at] != _EMPTY:
        at = (at + 1) & mask
    return at


def empty_table(n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """A table for messages of up to `n_words` words."""
    size = 1024
    while size < 8 * n_words:
        size *= 2
    return np.full(size, _EMPTY, np.int32), np.zeros(size)
