"""Whom messages reach: which lists to look at, a look at each, then the scores.

These steps are done for some messages at a time: what the next step reads is on its way from memory, and still near.
"""

from __future__ import annotations

from nearcast.kernels.compile import borrow, kernel
from nearcast.ranked.impact_grid.kernels.match import LACKS_ROOM, find_lists, scan_lists
from nearcast.ranked.impact_grid.kernels.score_candidates import score_near
from nearcast.ranked.impact_grid.layout import MOST_EDGES, N_LEVELS, N_PARTS

# So many messages at a time as reach about so many subscriptions, whose records are near then.
MOST_AT_ONCE, _FEWEST_AT_ONCE, _REACHED_AT_ONCE = 256, 8, 12_000
# So many lists there may be for a word.
LISTS_OF_WORD = N_PARTS * (MOST_EDGES + 1) * N_LEVELS
DONE, LACKS_NEAR, LACKS_REACHED = 0, 1, 2
# Where a search stands: its next message, subscriptions reached, lists looked at, subscriptions found in them.
PLACE, N_REACHED, N_LISTS, N_NEAR = range(4)


@kernel
def find_reached(ground, words, parts, grid, frame, subscribers, window, fresh, fresh_bits, scratch, near, found, at, n_enough):
    """Write whom the messages of `found` reach, from where `at` stands on, until there are enough; returns DONE or a lack."""
    words, parts, subscribers, window = borrow(words), borrow(parts), borrow(subscribers), borrow(window)
    fresh, fresh_bits, scratch, near, found, at = borrow((fresh, fresh_bits, scratch, near, found, at))
    item, owner, item_start, near_start, figures, worth, known, table, common, repeated = scratch
    n_at_once = _FEWEST_AT_ONCE
    while at[PLACE] < found.last and at[N_REACHED] < n_enough:
        first = at[PLACE]
        last = first + 1
        begin = window.keyword_start[first]
        while (
            last < min(first + n_at_once, found.last) and (window.keyword_start[last + 1] - begin) * LISTS_OF_WORD <= item.size
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
        n_at_once = min(max(n_wanted, _FEWEST_AT_ONCE), MOST_AT_ONCE)
        at[PLACE] = last
        at[N_LISTS] += n_lists
        at[N_NEAR] += n_looked_at
    return DONE
