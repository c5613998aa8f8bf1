"""What scans of lists gave, settled: the dead and what lacks keywords left out, messages with an area added."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.simd import append_lanes, prefetch
from nearcast.kernels.simd_plain import LANES
from nearcast.moving.moving_grid.kernels.areas import look_for_areas
from nearcast.moving.moving_grid.kernels.keys import has_others
from nearcast.moving.moving_grid.kernels.simd_alive import alive_lanes, fitting_lanes
from nearcast.moving.moving_grid.layout import MASK, NEEDS_WORDS, NO_ROOM, RECORD, WORDS


@kernel
def keep_fitting(record, slots, first, n, alive_bits, masks, words, runs, n_out):
    """Of what was found for a group of clauses, write what lives and has the keywords, as far as masks tell; the new end.

    Where words have to be looked at it is kept apart, up to `kept[j]`, and its words are asked for.
    """
    record, slots, alive_bits, masks = borrow(record), borrow(slots), borrow(alive_bits), borrow(masks)
    words, runs = borrow(words), borrow(runs)
    out, begin, end, found, mark, unsure = runs.message, runs.begin, runs.end, runs.pending, runs.mark, runs.unsure
    at, n_unsure = np.int64(0), np.int64(0)
    for j in range(n):
        asked = np.int64(record[RECORD * np.int64(slots[first + j]) + MASK])
        mask, before = asked & ~NEEDS_WORDS, n_unsure
        begin[first + j] = n_out
        for k in range(at, mark[j], LANES):
            n_here = min(LANES, mark[j] - k)
            if asked == 0:
                n_out = append_lanes(found, k, alive_lanes(found, k, n_here, alive_bits), out, n_out)
                continue
            lanes = fitting_lanes(found, k, n_here, alive_bits, masks, mask)
            if asked & NEEDS_WORDS == 0:
                n_out = append_lanes(found, k, lanes, out, n_out)
            else:
                n_unsure = append_lanes(found, k, lanes, unsure, n_unsure)
        for k in range(before, n_unsure):
            prefetch(words, WORDS * np.int64(unsure[k]))
        end[first + j], runs.kept[j] = n_out, n_unsure
        at = mark[j]
    return n_out


@kernel
def check_words(record, slots, first, n, clause_words, messages, words, runs, n_out):
    """Write what was kept where words have to be looked at, and has them; the new end."""
    record, slots, clause_words, messages = borrow(record), borrow(slots), borrow(clause_words), borrow(messages)
    words, runs = borrow(words), borrow(runs)
    keyword_start, keyword = clause_words
    keyword_first, n_keywords, member = messages
    out, begin, end, unsure = runs.message, runs.begin, runs.end, runs.unsure
    at = np.int64(0)
    for j in range(n):
        clause = slots[first + j]
        place = RECORD * np.int64(clause)
        if record[place + MASK] & NEEDS_WORDS != 0:
            begin[first + j] = n_out
            for k in range(at, runs.kept[j]):
                m = unsure[k]
                there = WORDS * np.int64(m)
                if words[there] < WORDS:
                    has_all = has_others(record, place, keyword_start, keyword, clause, words, there + 1, words[there])
                else:
                    has_all = has_others(record, place, keyword_start, keyword, clause, member, keyword_first[m], n_keywords[m])
                if has_all:
                    out[n_out] = m
                    n_out += 1
            end[first + j] = n_out
        at = runs.kept[j]
    return n_out


@kernel
def add_areas(side, frame, clauses, live, record, slots, first, n, has_areas, old, new, runs, n_out, room):
    """Add the messages with an area that meet `new` and not `old` to the runs of clauses, copied behind.

    Returns the new end, or NO_ROOM, and the messages tested.
    """
    out, begin, end, n_tested = runs.message, runs.begin, runs.end, 0
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
