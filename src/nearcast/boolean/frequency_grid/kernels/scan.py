"""Scan the lists of points: sixteen clauses of a list at once, or the few of a block of the delta.

Helpers get no arrays here: passing one counts its references, which costs more than scanning a list.
"""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.keys import has_clause_keywords, to_float32
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_CAPACITY,
    BLOCK_HEADER,
    BLOCK_SIZE,
    HAS_OTHERS,
    HEADER,
    LINE,
    MORE_KEYWORDS,
    NO_KEYWORD,
    RECORD_BOX,
    RECORD_FIELDS,
    RECORD_OTHERS,
    SINGLE_FIELDS,
)
from nearcast.kernels.compile import kernel
from nearcast.kernels.simd import (
    LANES,
    append_lanes,
    box_lanes,
    copy_lanes,
    equal_lanes,
    lowest_lane,
    prefetch,
    signature_lanes,
)

OUTPUT_FULL = -1
_BORDER = (1 << LANES) - 1


@kernel
def check_exact_box(clauses, at, lanes, x0, y0, x1, y1, x, y):
    """The lanes whose exact box contains the point, among those whose rounded box does, with its border.

    The clause of lane `i` is `clauses[at + i]`.
    """
    unsure = (lanes & _BORDER) & ~(lanes >> LANES)
    lanes_inside = lanes & _BORDER
    while unsure != 0:
        lane = lowest_lane(unsure)
        unsure &= unsure - 1
        clause = clauses[at + lane]
        if not (x0[clause] <= x and x <= x1[clause] and y0[clause] <= y and y <= y1[clause]):
            lanes_inside &= ~(1 << lane)
    return lanes_inside


@kernel
def scan_points(
    run,
    mx,
    my,
    first,
    last,
    list_at,
    n_lists,
    width,
    filters,
    x0,
    y0,
    x1,
    y1,
    delta_match,
    delta_end,
    out,
    n_out,
    begin,
    end,
    pending,
    capacity,
):
    """Write the matches of a group of points: those of the delta, then those of every list.

    Clauses of several keywords whose signature fits go to `pending`; a gap for them follows the matches of their message.
    Returns the new end or OUTPUT_FULL, the end of `pending`, and the number of clauses tested.
    """
    box = run.view(np.float32)
    n_pending, n_tested, n_delta = 0, 0, 0
    for message in range(first, last):
        j = message - first
        x, y = mx[message], my[message]
        x32, y32 = to_float32(x), to_float32(y)
        begin[message] = n_out
        if n_out + n_pending + delta_end[j] - n_delta > capacity:
            return OUTPUT_FULL, n_pending, n_tested
        while n_delta < delta_end[j]:
            out[n_out] = delta_match[n_delta]
            n_out += 1
            n_delta += 1
        pending_before = n_pending
        for i in range(n_lists[2 * j]):
            at = list_at[2 * width * j + i]
            n_covering, n_single, n_multiple = np.int64(run[at]), np.int64(run[at + 1]), np.int64(run[at + 2])
            n_entries = n_covering + n_single + n_multiple
            if n_out + n_pending + n_entries > capacity:
                return OUTPUT_FULL, n_pending, n_tested
            n_tested += n_entries
            at += HEADER
            copy_lanes(run, at, min(LANES, n_covering), out, n_out)
            for k in range(LANES, n_covering, LANES):
                copy_lanes(run, at + k, min(LANES, n_covering - k), out, n_out + k)
            n_out += n_covering
            at += n_covering
            k = 0
            while True:
                lanes = box_lanes(box, at + k, n_single, min(LANES, n_single - k), x32, y32)
                if lanes & _BORDER != lanes >> LANES:
                    lanes = check_exact_box(run, at + 4 * n_single + k, lanes, x0, y0, x1, y1, x, y)
                n_out = append_lanes(run, at + 4 * n_single + k, lanes & _BORDER, out, n_out)
                k += LANES
                if k >= n_single:
                    break
            at += SINGLE_FIELDS * n_single
            records = at + n_multiple
            for k in range(0, n_multiple, LANES):
                fitting = signature_lanes(run, at + k, min(LANES, n_multiple - k), filters, LANES * j)
                while fitting != 0:
                    record = records + RECORD_FIELDS * (k + lowest_lane(fitting))
                    prefetch(run, record)
                    prefetch(run, record + RECORD_FIELDS - 1)
                    pending[n_pending] = record
                    n_pending += 1
                    fitting &= fitting - 1
        end[message] = n_out
        n_out += n_pending - pending_before
        delta_end[j] = n_pending
    return n_out, n_pending, n_tested


