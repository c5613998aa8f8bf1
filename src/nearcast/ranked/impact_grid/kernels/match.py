"""Which lists some messages are to be looked for in, and a look at each of these lists."""

from __future__ import annotations

import math

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import append_lanes, move_within, prefetch
from nearcast.kernels.simd_plain import LANES
from nearcast.kernels.sorting import sort_into
from nearcast.ranked.impact_grid.kernels.build import cell_key, finest_x, finest_y, home_of, may_be_there
from nearcast.ranked.impact_grid.kernels.keyword_stats import LAST_SLOT, first_edge, n_edges, shared_slot, slot_in
from nearcast.ranked.impact_grid.kernels.packing import columns_before
from nearcast.ranked.impact_grid.kernels.score_candidates import score_near
from nearcast.ranked.impact_grid.kernels.simd_near import near_in_plane, near_on_sphere
from nearcast.ranked.impact_grid.kernels.simd_near_plain import (
    LOSS,
    MOST,
    MOST_OWN,
    MOST_WEIGHT,
    MOST_WORTH,
    N_SLOTS,
    OWN,
    X,
    Y,
    Z,
)
from nearcast.ranked.impact_grid.layout import (
    COUNT_BITS,
    EDGES,
    FIRST_BUCKET,
    FREQUENCY,
    MOST_EDGES,
    MOST_ENTRIES,
    N_COLUMNS,
    N_LEVELS,
    N_PARTS,
    PER_LINE,
)
from nearcast.ranked.kernels.bounds import coordinates, gather_repeated, heft_with
from nearcast.ranked.kernels.layouts import RECORD

LACKS_ROOM = -1
# Of a list so many lines are asked for ahead of their use, and so many lists.
_MOST_ASKED, _LISTS_AHEAD = 24, 6
_SLOTS_AHEAD = 32
# Less than the least that rounding in 32 bits takes from a square.
_ROUNDED_DOWN = 1.0 - 2e-5
_ROUNDED_UP = 1.0 + 1e-6
_HALF, _LOWER_HALF = 32, (1 << 32) - 1
# Numbers that `describe` notes of each word.
N_KNOWN = 3


@kernel
def find_lists(words, parts, grid, window, first, last, repeated, item, owner, item_start):
    """Write the lists that each message is to be looked for in, 0 for none, and for which of its words; returns how many.

    `repeated` is scratch, see `gather_repeated`.
    """
    words, window, parts = borrow(words), borrow(window), borrow(parts)
    item, owner, item_start, repeated = borrow((item, owner, item_start, repeated))
    row, edge, frequency, keyword = words.row, words.edge, words.row[FREQUENCY::N_COLUMNS], window.keyword
    n_known = row.size // N_COLUMNS
    begin, end = window.keyword_start[first], window.keyword_start[last]
    for at in range(begin, end):
        if keyword[at] < n_known:
            prefetch(row, int(keyword[at]) * N_COLUMNS)
    for at in range(begin, end):
        if keyword[at] < n_known:
            of = int(keyword[at]) * N_COLUMNS
            ask_for_buckets(parts[0].bucket, row[of + FIRST_BUCKET])
            ask_for_buckets(parts[1].bucket, row[of + FIRST_BUCKET + 1])
            prefetch(edge, first_edge(int(row[of + EDGES])))
    n = 0
    for place in range(first, last):
        item_start[place - first] = n
        column, line = finest_x(grid, window.x[place]), finest_y(grid, window.y[place])
        n_repeated = gather_repeated(frequency, window, place, repeated)
        for at in range(window.keyword_start[place], window.keyword_start[place + 1]):
            if keyword[at] >= n_known:
                continue
            of = int(keyword[at]) * N_COLUMNS
            packed = int(row[of + EDGES])
            n_below, heft = 0, heft_with(frequency, window, place, at, repeated, n_repeated)
            while n_below < n_edges(packed) and edge[first_edge(packed) + n_below] <= heft:
                n_below += 1
            n = gather_lists(parts[0], int(row[of + FIRST_BUCKET]), n_below, column, line, at, item, owner, n)
            # The keys of the second part are told apart by their sign; see `resolve`.
            n = gather_lists(parts[1], int(row[of + FIRST_BUCKET + 1]), n_below, column, line, -1 - at, item, owner, n)
    item_start[last - first] = n
    resolve(parts[0].slot, parts[1].slot, parts[0].entry, parts[1].entry, item, owner, n)
    return n


