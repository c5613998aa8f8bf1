"""Scan what points may match: sixteen clauses of a list at once, or the few of a block of late clauses.

Helpers take no arrays here: passing one counts its references, which costs more than a list takes to scan.
"""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.keys import has_clause_keywords, narrow
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_HEADER,
    BLOCK_ROOM,
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

NO_ROOM = -1
_BORDER = (1 << LANES) - 1


@kernel
def settle_border(clauses, at, lanes, x0, y0, x1, y1, x, y):
    """Of the lanes that hold a point with their rounded border, those whose exact box holds it.

    The clause of lane `i` is `clauses[at + i]`.
    """
    unsure = (lanes & _BORDER) & ~(lanes >> LANES)
    kept = lanes & _BORDER
    while unsure != 0:
        lane = lowest_lane(unsure)
        unsure &= unsure - 1
        clause = clauses[at + lane]
        if not (x0[clause] <= x and x <= x1[clause] and y0[clause] <= y and y <= y1[clause]):
            kept &= ~(1 << lane)
    return kept


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
    late,
    late_end,
    out,
    n_out,
    begin,
    end,
    pending,
    room,
):
    """Write the matches of a group of points: late ones, then those of every list.

    Clauses of several keywords whose signature fits go to `pending`, and leave a gap behind their message's matches.
    Returns the new end or NO_ROOM, the end of what is pending, and the clauses tested.
    """
    box = run.view(np.float32)
    n_pending, n_tested, n_late = 0, 0, 0
    for message in range(first, last):
        j = message - first
        x, y = mx[message], my[message]
        narrow_x, narrow_y = narrow(x), narrow(y)
        begin[message] = n_out
        if n_out + n_pending + late_end[j] - n_late > room:
            return NO_ROOM, n_pending, n_tested
        while n_late < late_end[j]:
            out[n_out] = late[n_late]
            n_out += 1
            n_late += 1
        pending_before = n_pending
        for i in range(n_lists[2 * j]):
            at = list_at[2 * width * j + i]
            n_covering, n_single, n_multiple = np.int64(run[at]), np.int64(run[at + 1]), np.int64(run[at + 2])
            n_entries = n_covering + n_single + n_multiple
            if n_out + n_pending + n_entries > room:
                return NO_ROOM, n_pending, n_tested
            n_tested += n_entries
            at += HEADER
            copy_lanes(run, at, min(LANES, n_covering), out, n_out)
            for k in range(LANES, n_covering, LANES):
                copy_lanes(run, at + k, min(LANES, n_covering - k), out, n_out + k)
            n_out += n_covering
            at += n_covering
            k = 0
            while True:
                lanes = box_lanes(box, at + k, n_single, min(LANES, n_single - k), narrow_x, narrow_y)
                if lanes & _BORDER != lanes >> LANES:
                    lanes = settle_border(run, at + 4 * n_single + k, lanes, x0, y0, x1, y1, x, y)
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
        late_end[j] = n_pending
    return n_out, n_pending, n_tested


@kernel
def check_pending(run, pending, pending_end, mx, my, first, last, sides, words, message_start, message_keyword, out, end):
    """Add the pending clauses that a message matches to its matches; those of message j end at `pending_end[j]`."""
    x0, y0, x1, y1 = sides
    keyword_start, keyword = words
    box = run.view(np.float32)
    checked = 0
    for message in range(first, last):
        x, y = mx[message], my[message]
        narrow_x, narrow_y = narrow(x), narrow(y)
        to = end[message]
        begin_words, end_words = message_start[message], message_start[message + 1]
        while checked < pending_end[message - first]:
            at = pending[checked]
            checked += 1
            left, low, right, high = (
                box[at + RECORD_BOX],
                box[at + RECORD_BOX + 1],
                box[at + RECORD_BOX + 2],
                box[at + RECORD_BOX + 3],
            )
            if not ((left <= narrow_x) & (low <= narrow_y) & (narrow_x <= right) & (narrow_y <= high)):
                continue
            if not ((left < narrow_x) & (low < narrow_y) & (narrow_x < right) & (narrow_y < high)):
                clause = run[at]
                if not (x0[clause] <= x and x <= x1[clause] and y0[clause] <= y and y <= y1[clause]):
                    continue
            has_all = True
            for field in range(RECORD_OTHERS, RECORD_FIELDS):
                wanted = run[at + field]
                if wanted == NO_KEYWORD:
                    break
                if wanted == MORE_KEYWORDS:
                    has_all = has_clause_keywords(keyword_start, keyword, run[at], message_keyword, begin_words, end_words)
                    break
                has_all = False
                for word in range(begin_words, end_words, LANES):
                    if equal_lanes(message_keyword, word, min(LANES, end_words - word), wanted) != 0:
                        has_all = True
                        break
                if not has_all:
                    break
            if has_all:
                out[to] = run[at]
                to += 1
        end[message] = to


@kernel
def scan_late(
    block,
    late_at,
    n_late,
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
    words,
    message_start,
    message_keyword,
    found,
    found_end,
):
    """Write the late clauses that a group of points match; those of message j end at `found_end[j]`.

    Returns how many clauses were tested, or NO_ROOM.
    """
    keyword_start, keyword = words
    late_box = block.view(np.float32)
    n_found, n_tested = 0, 0
    for message in range(first, last):
        j = message - first
        x, y = mx[message], my[message]
        narrow_x, narrow_y = narrow(x), narrow(y)
        begin, end = message_start[message], message_start[message + 1]
        for i in range(n_late[j]):
            newest = late_at[2 * width * j + i]
            while newest != 0:
                at = newest * BLOCK_SIZE
                n = np.int64(block[at + 1])
                newest = np.int64(block[at])
                if newest != 0:
                    prefetch(block, newest * BLOCK_SIZE)
                    prefetch(block, newest * BLOCK_SIZE + LINE)
                if n_found + n > found.size:
                    return NO_ROOM
                entry = at + BLOCK_HEADER
                n_tested += n
                lanes = box_lanes(late_box, entry, BLOCK_ROOM, n, narrow_x, narrow_y)
                fitting = signature_lanes(block, entry + 4 * BLOCK_ROOM, n, filters, LANES * j)
                lanes &= fitting | (fitting << LANES)
                if lanes & _BORDER != lanes >> LANES:
                    lanes = settle_border(block, entry + 5 * BLOCK_ROOM, lanes, x0, y0, x1, y1, x, y)
                lanes &= _BORDER
                while lanes != 0:
                    lane = lowest_lane(lanes)
                    lanes &= lanes - 1
                    clause = block[entry + 5 * BLOCK_ROOM + lane]
                    if block[entry + 4 * BLOCK_ROOM + lane] < HAS_OTHERS or has_clause_keywords(
                        keyword_start, keyword, clause, message_keyword, begin, end
                    ):
                        found[n_found] = clause
                        n_found += 1
        found_end[j] = n_found
    return n_tested
