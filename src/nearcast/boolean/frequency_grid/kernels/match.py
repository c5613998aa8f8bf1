"""Match points, a group of messages at a time: each step prefetches the memory that the next one reads.

Steps for a group of messages: directory entries of their keywords; lists, or slots of the table; slots; entries; records of
the clauses with several keywords whose signatures fit. The matches of a message are written one after the other, with a gap
for those whose records are still being fetched.
"""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.areas import match_area
from nearcast.boolean.frequency_grid.kernels.delta import DELTA_LEVEL_MASK, HAS_WIDE, WIDE_CELL, may_contain
from nearcast.boolean.frequency_grid.kernels.keys import fold_of, list_key
from nearcast.boolean.frequency_grid.kernels.scan import check_pending, scan_chains, scan_points
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_SIZE,
    LEVEL_BITS,
    LEVEL_MASK,
    LINE,
    LINES_BITS,
    LINES_MASK,
    MAX_LEVEL,
    N_DELTA,
    SLACK,
)
from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.hashing import home
from nearcast.kernels.keyword_sets import fill_filters, prefetch_directory
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import column_of
from nearcast.kernels.simd import LANES, prefetch

GROUP = 16


@kernel
def find_lists(
    directory, slot, run, frame, max_level, message_start, keyword, mx, my, first, last, width, list_at, keys, n_lists
):
    """Find the lists that each point of a group must scan, by directory and table, and prefetch them. `keys` is scratch."""
    n_anchors, n_slots = directory.size // 2, slot.size // 2
    has_catch_all = directory[0] != 0
    n_columns = 1 << max_level
    for message in range(first, last):
        j = message - first
        begin, end = message_start[message], message_start[message + 1]
        column = column_of(mx[message], frame[0], frame[1], frame[2], n_columns)
        row = column_of(my[message], frame[3], frame[4], frame[5], n_columns)
        fold = fold_of(column, row, max_level)
        base = 2 * width * j
        n_found, n_keys = 0, 0
        for at in range(begin - 1 if has_catch_all else begin, end):
            anchor = 0 if at < begin else 1 + np.int64(keyword[at])
            if anchor >= n_anchors:
                continue
            entry = directory[2 * anchor]
            span = entry >> LEVEL_BITS
            if span != 0 and (directory[2 * anchor + 1] >> fold) & 1:
                for line in range((span & LINES_MASK) + 1):
                    prefetch(run, (span >> LINES_BITS) + LINE * line)
                list_at[base + n_found] = span >> LINES_BITS
                n_found += 1
            level = entry & LEVEL_MASK
            if level != 0:
                shift = max_level - level
                key = list_key(anchor, ((column >> shift) << level) | (row >> shift))
                at = home(key, n_slots)
                prefetch(slot, 2 * at)
                keys[base + 2 * n_keys], keys[base + 2 * n_keys + 1] = key, at
                n_keys += 1
        n_lists[2 * j], n_lists[2 * j + 1] = n_found, n_keys
    for j in range(last - first):
        base = 2 * width * j
        n_found = n_lists[2 * j]
        for i in range(n_lists[2 * j + 1]):
            key, at = keys[base + 2 * i], keys[base + 2 * i + 1]
            while slot[2 * at] != 0 and slot[2 * at] != key:
                at = at + 1 if at + 1 < n_slots else 0
            if slot[2 * at] == key:
                span = slot[2 * at + 1]
                for line in range((span & LINES_MASK) + 1):
                    prefetch(run, (span >> LINES_BITS) + LINE * line)
                list_at[base + n_found] = span >> LINES_BITS
                n_found += 1
        n_lists[2 * j] = n_found


@kernel
def prefetch_chain_keys(level, slot, bloom, frame, max_level, message_start, keyword, mx, my, first, last, width, keys, n_keys):
    """Write the keys of the chains of the delta that each point of a group may have to scan, and prefetch their slots."""
    n_anchors, n_slots, n_columns = level.size, slot.size // 2, 1 << max_level
    for message in range(first, last):
        j = message - first
        begin, end = message_start[message], message_start[message + 1]
        column = column_of(mx[message], frame[0], frame[1], frame[2], n_columns)
        row = column_of(my[message], frame[3], frame[4], frame[5], n_columns)
        next_key = 4 * width * j
        for at in range(begin - 1, end):
            anchor = 0 if at < begin else 1 + np.int64(keyword[at])
            if anchor >= n_anchors:
                continue
            # An anchor without clauses in the delta is treated like level 0, where nothing is filed.
            anchor_level = max(0, np.int64(level[anchor] & DELTA_LEVEL_MASK) - 1)
            shift = max_level - anchor_level
            key = list_key(anchor, ((column >> shift) << anchor_level) | (row >> shift))
            # Always written, and overwritten if the key is not there: a branch on that would be unpredictable.
            keys[next_key], keys[next_key + 1] = key, home(key, n_slots)
            next_key += 2 * may_contain(bloom, key)
            if level[anchor] & HAS_WIDE:
                key = list_key(anchor, WIDE_CELL)
                keys[next_key], keys[next_key + 1] = key, home(key, n_slots)
                next_key += 2
        n_keys[j] = (next_key - 4 * width * j) // 2
        for i in range(n_keys[j]):
            prefetch(slot, 2 * keys[4 * width * j + 2 * i + 1])


