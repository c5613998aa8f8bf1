"""The arrays that ranked engines and indexes share: subscriptions, the window, matches, changes, and the codes of a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class RankedSubscriptionArrays(NamedTuple):
    """Ranked subscriptions by number. Keywords of `s` are `keyword[first[s]:first[s] + n_words[s]]`: sorted, distinct.

    Everything that a score needs of a subscription is in its record, one line of memory; some columns of the records have
    names.
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


# A record: location, spatial weight, length of the vector, and a copy of the threshold for indexes that find ahead; then, as
# int32, the number of words and the first of them. If a subscription has more words, all are in `keyword`.
RECORD = 8
X, Y, WEIGHT, LENGTH, THRESHOLD = range(5)
N_WORDS, WORDS, MOST_WORDS = 10, 11, 5


class WindowArrays(NamedTuple):
    """Messages by position; the message with sequence number q is at position q - head[BASE].

    Keywords of position `p` are `keyword[keyword_start[p]:keyword_start[p + 1]]`: sorted, distinct. `value` is the count of
    each times its squared weight. Of two messages the newer is that of the larger time, then of the larger number. What a score
    needs of a message besides its words is in its record, half a line of memory, whose columns have names.
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


class ScoredMatches(NamedTuple):
    """Whose thresholds the messages at positions `first` … `last - 1` reach, with scores; of the i-th from `start[i]` on.

    A subscription may be listed twice for a message.
    """

    first: int
    last: int
    start: np.ndarray  # int64[messages + 1]
    subscription: np.ndarray  # int32[]
    score: np.ndarray  # float64[]


NO_MATCHES = ScoredMatches(0, 0, np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


class ChangeArrays(NamedTuple):
    """The first `n[0]` changes of lists."""

    n: np.ndarray  # int64[1]
    tick: np.ndarray  # int64[capacity]
    subscription: np.ndarray  # int32[capacity]
    number: np.ndarray  # int64[capacity], of the message
    change: np.ndarray  # int8[capacity]
    score: np.ndarray  # float64[capacity]


# --- the run of ticks: codes of all engines; saved folders hold them ---------------------------------------------


class TickRules(NamedTuple):
    """Whether the window is timed, else its length; whether changes are net; whether lists are banded."""

    is_timed: bool
    n_counted: int
    is_net: bool
    is_banded: bool


# Positions of `at`: the next position of the window to arrive, the phase of the tick, the candidates and how many are done, the
# newest message, living messages in the heap, subscriptions to refill, subscriptions whose threshold rose.
POSITION, PHASE, N_CANDIDATES, N_DONE, NEWEST, N_HEAP, N_NEEDS_REFILL, N_TRUNCATED = 0, 1, 2, 3, 4, 5, 6, 7
# Positions of `clock`.
NOW, SPAN, NEWEST_TIME = 0, 1, 2
# Phases of a tick.
ARRIVE, ADMIT, EXPIRE, REFILL, TELL = 0, 1, 2, 3, 4
# Why a run stopped: it is done, or its caller must supply something.
DONE, LACKS_SNAPSHOTS, LACKS_MESSAGES, LACKS_OUTPUT = 0, 1, 2, 3
# Instead of the position of the next message.
UNFINISHED, ALL_ARRIVED = -1, -2
# Instead of a sequence number.
NO_MESSAGE = -1
