"""What scans of lists gave, settled: the dead and what lacks keywords left out, messages with an area added."""

from __future__ import annotations

import numpy as np

from nearcast.indexes.moving_grid.areas import look_for_areas
from nearcast.indexes.moving_grid.keys import has_others
from nearcast.indexes.moving_grid.layout import MASK, NEEDS_WORDS, NO_ROOM, RECORD, WORDS
from nearcast.kernels.compile import kernel
from nearcast.kernels.live_messages import lives


@kernel
def check_pending(record, slots, first, n, clause_words, messages, words, pending, marks, begin, end, out, n_out):
    """Write the pending messages that live and have the keywords of their clause; returns the new end."""
    keyword_start, keyword = clause_words
    alive_bits, keyword_first, n_keywords, member = messages
    checked = np.int64(0)
    for j in range(n):
        clause = slots[first + j]
        at = RECORD * np.int64(clause)
        begin[first + j] = n_out
        if record[at + MASK] & NEEDS_WORDS == 0:
            for k in range(checked, marks[j]):
                out[n_out] = pending[k]
                n_out += lives(alive_bits, pending[k])
        else:
            for k in range(checked, marks[j]):
                m = pending[k]
                there = WORDS * np.int64(m)
                if words[there] < WORDS:
                    has_all = has_others(record, at, keyword_start, keyword, clause, words, there + 1, words[there])
                else:
                    has_all = has_others(record, at, keyword_start, keyword, clause, member, keyword_first[m], n_keywords[m])
                if has_all:
                    out[n_out] = m
                    n_out += lives(alive_bits, m)
        checked = marks[j]
        end[first + j] = n_out
    return n_out


@kernel
def add_areas(side, frame, clauses, live, record, slots, first, n, has_areas, old, new, begin, end, out, n_out, room):
    """Add the messages with an area that meet `new` and not `old` to the runs of clauses, copied behind.

    Returns the new end, or NO_ROOM, and the messages tested.
    """
    n_tested = 0
    for j in range(n):
        i = first + j
        if has_areas[j] == 0:
            continue
        size = end[i] - begin[i]
        if n_out + size > room:
            return np.int64(NO_ROOM), n_tested
        for k in range(size):
            out[n_out + k] = out[begin[i] + k]
        box = (new[4 * j], new[4 * j + 1], new[4 * j + 2], new[4 * j + 3])
        besides = (old[4 * j], old[4 * j + 1], old[4 * j + 2], old[4 * j + 3])
        begin[i] = n_out
        n_out, n_more = look_for_areas(side, frame, clauses, live, record, slots[i], box, besides, out, n_out + size, room)
        if n_out == NO_ROOM:
            return np.int64(NO_ROOM), n_tested
        end[i] = n_out
        n_tested += n_more
    return np.int64(n_out), n_tested
