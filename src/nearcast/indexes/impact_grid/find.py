"""Whom messages reach: which lists to look at, a look at each, then the scores.

These steps are done for some messages at a time: what the next step reads is on its way from memory, and still near.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.columns.lines import lined_zeros
from nearcast.indexes.impact_grid.layout import MOST_EDGES, N_LEVELS, N_PARTS
from nearcast.indexes.impact_grid.match import LACKS_ROOM, N_KNOWN, find_lists, scan_lists
from nearcast.indexes.impact_grid.verify import empty_table, score_near
from nearcast.kernels.compile import kernel, lent
from nearcast.kernels.near_bounds import N_FIGURES
from nearcast.kernels.simd_near_plain import N_SLOTS, OWN

# So many messages at a time as reach about so many subscriptions, whose records are near then.
_MOST_AT_ONCE, _FEWEST_AT_ONCE, _REACHED_AT_ONCE = 256, 8, 12_000
# So many lists there may be for a word.
_LISTS_OF_WORD = N_PARTS * (MOST_EDGES + 1) * N_LEVELS
_LEAST_WORDS = 4096
DONE, LACKS_NEAR, LACKS_REACHED = 0, 1, 2
# Where a search stands: its next message, subscriptions reached, lists looked at, subscriptions found in them.
PLACE, N_REACHED, N_LISTS, N_NEAR = range(4)


class FindScratch(NamedTuple):
    """Memory that a search uses again for every few messages."""

    item: np.ndarray  # int64[], lists to look at
    owner: np.ndarray  # int64[], for which words
    item_start: np.ndarray  # int64[_MOST_AT_ONCE + 1]
    near_start: np.ndarray  # int64[_MOST_AT_ONCE + 1]
    figures: np.ndarray  # float32[OWN + words of a message]
    worth: np.ndarray  # int16[words of a message · N_SLOTS], see `describe`
    known: np.ndarray  # int64[words of a message · N_KNOWN], see `describe`
    table: tuple[np.ndarray, np.ndarray]  # see `score_near`
    common: np.ndarray  # float64[words of a message]
    repeated: np.ndarray  # float64[words of a message · its figures], see `gather_repeated`


def scratch_for(n_words: int) -> FindScratch:
    """For messages of up to so many words."""
    item, owner = np.empty((2, max(n_words, _LEAST_WORDS) * _LISTS_OF_WORD), np.int64)
    item_start, near_start = np.empty((2, _MOST_AT_ONCE + 1), np.int64)
    figures, worth = np.zeros(OWN + n_words, np.float32), lined_zeros(N_SLOTS * n_words, np.int16)
    known, common, repeated = np.zeros(N_KNOWN * n_words, np.int64), np.empty(max(1, n_words)), np.empty(N_FIGURES * n_words)
    return FindScratch(item, owner, item_start, near_start, figures, worth, known, empty_table(n_words), common, repeated)


def words_of(scratch: FindScratch) -> int:
    """How many words a message may have."""
    return len(scratch.known) // N_KNOWN


@kernel
def find_reached(ground, words, parts, grid, frame, subscribers, window, fresh, fresh_bits, scratch, near, found, at, n_enough):
    """Write whom the messages of `found` reach, from where `at` stands on, until there are enough; returns DONE or a lack."""
    words, parts, subscribers, window = lent(words), lent(parts), lent(subscribers), lent(window)
    fresh, fresh_bits, scratch, near, found, at = lent((fresh, fresh_bits, scratch, near, found, at))
    item, owner, item_start, near_start, figures, worth, known, table, common, repeated = scratch
    n_at_once = _FEWEST_AT_ONCE
    while at[PLACE] < found.last and at[N_REACHED] < n_enough:
        first = at[PLACE]
        last = first + 1
        begin = window.keyword_start[first]
        while (
            last < min(first + n_at_once, found.last) and (window.keyword_start[last + 1] - begin) * _LISTS_OF_WORD <= item.size
        ):
            last += 1
        find_lists(words, parts, grid, window, first, last, repeated, item, owner, item_start)
        lists = (item, owner, item_start)
        n_lists = scan_lists(
            words, parts, grid, frame, window, first, last, lists, figures, worth, known, subscribers.record, near, near_start
        )
        if n_lists == LACKS_ROOM:
            return LACKS_NEAR
        n_before, n_looked_at = at[N_REACHED], near_start[last - first] + (last - first) * fresh.size
        if n_before + n_looked_at > found.score.size:
            return LACKS_REACHED
        at[N_REACHED] = score_near(
            ground, subscribers, window, first, last, near, near_start, fresh, fresh_bits, table, common, found, n_before
        )
        n_wanted = _REACHED_AT_ONCE * (last - first) // max(1, at[N_REACHED] - n_before)
        n_at_once = min(max(n_wanted, _FEWEST_AT_ONCE), _MOST_AT_ONCE)
        at[PLACE] = last
        at[N_LISTS] += n_lists
        at[N_NEAR] += n_looked_at
    return DONE
