"""File messages at their location, under each of their keywords that is the anchor of clauses."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import home, insert
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.keys import (
    cell_coordinate,
    fine_column,
    fine_coordinate,
    list_key,
    mask_bit,
    size_class,
)
from nearcast.moving.moving_grid.kernels.lists import (
    drop_dead,
    entry_position,
    has_slots,
    is_full,
    next_capacity,
    resize_list,
)
from nearcast.moving.moving_grid.layout import (
    ALL_CLASSES,
    COUNT_SHIFT,
    FINE,
    GROUP,
    KEYWORD_LINE,
    LEVEL_BITS,
    LEVEL_MASK,
    MESSAGE_BITS,
    MESSAGES,
    MOST_LEVELS,
    N_ENTRIES,
    N_FILED,
    N_KEYS,
    N_OUTSIDE,
    NO_CAPACITY,
    NO_COORDINATE,
    ONE_ENTRY,
    RANGE_CLASS,
    ROUTED,
    ROWS,
    SIZE_MASK,
)

# A full list keeps its capacity if at least one of this many messages was dead.
_DEAD_SHARE = 4


_LANE = (1 << MESSAGE_BITS) - 1


@inline_kernel
def write_message(pool, half, value, message, x, y):
    """Append a message to a list that is not full, with coordinates in its cell; `half` is the pool as uint16."""
    entry_at = entry_position(value, MESSAGE_BITS, value & SIZE_MASK)
    lane = entry_at & _LANE
    pool[entry_at + MESSAGES] = message
    half[2 * entry_at - lane] = x
    half[2 * (entry_at + ROWS) - lane] = y


@kernel
def file_message(grid, frame, anchor, message, x0, y0, x1, y1):
    """File one message under one anchor, without prefetching; returns the number of entries of the anchor, or NO_CAPACITY."""
    directory, slot, pool, free, span, head = grid.directory, grid.slot, grid.pool, grid.free, grid.span, grid.head
    level = directory[2 * anchor + 1] & LEVEL_MASK
    is_point = x0 == x1 and y0 == y1
    column, row = fine_column(x0, frame, 0), fine_column(y0, frame, 3)
    fit, kind = level, level
    if not is_point:
        n_columns, n_rows = fine_column(x1, frame, 0) - column, fine_column(y1, frame, 3) - row
        fit = size_class(n_columns, n_rows, level)
        kind = fit + RANGE_CLASS
        span[2 * fit], span[2 * fit + 1] = (
            max(span[2 * fit], n_columns),
            max(span[2 * fit + 1], n_rows),
        )
    if not has_slots(slot, head, 1):
        return np.int64(NO_CAPACITY)
    holder, index = directory, 2 * anchor
    if fit > 0:
        key = list_key(anchor, kind, fit, column, row)
        at_key, is_new = insert(slot, key, home(key, slot.size // 2))
        head[N_KEYS] += is_new
        holder, index = slot, 2 * at_key + 1
    value = holder[index]
    if is_full(value, MESSAGE_BITS):
        value = resize_list(pool, free, head, value, next_capacity(value), MESSAGE_BITS)
        if value == NO_CAPACITY:
            return np.int64(NO_CAPACITY)
    # Tests of points must not find a range message.
    x, y = np.int64(NO_COORDINATE), np.int64(0)
    if is_point:
        x = cell_coordinate(fine_coordinate(x0, frame, 0), (column >> (FINE - fit)) << (FINE - fit), fit)
        y = cell_coordinate(fine_coordinate(y0, frame, 3), (row >> (FINE - fit)) << (FINE - fit), fit)
    write_message(pool, pool.view(np.uint16), value, message, x, y)
    holder[index] = value + 1
    directory[2 * anchor + 1] += ONE_ENTRY
    if not is_point:
        directory[2 * anchor + 1] |= 1 << (LEVEL_BITS + fit)
        head[ALL_CLASSES] |= 1 << fit
    head[N_ENTRIES] += 1
    return directory[2 * anchor + 1] >> COUNT_SHIFT


@kernel
def write_keyword_lines(live, reserved_bit, slots, keyword_lines, masks):
    """Write the keyword line and the mask of each message."""
    live, reserved_bit, slots, keyword_lines = borrow(live), borrow(reserved_bit), borrow(slots), borrow(keyword_lines)
    masks = borrow(masks)
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    for i in range(slots.size):
        at, first, n, mask = KEYWORD_LINE * np.int64(slots[i]), keyword_first[slots[i]], n_keywords[slots[i]], np.int64(0)
        keyword_lines[at] = n
        for position in range(n):
            mask |= mask_bit(reserved_bit, keyword[first + position])
            if position < KEYWORD_LINE - 1:
                keyword_lines[at + 1 + position] = keyword[first + position]
        masks[slots[i]] = mask


@kernel
def prefetch_directory(directory, live, slots, first, last):
    """Prefetch the directory entries of the keywords of these messages."""
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    n_anchors = directory.size // 2
    for i in range(first, last):
        begin = keyword_first[slots[i]]
        for at in range(begin, begin + n_keywords[slots[i]]):
            anchor = 1 + np.int64(keyword[at])
            if anchor < n_anchors:
                prefetch(directory, 2 * anchor)


@kernel
def file_messages(grid, frame, live, slots, first, skip, width, to_relevel):
    """File messages from `first` on, except the first `skip` of their postings.

    Returns the message and the postings to skip if capacity ran out, else the end and 0. `width` is one more than the most
    keywords of a message. Anchors whose grid needs another level go to `to_relevel`, which `to_relevel[0]` counts.
    """
    grid, frame, live, slots = borrow(grid), borrow(frame), borrow(live), borrow(slots)
    to_relevel = borrow(to_relevel)
    directory, slot, pool, free, limit, head = grid.directory, grid.slot, grid.pool, grid.free, grid.limit, grid.head
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    x0, y0, x1, y1, alive_bits = live.x0, live.y0, live.x1, live.y1, live.alive_bits
    n_anchors, n_slots, n = directory.size // 2, slot.size // 2, slots.size
    anchors, members = np.empty(GROUP * width, np.int64), np.empty(GROUP * width, np.int64)
    targets, half = np.empty(GROUP * width, np.int64), pool.view(np.uint16)
    xs, ys = np.empty(GROUP * width, np.int64), np.empty(GROUP * width, np.int64)
    prefetch_directory(directory, live, slots, first, min(first + GROUP, n))
    for group in range(first, n, GROUP):
        last = min(group + GROUP, n)
        n_postings = 0
        for i in range(group, last):
            message = slots[i]
            begin, end = keyword_first[message], keyword_first[message] + n_keywords[message]
            column, row = fine_column(x0[message], frame, 0), fine_column(y0[message], frame, 3)
            across, up = fine_coordinate(x0[message], frame, 0), fine_coordinate(y0[message], frame, 3)
            is_point = x0[message] == x1[message] and y0[message] == y1[message]
            is_outside = x0[message] < frame[0] or y0[message] < frame[3] or x1[message] > frame[1] or y1[message] > frame[4]
            if skip == 0:
                head[N_FILED] += 1
                head[N_OUTSIDE] += is_outside
            for at in range(begin - 1, end):
                anchor = np.int64(0) if at < begin else 1 + np.int64(keyword[at])
                if anchor >= n_anchors or directory[2 * anchor + 1] & ROUTED == 0:
                    continue
                level = directory[2 * anchor + 1] & LEVEL_MASK
                index = np.int64(-1)
                if is_point and level > 0:
                    index = list_key(anchor, level, level, column, row)
                    prefetch(slot, 2 * home(index, n_slots))
                elif is_point:
                    prefetch(pool, entry_position(directory[2 * anchor], MESSAGE_BITS, directory[2 * anchor] & SIZE_MASK))
                anchors[n_postings], members[n_postings], targets[n_postings] = anchor, i - group, index
                shift = FINE - level
                xs[n_postings] = cell_coordinate(across, (column >> shift) << shift, level)
                ys[n_postings] = cell_coordinate(up, (row >> shift) << shift, level)
                n_postings += 1
        if not has_slots(slot, head, n_postings):
            return group, skip
        for posting in range(skip, n_postings):
            if targets[posting] > 0:
                at_key, is_new = insert(slot, targets[posting], home(targets[posting], n_slots))
                head[N_KEYS] += is_new
                at = 2 * at_key + 1
                targets[posting] = at
                prefetch(pool, entry_position(slot[at], MESSAGE_BITS, slot[at] & SIZE_MASK))
        prefetch_directory(directory, live, slots, last, min(last + GROUP, n))
        for posting in range(skip, n_postings):
            anchor, member, at = anchors[posting], members[posting], targets[posting]
            message = slots[group + member]
            if x0[message] != x1[message] or y0[message] != y1[message]:
                count = file_message(grid, frame, anchor, message, x0[message], y0[message], x1[message], y1[message])
                if count == NO_CAPACITY:
                    return group, posting
            else:
                value = slot[at] if at > 0 else directory[2 * anchor]
                if is_full(value, MESSAGE_BITS):
                    n_before = value & SIZE_MASK
                    value = drop_dead(pool, value, alive_bits)
                    n_dropped = n_before - (value & SIZE_MASK)
                    if at > 0:
                        slot[at] = value
                    else:
                        directory[2 * anchor] = value
                    directory[2 * anchor + 1] -= n_dropped * ONE_ENTRY
                    head[N_ENTRIES] -= n_dropped
                    if _DEAD_SHARE * n_dropped <= n_before:
                        value = resize_list(pool, free, head, value, next_capacity(value), MESSAGE_BITS)
                        if value == NO_CAPACITY:
                            return group, posting
                write_message(pool, half, value, message, xs[posting], ys[posting])
                if at > 0:
                    slot[at] = value + 1
                else:
                    directory[2 * anchor] = value + 1
                directory[2 * anchor + 1] += ONE_ENTRY
                head[N_ENTRIES] += 1
                count = directory[2 * anchor + 1] >> COUNT_SHIFT
            # An anchor may come here again after its dead messages were dropped.
            if (
                count == limit[MOST_LEVELS + 1 + (directory[2 * anchor + 1] & LEVEL_MASK)]
                and to_relevel[0] + 1 < to_relevel.size
            ):
                to_relevel[0] += 1
                to_relevel[to_relevel[0]] = anchor
        skip = 0
    return n, 0


@kernel
def file_backlog(grid, frame, live, slots, is_new, first, skip, to_relevel):
    """File messages under anchors that are new to their grid; as `file_messages`, one message at a time."""
    directory, limit = grid.directory, grid.limit
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    x0, y0, x1, y1 = live.x0, live.y0, live.x1, live.y1
    for i in range(first, slots.size):
        m = slots[i]
        begin, end, n_done = keyword_first[m], keyword_first[m] + n_keywords[m], 0
        for at in range(begin - 1, end):
            anchor = np.int64(0) if at < begin else 1 + np.int64(keyword[at])
            if anchor >= is_new.size or is_new[anchor] == 0:
                continue
            n_done += 1
            if n_done <= skip:
                continue
            count = file_message(grid, frame, anchor, m, x0[m], y0[m], x1[m], y1[m])
            if count == NO_CAPACITY:
                return i, n_done - 1
            if count == limit[MOST_LEVELS + 1 + (directory[2 * anchor + 1] & LEVEL_MASK)]:
                to_relevel[0] += 1
                to_relevel[to_relevel[0]] = anchor
        skip = 0
    return slots.size, 0
