"""What ranked indexes and engines read and write: subscribers, the window, what is found, what changes, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class RankedSubscriptionArrays(NamedTuple):
    """Ranked subscriptions by number. Keywords of `s` are `keyword[first[s]:first[s] + n_words[s]]`: sorted, distinct.

    All that a score needs of a subscription is in its record, a line of memory; some columns of the records have names.
    """

    record: np.ndarray  # float64[capacity · RECORD], see below
    record_words: np.ndarray  # int32[capacity · 2 · RECORD], the same memory
    x: np.ndarray  # float64[capacity], of the records
    y: np.ndarray  # float64[capacity], of the records
    spatial_weight: np.ndarray  # float64[capacity], of the records
    length: np.ndarray  # float64[capacity], of the records: of the vector of its words' weights
    n_words: np.ndarray  # int32[capacity], of the records
    k: np.ndarray  # int32[capacity]
    first: np.ndarray  # int64[capacity]
    is_alive: np.ndarray  # uint8[capacity]
    keyword: np.ndarray  # int32[]
    weight_of: np.ndarray  # float64[keywords], by keyword


# A record: place, spatial weight, length of its vector and, for indexes that find ahead, its floor; then, as int32, the number
# of its words, and the first of them. Where it has more, they are among the keywords.
RECORD = 8
X, Y, WEIGHT, LENGTH, FLOOR = range(5)
N_WORDS, WORDS, MOST_WORDS = 10, 11, 5


class WindowArrays(NamedTuple):
    """Messages by place; the place of the message with sequence number q is q - head[BASE].

    Keywords of place `p` are `keyword[keyword_start[p]:keyword_start[p + 1]]`: sorted, distinct; `value` has for each the count
    times the squared weight of the word. Of two messages the newer is that of the larger time, then of the larger number.
    What a score needs of a message besides its words is in its record, half a line of memory, whose columns have names.
    """

    head: np.ndarray  # int64[1], at BASE
    time: np.ndarray  # float64[capacity], 0 where the window counts messages
    is_alive: np.ndarray  # uint8[capacity]
    record: np.ndarray  # float64[(capacity + 1) · MESSAGE_RECORD]; of the last only the start of its keywords counts
    x: np.ndarray  # float64[capacity], of the records
    y: np.ndarray  # float64[capacity], of the records
    length: np.ndarray  # float64[capacity], of the records: of the vector of its words' weights
    keyword_start: np.ndarray  # int64[capacity + 1], of the records
    keyword: np.ndarray  # int32[]
    value: np.ndarray  # float64[]
    n_times: np.ndarray  # int32[]


BASE = 0
MESSAGE_RECORD = 4
MESSAGE_X, MESSAGE_Y, MESSAGE_LENGTH, MESSAGE_START = range(MESSAGE_RECORD)


class FoundArrays(NamedTuple):
    """For the messages at places `first` … `last - 1`: from `start[i]` on, whose thresholds the i-th reaches, and its scores.

    A subscription may be there twice.
    """

    first: int
    last: int
    start: np.ndarray  # int64[messages + 1]
    subscriber: np.ndarray  # int32[]
    score: np.ndarray  # float64[]


NOTHING_FOUND = FoundArrays(0, 0, np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


class ChangeArrays(NamedTuple):
    """Changes that are told; `n` of them."""

    n: np.ndarray  # int64[1]
    tick: np.ndarray  # int64[room]
    subscriber: np.ndarray  # int32[room]
    number: np.ndarray  # int64[room], of the message
    change: np.ndarray  # int8[room]
    score: np.ndarray  # float64[room]


# -- Where a run of ticks stands: positions and codes that every engine has, and what saved folders hold.


class Rules(NamedTuple):
    """How ticks go: a window of time or of so many messages, changes told in the end only, dominated messages not held."""

    is_timed: bool
    n_counted: int
    is_net: bool
    is_banded: bool


# Positions of `at`: the next place to arrive, the phase it is in, candidates and how many are done, the newest message,
# living messages in the heap, subscriptions to refill and those whose threshold rose.
PLACE, PHASE, N_CANDIDATES, N_DONE, NEWEST, N_HEAP, N_LACKING, N_CUT = 0, 1, 2, 3, 4, 5, 6, 7
# Positions of `clock`.
NOW, SPAN, NEWEST_TIME = 0, 1, 2
# Phases of a tick.
ARRIVE, ADMIT, EXPIRE, REFILL, TELL = 0, 1, 2, 3, 4
# What stops a run: it is done, or its caller has to give what it lacks.
DONE, LACKS_JOURNAL, LACKS_MESSAGES, LACKS_OUTPUT = 0, 1, 2, 3
# Instead of the place of the next message.
UNFINISHED, ALL_ARRIVED = -1, -2
# Instead of a sequence number.
NO_MESSAGE = -1