@inline_kernel
def ask_for_buckets(bucket, first_bucket):
    if first_bucket != -1:
        prefetch(bucket, 2 * (first_bucket if first_bucket >= 0 else -2 - first_bucket))


@inline_kernel
def gather_lists(part, first_bucket, n_below, column, line, of, item, owner, n):
    """Write the lists for everywhere, and -1 - the key of each cell that may be there; returns how many there are now."""
    if first_bucket == -1:
        return n
    bucket, sieve = part.bucket, part.sieve
    begin = first_bucket
    if first_bucket < 0:
        begin, n_below = -2 - first_bucket, 0
    for b in range(begin, begin + n_below + 1):
        if bucket[2 * b] != 0:
            item[n], owner[n] = bucket[2 * b], of
            ask_for_list(part.entry, bucket[2 * b], 2 * PER_LINE)
            n += 1
        levels = bucket[2 * b + 1] >> 1
        level = 1
        while levels != 0:
            if levels & 1:
                key = cell_key(b, level, column, line)
                # Without a branch: about every second cell is there.
                item[n], owner[n] = -1 - key, of
                n += may_be_there(sieve, key)
            levels >>= 1
            level += 1
    return n


@inline_kernel
def ask_for_list(entry, listed, n):
    """Have the first `n` numbers of a list brought from memory."""
    begin = (listed >> COUNT_BITS) * PER_LINE
    for at in range(begin, begin + n, PER_LINE):
        prefetch(entry, at)


