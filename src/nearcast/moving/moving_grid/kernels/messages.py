"""File messages where they are, under each of their keywords that owns clauses."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import home, insert
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.keys import fine_column, fine_place, list_key, mask_bit, place_in_cell, size_class
from nearcast.moving.moving_grid.kernels.lists import (
    drop_dead,
    entry_place,
    has_slots,
    is_full,
    resized,
    wider_room,
)
from nearcast.moving.moving_grid.layout import (
    ALL_CLASSES,
    AREA_CLASS,
    COUNT_SHIFT,
    FINE,
    GROUP,
    LEVEL_BITS,
    LEVEL_MASK,
    MESSAGE_BITS,
    MESSAGES,
    MOST_LEVELS,
    N_ENTRIES,
    N_FILED,
    N_KEYS,
    N_OUTSIDE,
    NO_COORDINATE,
    NO_ROOM,
    ONE_ENTRY,
    ROUTED,
    ROWS,
    SIZE_MASK,
    WORDS,
)

# A full list stays in its room if one of so many was dead.
_MOSTLY = 4


_LANE = (1 << MESSAGE_BITS) - 1


@inline_kernel
def write_message(pool, half, value, message, x, y):
    """A message behind the last one of a list with room, at these coordinates in its cell; `half` is the pool as uint16."""
    there = entry_place(value, MESSAGE_BITS, value & SIZE_MASK)
    lane = there & _LANE
    pool[there + MESSAGES] = message
    half[2 * there - lane] = x
    half[2 * (there + ROWS) - lane] = y


@kernel
def file_message(side, bounds, owner, message, x0, y0, x1, y1):
    """File one message under one owner, in no hurry: returns the new count of the owner, or NO_ROOM."""
    door, slot, pool, free, span, head = side.door, side.slot, side.pool, side.free, side.span, side.head
    level = door[2 * owner + 1] & LEVEL_MASK
    is_point = x0 == x1 and y0 == y1
    column, row = fine_column(x0, bounds, 0), fine_column(y0, bounds, 3)
    own, kind = level, level
    if not is_point:
        n_columns, n_rows = fine_column(x1, bounds, 0) - column, fine_column(y1, bounds, 3) - row
        own = size_class(n_columns, n_rows, level)
        kind = own + AREA_CLASS
        span[2 * own], span[2 * own + 1] = max(span[2 * own], n_columns), max(span[2 * own + 1], n_rows)
    if not has_slots(slot, head, 1):
        return np.int64(NO_ROOM)
    held, place = door, 2 * owner
    if own > 0:
        key = list_key(owner, kind, own, column, row)
        at_key, is_new = insert(slot, key, home(key, slot.size // 2))
        head[N_KEYS] += is_new
        held, place = slot, 2 * at_key + 1
    value = held[place]
    if is_full(value, MESSAGE_BITS):
        value = resized(pool, free, head, value, wider_room(value), MESSAGE_BITS)
        if value == NO_ROOM:
            return np.int64(NO_ROOM)
    # One with an area has no place that a test of points could find.
    x, y = np.int64(NO_COORDINATE), np.int64(0)
    if is_point:
        x = place_in_cell(fine_place(x0, bounds, 0), (column >> (FINE - own)) << (FINE - own), own)
        y = place_in_cell(fine_place(y0, bounds, 3), (row >> (FINE - own)) << (FINE - own), own)
    write_message(pool, pool.view(np.uint16), value, message, x, y)
    held[place] = value + 1
    door[2 * owner + 1] += ONE_ENTRY
    if not is_point:
        door[2 * owner + 1] |= 1 << (LEVEL_BITS + own)
        head[ALL_CLASSES] |= 1 << own
    head[N_ENTRIES] += 1
    return door[2 * owner + 1] >> COUNT_SHIFT


@kernel
def write_words(live, own_bit, slots, words, masks):
    """Keep the keywords of messages, and what their masks have of them, where they are found at once."""
    live, own_bit, slots, words = borrow(live), borrow(own_bit), borrow(slots), borrow(words)
    masks = borrow(masks)
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    for i in range(slots.size):
        at, first, n, mask = WORDS * np.int64(slots[i]), keyword_first[slots[i]], n_keywords[slots[i]], np.int64(0)
        words[at] = n
        for word in range(n):
            mask |= mask_bit(own_bit, keyword[first + word])
            if word < WORDS - 1:
                words[at + 1 + word] = keyword[first + word]
        masks[slots[i]] = mask


@kernel
def ask_for_doors(door, live, slots, first, last):
    """Ask for the doors of the keywords of some messages."""
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    n_owners = door.size // 2
    for i in range(first, last):
        begin = keyword_first[slots[i]]
        for at in range(begin, begin + n_keywords[slots[i]]):
            owner = 1 + np.int64(keyword[at])
            if owner < n_owners:
                prefetch(door, 2 * owner)


@kernel
def file_messages(side, bounds, live, slots, first, skip, width, due):
    """File messages from `first` on, without the first `skip` of the postings from there on.

    Returns the message and the postings to skip where room was short, or the end and 0. `width` is one more than the most
    keywords of a message; owners that want another level go to `due`, which `due[0]` counts.
    """
    side, bounds, live, slots = borrow(side), borrow(bounds), borrow(live), borrow(slots)
    due = borrow(due)
    door, slot, pool, free, limit, head = side.door, side.slot, side.pool, side.free, side.limit, side.head
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    x0, y0, x1, y1, alive_bits = live.x0, live.y0, live.x1, live.y1, live.alive_bits
    n_owners, n_slots, n = door.size // 2, slot.size // 2, slots.size
    owners, members = np.empty(GROUP * width, np.int64), np.empty(GROUP * width, np.int64)
    places, half = np.empty(GROUP * width, np.int64), pool.view(np.uint16)
    xs, ys = np.empty(GROUP * width, np.int64), np.empty(GROUP * width, np.int64)
    ask_for_doors(door, live, slots, first, min(first + GROUP, n))
    for group in range(first, n, GROUP):
        last = min(group + GROUP, n)
        n_postings = 0
        for i in range(group, last):
            message = slots[i]
            begin, end = keyword_first[message], keyword_first[message] + n_keywords[message]
            column, row = fine_column(x0[message], bounds, 0), fine_column(y0[message], bounds, 3)
            across, up = fine_place(x0[message], bounds, 0), fine_place(y0[message], bounds, 3)
            is_point = x0[message] == x1[message] and y0[message] == y1[message]
            is_outside = (
                x0[message] < bounds[0] or y0[message] < bounds[3] or x1[message] > bounds[1] or y1[message] > bounds[4]
            )
            if skip == 0:
                head[N_FILED] += 1
                head[N_OUTSIDE] += is_outside
            for at in range(begin - 1, end):
                owner = np.int64(0) if at < begin else 1 + np.int64(keyword[at])
                if owner >= n_owners or door[2 * owner + 1] & ROUTED == 0:
                    continue
                level = door[2 * owner + 1] & LEVEL_MASK
                place = np.int64(-1)
                if is_point and level > 0:
                    place = list_key(owner, level, level, column, row)
                    prefetch(slot, 2 * home(place, n_slots))
                elif is_point:
                    prefetch(pool, entry_place(door[2 * owner], MESSAGE_BITS, door[2 * owner] & SIZE_MASK))
                owners[n_postings], members[n_postings], places[n_postings] = owner, i - group, place
                shift = FINE - level
                xs[n_postings] = place_in_cell(across, (column >> shift) << shift, level)
                ys[n_postings] = place_in_cell(up, (row >> shift) << shift, level)
                n_postings += 1
        if not has_slots(slot, head, n_postings):
            return group, skip
        for posting in range(skip, n_postings):
            if places[posting] > 0:
                at_key, is_new = insert(slot, places[posting], home(places[posting], n_slots))
                head[N_KEYS] += is_new
                at = 2 * at_key + 1
                places[posting] = at
                prefetch(pool, entry_place(slot[at], MESSAGE_BITS, slot[at] & SIZE_MASK))
        ask_for_doors(door, live, slots, last, min(last + GROUP, n))
        for posting in range(skip, n_postings):
            owner, member, at = owners[posting], members[posting], places[posting]
            message = slots[group + member]
            if x0[message] != x1[message] or y0[message] != y1[message]:
                count = file_message(side, bounds, owner, message, x0[message], y0[message], x1[message], y1[message])
                if count == NO_ROOM:
                    return group, posting
            else:
                value = slot[at] if at > 0 else door[2 * owner]
                if is_full(value, MESSAGE_BITS):
                    n_before = value & SIZE_MASK
                    value = drop_dead(pool, value, alive_bits)
                    n_gone = n_before - (value & SIZE_MASK)
                    if at > 0:
                        slot[at] = value
                    else:
                        door[2 * owner] = value
                    door[2 * owner + 1] -= n_gone * ONE_ENTRY
                    head[N_ENTRIES] -= n_gone
                    if _MOSTLY * n_gone <= n_before:
                        value = resized(pool, free, head, value, wider_room(value), MESSAGE_BITS)
                        if value == NO_ROOM:
                            return group, posting
                write_message(pool, half, value, message, xs[posting], ys[posting])
                if at > 0:
                    slot[at] = value + 1
                else:
                    door[2 * owner] = value + 1
                door[2 * owner + 1] += ONE_ENTRY
                head[N_ENTRIES] += 1
                count = door[2 * owner + 1] >> COUNT_SHIFT
            # An owner may come here again when the dead have left its lists.
            if count == limit[MOST_LEVELS + 1 + (door[2 * owner + 1] & LEVEL_MASK)] and due[0] + 1 < due.size:
                due[0] += 1
                due[due[0]] = owner
        skip = 0
    return n, 0


@kernel
def file_backlog(side, bounds, live, slots, is_new, first, skip, due):
    """File messages under owners that are new to their side; as `file_messages`, message by message."""
    door, limit = side.door, side.limit
    keyword_first, n_keywords, keyword = live.keyword_first, live.n_keywords, live.keyword
    x0, y0, x1, y1 = live.x0, live.y0, live.x1, live.y1
    for i in range(first, slots.size):
        m = slots[i]
        begin, end, n_done = keyword_first[m], keyword_first[m] + n_keywords[m], 0
        for at in range(begin - 1, end):
            owner = np.int64(0) if at < begin else 1 + np.int64(keyword[at])
            if owner >= is_new.size or is_new[owner] == 0:
                continue
            n_done += 1
            if n_done <= skip:
                continue
            count = file_message(side, bounds, owner, m, x0[m], y0[m], x1[m], y1[m])
            if count == NO_ROOM:
                return i, n_done - 1
            if count == limit[MOST_LEVELS + 1 + (door[2 * owner + 1] & LEVEL_MASK)]:
                due[0] += 1
                due[due[0]] = owner
        skip = 0
    return slots.size, 0