@kernel
def check_pending(
    run, pending, pending_end, mx, my, first, last, bounds, clause_keywords, message_start, message_keyword, out, end
):
    """Append the pending clauses that match to the matches of their message; those of message j end at `pending_end[j]`."""
    x0, y0, x1, y1 = bounds
    keyword_start, keyword = clause_keywords
    box = run.view(np.float32)
    checked = 0
    for message in range(first, last):
        x, y = mx[message], my[message]
        x32, y32 = to_float32(x), to_float32(y)
        to = end[message]
        keyword_begin, keyword_end = message_start[message], message_start[message + 1]
        while checked < pending_end[message - first]:
            at = pending[checked]
            checked += 1
            left, bottom, right, top = (
                box[at + RECORD_BOX],
                box[at + RECORD_BOX + 1],
                box[at + RECORD_BOX + 2],
                box[at + RECORD_BOX + 3],
            )
            if not ((left <= x32) & (bottom <= y32) & (x32 <= right) & (y32 <= top)):
                continue
            if not ((left < x32) & (bottom < y32) & (x32 < right) & (y32 < top)):
                clause = run[at]
                if not (x0[clause] <= x and x <= x1[clause] and y0[clause] <= y and y <= y1[clause]):
                    continue
            has_all = True
            for field in range(RECORD_OTHERS, RECORD_FIELDS):
                other = run[at + field]
                if other == NO_KEYWORD:
                    break
                if other == MORE_KEYWORDS:
                    has_all = has_clause_keywords(keyword_start, keyword, run[at], message_keyword, keyword_begin, keyword_end)
                    break
                has_all = False
                for position in range(keyword_begin, keyword_end, LANES):
                    if equal_lanes(message_keyword, position, min(LANES, keyword_end - position), other) != 0:
                        has_all = True
                        break
                if not has_all:
                    break
            if has_all:
                out[to] = run[at]
                to += 1
        end[message] = to


@kernel
def scan_chains(
    block,
    chain_at,
    n_chains,
    width,
    mx,
    my,
    first,
    last,
    filters,
    x0,
    y0,
    x1,
    y1,
    clause_keywords,
    message_start,
    message_keyword,
    match,
    match_end,
):
    """Write the clauses of the delta that a group of points match; those of message j end at `match_end[j]`.

    Returns how many clauses were tested, or OUTPUT_FULL.
    """
    keyword_start, keyword = clause_keywords
    delta_box = block.view(np.float32)
    n_matches, n_tested = 0, 0
    for message in range(first, last):
        j = message - first
        x, y = mx[message], my[message]
        x32, y32 = to_float32(x), to_float32(y)
        begin, end = message_start[message], message_start[message + 1]
        for i in range(n_chains[j]):
            newest = chain_at[2 * width * j + i]
            while newest != 0:
                at = newest * BLOCK_SIZE
                n = np.int64(block[at + 1])
                newest = np.int64(block[at])
                if newest != 0:
                    prefetch(block, newest * BLOCK_SIZE)
                    prefetch(block, newest * BLOCK_SIZE + LINE)
                if n_matches + n > match.size:
                    return OUTPUT_FULL
                entry = at + BLOCK_HEADER
                n_tested += n
                lanes = box_lanes(delta_box, entry, BLOCK_CAPACITY, n, x32, y32)
                fitting = signature_lanes(block, entry + 4 * BLOCK_CAPACITY, n, filters, LANES * j)
                lanes &= fitting | (fitting << LANES)
                if lanes & _BORDER != lanes >> LANES:
                    lanes = check_exact_box(block, entry + 5 * BLOCK_CAPACITY, lanes, x0, y0, x1, y1, x, y)
                lanes &= _BORDER
                while lanes != 0:
                    lane = lowest_lane(lanes)
                    lanes &= lanes - 1
                    clause = block[entry + 5 * BLOCK_CAPACITY + lane]
                    if block[entry + 4 * BLOCK_CAPACITY + lane] < HAS_OTHERS or has_clause_keywords(
                        keyword_start, keyword, clause, message_keyword, begin, end
                    ):
                        match[n_matches] = clause
                        n_matches += 1
        match_end[j] = n_matches
    return n_tested