@inline_kernel
def resolve(slot0, slot1, entry0, entry1, item, owner, n):
    """Put lists in the place of keys, 0 where a cell has none."""
    for i in range(n):
        ahead = i + _SLOTS_AHEAD
        if ahead < n and item[ahead] < 0:
            slot = slot0 if owner[ahead] >= 0 else slot1
            prefetch(slot, 2 * home_of(-1 - item[ahead], slot.size // 2))
        if item[i] < 0:
            key = -1 - item[i]
            if owner[i] >= 0:
                item[i] = list_of(slot0, key)
                ask_for_list(entry0, item[i], PER_LINE)
            else:
                item[i] = list_of(slot1, key)
                ask_for_list(entry1, item[i], PER_LINE)


@inline_kernel
def list_of(slot, key):
    last = slot.size // 2 - 1
    at = home_of(key, last + 1)
    while slot[2 * at] != key + 1:
        if slot[2 * at] == 0:
            return 0
        at = (at + 1) & last
    return slot[2 * at + 1]


@kernel
def scan_lists(words, parts, grid, frame, window, first, last, lists, figures, worth, known, record, near, near_start):
    """Write the subscriptions that each message may reach; returns how many lists there were, or LACKS_ROOM."""
    words, window, parts = borrow(words), borrow(window), borrow(parts)
    item, owner, item_start = borrow(lists)
    figures, worth, known, record, near, near_start = borrow((figures, worth, known, record, near, near_start))
    entry0, entry1 = parts[0].entry, parts[1].entry
    n_columns = columns_before(grid.is_lonlat) + 1
    n, n_lists = 0, 0
    n_items = item_start[last - first]
    for place in range(first, last):
        near_start[place - first] = n
        describe(words, grid, frame, window, place, figures, worth, known)
        begin = window.keyword_start[place]
        for i in range(item_start[place - first], item_start[place - first + 1]):
            ahead = i + _LISTS_AHEAD
            if ahead < n_items:
                n_asked = min((item[ahead] & MOST_ENTRIES) * n_columns, _MOST_ASKED * PER_LINE)
                ask_for_list(entry0 if owner[ahead] >= 0 else entry1, item[ahead], n_asked)
            n_here = item[i] & MOST_ENTRIES
            if n + n_here + LANES > near.size:
                return LACKS_ROOM
            n_lists += n_here != 0
            own = owner[i]
            if own >= 0:
                n = scan_one(entry0, item[i], figures, worth, own - begin, grid.is_lonlat, near, n)
            else:
                n = scan_one(entry1, item[i], figures, worth, -1 - own - begin, grid.is_lonlat, near, n)
        for i in range(near_start[place - first], n):
            prefetch(record, int(near[i]) * RECORD)
    near_start[last - first] = n
    return n_lists


@inline_kernel
def scan_one(entry, listed, figures, worth, word, is_lonlat, near, n):
    """Append the subscriptions of a list that may be reached; returns how many there are then."""
    at, n_left = (listed >> COUNT_BITS) * PER_LINE, listed & MOST_ENTRIES
    while n_left > 0:
        n_here = min(LANES, n_left)
        if is_lonlat:
            lanes = near_on_sphere(entry, at, n_here, figures, worth, word)
        else:
            lanes = near_in_plane(entry, at, n_here, figures, worth, word)
        at += columns_before(is_lonlat) * n_here
        # Without a branch: every third time there is somebody.
        n = append_lanes(entry, at, lanes, near, n)
        at += n_here
        n_left -= n_here
    return n


@inline_kernel
def describe(words, grid, frame, window, place, figures, worth, known):
    """Write the figures of a message, and for each of its words what the others are worth.

    `known` is scratch: frequencies, slots, and their order.
    """
    row, keyword, value, n_times = words.row, window.keyword, window.value, window.n_times
    n_known = row.size // N_COLUMNS
    begin, length = window.keyword_start[place], window.length[place]
    n_words = window.keyword_start[place + 1] - begin
    a, b, c = coordinates(frame, window.x[place], window.y[place])
    figures[X], figures[Y], figures[Z] = (a - grid.low) / grid.step, (b - grid.low) / grid.step, (c - grid.low) / grid.step
    figures[LOSS], figures[MOST] = (grid.loss / MOST_WEIGHT) ** 2 * _ROUNDED_DOWN, 1.0 / MOST_WEIGHT**2 * _ROUNDED_DOWN
    for i in range(n_words):
        own = int(keyword[begin + i])
        figures[OWN + i] = math.sqrt(value[begin + i] * n_times[begin + i]) / (length * MOST_OWN)
        frequency, slot = 0, shared_slot(own)
        if own < n_known:
            frequency, slot = int(row[own * N_COLUMNS + FREQUENCY]), slot_in(int(row[own * N_COLUMNS + EDGES]))
        # Words come by number: of equal frequency the lower one is the rarer.
        known[i], known[n_words + i] = frequency << _HALF | i, slot
    sort_into(known, 0, n_words, known, 2 * n_words)
    before = -1
    for rank in range(n_words - 1, -1, -1):
        # What the more frequent words are worth: those of the next more frequent one, and that one itself.
        i = known[2 * n_words + rank] & _LOWER_HALF
        of = i * N_SLOTS
        if before < 0:
            for slot in range(N_SLOTS):
                worth[of + slot] = 0
            worth[of + LAST_SLOT] = MOST_WORTH
        else:
            from_there = before * N_SLOTS
            move_within(worth, from_there, from_there + N_SLOTS, of - from_there)
            at = of + known[n_words + before]
            worth[at] = max(worth[at], worth_of(figures[OWN + before]))
        before = i


@inline_kernel
def worth_of(own):
    """What a word is worth as another one, by its figure as the own one; nothing is worth more than all."""
    return min(math.ceil(own * MOST_OWN * MOST_WORTH * _ROUNDED_UP), MOST_WORTH)


# -- Whom messages reach: which lists to look at, a look at each, then the scores.
#
# These steps are done for some messages at a time: what the next step reads is on its way from memory, and still near.

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