@kernel
def find_chains(slot, block, n_messages, width, keys, n_keys, chain_at, n_chains):
    """Find the chains of the delta that each point of a group must scan, and prefetch them."""
    n_slots = slot.size // 2
    for j in range(n_messages):
        n_found = 0
        for i in range(n_keys[j]):
            key, at = keys[4 * width * j + 2 * i], keys[4 * width * j + 2 * i + 1]
            while slot[2 * at] != 0 and slot[2 * at] != key:
                at = at + 1 if at + 1 < n_slots else 0
            newest = slot[2 * at + 1] if slot[2 * at] == key else 0
            if newest != 0:
                prefetch(block, newest * BLOCK_SIZE)
                prefetch(block, newest * BLOCK_SIZE + LINE)
                chain_at[2 * width * j + n_found] = newest
                n_found += 1
        n_chains[j] = n_found


@kernel
def match_messages(grid, delta, clauses, messages, width, first, n_out, scratch):
    """Write the matches of every message from `first` on, to the output from `n_out` on.

    `width` is one more than the most keywords of a message. Stops before a group whose matches do not fit; returns the first
    message that is not done and the end of the output.
    """
    directory, slot, run = borrow(grid.directory), borrow(grid.slot), borrow(grid.run)
    frame, max_level = borrow(grid.frame), grid.head[MAX_LEVEL]
    has_delta = delta.head[N_DELTA] > 0
    delta_level, delta_slot, bloom, block = borrow(delta.level), borrow(delta.slot), borrow(delta.bloom), borrow(delta.block)
    message_start, keyword = borrow(messages.keyword_start), borrow(messages.keyword)
    mx, my, mx1, my1 = borrow(messages.x0), borrow(messages.y0), borrow(messages.x1), borrow(messages.y1)
    x0, y0, x1, y1 = borrow(clauses.x0), borrow(clauses.y0), borrow(clauses.x1), borrow(clauses.y1)
    bounds, clause_keywords = (x0, y0, x1, y1), (borrow(clauses.keyword_start), borrow(clauses.keyword))
    out, begins, ends, counters = borrow(scratch.clause), borrow(scratch.begin), borrow(scratch.end), scratch.counters
    pending = borrow(scratch.pending)
    capacity = min(out.size, pending.size) - SLACK
    n_messages = mx.size
    list_at, keys = np.empty(2 * width * GROUP, np.int64), np.empty(2 * width * GROUP, np.int64)
    n_lists, filters = np.empty(2 * GROUP, np.int64), np.zeros(LANES * GROUP, np.int32)
    delta_match, delta_end, n_chains = (
        np.empty(capacity if has_delta else 0, np.int32),
        np.zeros(GROUP, np.int64),
        np.zeros(GROUP, np.int64),
    )
    chain_at = np.empty(2 * width * GROUP if has_delta else 0, np.int64)
    chain_keys, n_chain_keys = np.empty(4 * width * GROUP + 2 if has_delta else 0, np.int64), np.empty(GROUP, np.int64)
    prefetch_directory(directory, message_start, keyword, first, min(first + GROUP, n_messages))
    group = first
    while group < n_messages:
        if mx[group] != mx1[group] or my[group] != my1[group]:
            begins[group] = n_out
            end, n_visited, n_tested = match_area(grid, delta, clauses, messages, group, out, n_out, capacity)
            if end < 0:
                return group, n_out
            ends[group] = end
            counters[NODES] += n_visited
            counters[CANDIDATES] += n_tested
            group, n_out = group + 1, end
            continue
        last = group + 1
        while last < n_messages and last - group < GROUP and mx[last] == mx1[last] and my[last] == my1[last]:
            last += 1
        if has_delta:
            prefetch_chain_keys(
                delta_level,
                delta_slot,
                bloom,
                frame,
                max_level,
                message_start,
                keyword,
                mx,
                my,
                group,
                last,
                width,
                chain_keys,
                n_chain_keys,
            )
        fill_filters(message_start, keyword, group, last, filters)
        find_lists(
            directory, slot, run, frame, max_level, message_start, keyword, mx, my, group, last, width, list_at, keys, n_lists
        )
        prefetch_directory(directory, message_start, keyword, last, min(last + GROUP, n_messages))
        delta_end[:] = 0
        n_candidates = 0
        if has_delta:
            find_chains(delta_slot, block, last - group, width, chain_keys, n_chain_keys, chain_at, n_chains)
            n_candidates = scan_chains(
                block,
                chain_at,
                n_chains,
                width,
                mx,
                my,
                group,
                last,
                filters,
                x0,
                y0,
                x1,
                y1,
                clause_keywords,
                message_start,
                keyword,
                delta_match,
                delta_end,
            )
            if n_candidates < 0:
                return group, n_out
        end, n_pending, n_tested = scan_points(
            run,
            mx,
            my,
            group,
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
            begins,
            ends,
            pending,
            capacity,
        )
        if end < 0:
            return group, n_out
        if n_pending > 0:
            check_pending(
                run, pending, delta_end, mx, my, group, last, bounds, clause_keywords, message_start, keyword, out, ends
            )
        for j in range(last - group):
            counters[NODES] += n_lists[2 * j] + n_chains[j]
        counters[CANDIDATES] += n_candidates + n_tested
        group, n_out = last, end
    return n_messages, n_out
