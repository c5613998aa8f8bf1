"""Find the subscriptions that messages reach: choose lists, scan them, score the candidates.

The steps run for a few messages at a time, so that what the next step reads is prefetched, and still in the cache.
"""

from __future__ import annotations

import math

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import append_lanes, move_within, prefetch
from nearcast.kernels.simd_plain import LANES
from nearcast.kernels.sorting import sort_into
from nearcast.ranked.impact_grid.kernels.build import cell_key, finest_x, finest_y, home_of, may_contain
from nearcast.ranked.impact_grid.kernels.keyword_stats import LAST_SLOT, first_edge, n_edges, shared_slot, slot_in
from nearcast.ranked.impact_grid.kernels.packing import columns_before
from nearcast.ranked.impact_grid.kernels.score_candidates import score_near
from nearcast.ranked.impact_grid.kernels.simd_near import near_in_plane, near_on_sphere
from nearcast.ranked.impact_grid.kernels.simd_near_plain import (
    LOSS,
    MAX_RELATIVE_WEIGHT,
    MOST,
    MOST_OWN,
    MOST_WEIGHT,
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
from nearcast.ranked.kernels.bounds import coordinates, gather_repeated, message_weight_at
from nearcast.ranked.kernels.layouts import RECORD

LACKS_CAPACITY = -1
# Lines of a list that are prefetched, and lists ahead.
_MAX_PREFETCHED, _LISTS_AHEAD = 24, 6
_SLOTS_AHEAD = 32
# Less than rounding in 32 bits leaves of a square.
_ROUNDED_DOWN = 1.0 - 2e-5
_ROUNDED_UP = 1.0 + 1e-6
_HALF, _LOWER_HALF = 32, (1 << 32) - 1
# Numbers that `describe_message` writes per word.
N_WORD_FACTS = 3


@kernel
def find_lists(words, parts, grid, window, first, last, repeated, item, item_word, item_start):
    """Write the lists that each message must scan (0: none), and the word each is for; returns their number.

    `item_word` is the position of the word, or -1 - position for lists of the delta part. `repeated` is scratch.
    """
    words, window, parts = borrow(words), borrow(window), borrow(parts)
    item, item_word, item_start, repeated = borrow((item, item_word, item_start, repeated))
    row, edge, frequency, keyword = words.row, words.edge, words.row[FREQUENCY::N_COLUMNS], window.keyword
    n_keywords = row.size // N_COLUMNS
    begin, end = window.keyword_start[first], window.keyword_start[last]
    for at in range(begin, end):
        if keyword[at] < n_keywords:
            prefetch(row, int(keyword[at]) * N_COLUMNS)
    for at in range(begin, end):
        if keyword[at] < n_keywords:
            of = int(keyword[at]) * N_COLUMNS
            prefetch_buckets(parts[0].bucket, row[of + FIRST_BUCKET])
            prefetch_buckets(parts[1].bucket, row[of + FIRST_BUCKET + 1])
            prefetch(edge, first_edge(int(row[of + EDGES])))
    n = 0
    for position in range(first, last):
        item_start[position - first] = n
        column, row_at = finest_x(grid, window.x[position]), finest_y(grid, window.y[position])
        n_repeated = gather_repeated(frequency, window, position, repeated)
        for at in range(window.keyword_start[position], window.keyword_start[position + 1]):
            if keyword[at] >= n_keywords:
                continue
            of = int(keyword[at]) * N_COLUMNS
            packed = int(row[of + EDGES])
            n_below, message_weight = 0, message_weight_at(frequency, window, position, at, repeated, n_repeated)
            while n_below < n_edges(packed) and edge[first_edge(packed) + n_below] <= message_weight:
                n_below += 1
            n = gather_lists(parts[0], int(row[of + FIRST_BUCKET]), n_below, column, row_at, at, item, item_word, n)
            # Lists of the delta part are marked by the sign; see `resolve`.
            n = gather_lists(parts[1], int(row[of + FIRST_BUCKET + 1]), n_below, column, row_at, -1 - at, item, item_word, n)
    item_start[last - first] = n
    resolve(parts[0].slot, parts[1].slot, parts[0].entry, parts[1].entry, item, item_word, n)
    return n


@inline_kernel
def prefetch_buckets(bucket, first_bucket):
    if first_bucket != -1:
        prefetch(bucket, 2 * (first_bucket if first_bucket >= 0 else -2 - first_bucket))


@inline_kernel
def gather_lists(part, first_bucket, n_below, column, row_at, of, item, item_word, n):
    """Append the lists for everywhere, and -1 - key for each cell that may exist; returns how many there are then."""
    if first_bucket == -1:
        return n
    bucket, bloom = part.bucket, part.bloom
    begin = first_bucket
    if first_bucket < 0:
        begin, n_below = -2 - first_bucket, 0
    for b in range(begin, begin + n_below + 1):
        if bucket[2 * b] != 0:
            item[n], item_word[n] = bucket[2 * b], of
            prefetch_list(part.entry, bucket[2 * b], 2 * PER_LINE)
            n += 1
        levels = bucket[2 * b + 1] >> 1
        level = 1
        while levels != 0:
            if levels & 1:
                key = cell_key(b, level, column, row_at)
                # Without a branch: about every second cell exists.
                item[n], item_word[n] = -1 - key, of
                n += may_contain(bloom, key)
            levels >>= 1
            level += 1
    return n


@inline_kernel
def prefetch_list(entry, packed_list, n):
    """Prefetch the first `n` numbers of a list."""
    begin = (packed_list >> COUNT_BITS) * PER_LINE
    for at in range(begin, begin + n, PER_LINE):
        prefetch(entry, at)


@inline_kernel
def resolve(slot0, slot1, entry0, entry1, item, item_word, n):
    """Replace keys by lists; 0 if the cell has none."""
    for i in range(n):
        ahead = i + _SLOTS_AHEAD
        if ahead < n and item[ahead] < 0:
            slot = slot0 if item_word[ahead] >= 0 else slot1
            prefetch(slot, 2 * home_of(-1 - item[ahead], slot.size // 2))
        if item[i] < 0:
            key = -1 - item[i]
            if item_word[i] >= 0:
                item[i] = list_of(slot0, key)
                prefetch_list(entry0, item[i], PER_LINE)
            else:
                item[i] = list_of(slot1, key)
                prefetch_list(entry1, item[i], PER_LINE)


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
def scan_lists(
    words,
    parts,
    grid,
    frame,
    window,
    first,
    last,
    lists,
    figures,
    relative_weight,
    word_facts,
    record,
    candidate,
    candidate_start,
):
    """Write the candidates of each message; returns the number of lists scanned, or LACKS_CAPACITY."""
    words, window, parts = borrow(words), borrow(window), borrow(parts)
    item, item_word, item_start = borrow(lists)
    figures, relative_weight, word_facts, record, candidate, candidate_start = borrow(
        (figures, relative_weight, word_facts, record, candidate, candidate_start)
    )
    entry0, entry1 = parts[0].entry, parts[1].entry
    n_columns = columns_before(grid.is_lonlat) + 1
    n, n_lists = 0, 0
    n_items = item_start[last - first]
    for position in range(first, last):
        candidate_start[position - first] = n
        describe_message(words, grid, frame, window, position, figures, relative_weight, word_facts)
        begin = window.keyword_start[position]
        for i in range(item_start[position - first], item_start[position - first + 1]):
            ahead = i + _LISTS_AHEAD
            if ahead < n_items:
                n_to_prefetch = min((item[ahead] & MOST_ENTRIES) * n_columns, _MAX_PREFETCHED * PER_LINE)
                prefetch_list(entry0 if item_word[ahead] >= 0 else entry1, item[ahead], n_to_prefetch)
            n_entries = item[i] & MOST_ENTRIES
            if n + n_entries + LANES > candidate.size:
                return LACKS_CAPACITY
            n_lists += n_entries != 0
            word = item_word[i]
            if word >= 0:
                n = scan_one(entry0, item[i], figures, relative_weight, word - begin, grid.is_lonlat, candidate, n)
            else:
                n = scan_one(entry1, item[i], figures, relative_weight, -1 - word - begin, grid.is_lonlat, candidate, n)
        for i in range(candidate_start[position - first], n):
            prefetch(record, int(candidate[i]) * RECORD)
    candidate_start[last - first] = n
    return n_lists


@inline_kernel
def scan_one(entry, packed_list, figures, relative_weight, word, is_lonlat, candidate, n):
    """Append the candidates of a list; returns how many there are then."""
    at, n_left = (packed_list >> COUNT_BITS) * PER_LINE, packed_list & MOST_ENTRIES
    while n_left > 0:
        n_entries = min(LANES, n_left)
        if is_lonlat:
            lanes = near_on_sphere(entry, at, n_entries, figures, relative_weight, word)
        else:
            lanes = near_in_plane(entry, at, n_entries, figures, relative_weight, word)
        at += columns_before(is_lonlat) * n_entries
        # Without a branch: about every third block has a candidate.
        n = append_lanes(entry, at, lanes, candidate, n)
        at += n_entries
        n_left -= n_entries
    return n


@inline_kernel
def describe_message(words, grid, frame, window, position, figures, relative_weight, word_facts):
    """Write the figures of a message, and for each of its words the relative weights of the others.

    `word_facts` is scratch: frequencies, slots, and their order.
    """
    row, keyword, value, n_times = words.row, window.keyword, window.value, window.n_times
    n_keywords = row.size // N_COLUMNS
    begin, length = window.keyword_start[position], window.length[position]
    n_words = window.keyword_start[position + 1] - begin
    a, b, c = coordinates(frame, window.x[position], window.y[position])
    figures[X], figures[Y], figures[Z] = (a - grid.low) / grid.step, (b - grid.low) / grid.step, (c - grid.low) / grid.step
    figures[LOSS], figures[MOST] = (grid.loss / MOST_WEIGHT) ** 2 * _ROUNDED_DOWN, 1.0 / MOST_WEIGHT**2 * _ROUNDED_DOWN
    for i in range(n_words):
        word = int(keyword[begin + i])
        figures[OWN + i] = math.sqrt(value[begin + i] * n_times[begin + i]) / (length * MOST_OWN)
        frequency, slot = 0, shared_slot(word)
        if word < n_keywords:
            frequency, slot = int(row[word * N_COLUMNS + FREQUENCY]), slot_in(int(row[word * N_COLUMNS + EDGES]))
        # Words are in the order of their ids: of equal frequency the lower one is the rarer.
        word_facts[i], word_facts[n_words + i] = frequency << _HALF | i, slot
    sort_into(word_facts, 0, n_words, word_facts, 2 * n_words)
    before = -1
    for rank in range(n_words - 1, -1, -1):
        # The weights of the more frequent words: those of the next more frequent one, and that word itself.
        i = word_facts[2 * n_words + rank] & _LOWER_HALF
        of = i * N_SLOTS
        if before < 0:
            for slot in range(N_SLOTS):
                relative_weight[of + slot] = 0
            relative_weight[of + LAST_SLOT] = MAX_RELATIVE_WEIGHT
        else:
            source = before * N_SLOTS
            move_within(relative_weight, source, source + N_SLOTS, of - source)
            at = of + word_facts[n_words + before]
            relative_weight[at] = max(relative_weight[at], to_relative_weight(figures[OWN + before]))
        before = i


@inline_kernel
def to_relative_weight(word):
    """A word's weight as another word, from its figure as the rarest one; capped at the maximum."""
    return min(math.ceil(word * MOST_OWN * MAX_RELATIVE_WEIGHT * _ROUNDED_UP), MAX_RELATIVE_WEIGHT)


# --- the search --------------------------------------------------------------------------------------------------

# Messages are taken together so that they reach about this many subscriptions, whose records then stay in the cache.
MOST_AT_ONCE, _FEWEST_AT_ONCE, _REACHED_AT_ONCE = 256, 8, 12_000
# The most lists for a word.
LISTS_OF_WORD = N_PARTS * (MOST_EDGES + 1) * N_LEVELS
DONE, LACKS_NEAR, LACKS_REACHED = 0, 1, 2
# Where a search stands: next message, subscriptions reached, lists scanned, candidates.
POSITION, N_REACHED, N_LISTS, N_NEAR = range(4)


@kernel
def find_matches(
    distances,
    words,
    parts,
    grid,
    frame,
    subscriptions,
    window,
    unindexed,
    unindexed_bits,
    scratch,
    candidate,
    matches,
    at,
    n_enough,
):
    """Write the subscriptions that the messages of `matches` reach, from `at` on, until there are enough.

    Returns DONE, or what is lacking.
    """
    words, parts, subscriptions, window = borrow(words), borrow(parts), borrow(subscriptions), borrow(window)
    unindexed, unindexed_bits, scratch, candidate, matches, at = borrow(
        (unindexed, unindexed_bits, scratch, candidate, matches, at)
    )
    item, item_word, item_start, candidate_start, figures, relative_weight, word_facts, table, common, repeated = scratch
    n_at_once = _FEWEST_AT_ONCE
    while at[POSITION] < matches.last and at[N_REACHED] < n_enough:
        first = at[POSITION]
        last = first + 1
        begin = window.keyword_start[first]
        while (
            last < min(first + n_at_once, matches.last)
            and (window.keyword_start[last + 1] - begin) * LISTS_OF_WORD <= item.size
        ):
            last += 1
        find_lists(words, parts, grid, window, first, last, repeated, item, item_word, item_start)
        lists = (item, item_word, item_start)
        n_lists = scan_lists(
            words,
            parts,
            grid,
            frame,
            window,
            first,
            last,
            lists,
            figures,
            relative_weight,
            word_facts,
            subscriptions.record,
            candidate,
            candidate_start,
        )
        if n_lists == LACKS_CAPACITY:
            return LACKS_NEAR
        n_before, n_checked = at[N_REACHED], candidate_start[last - first] + (last - first) * unindexed.size
        if n_before + n_checked > matches.score.size:
            return LACKS_REACHED
        at[N_REACHED] = score_near(
            distances,
            subscriptions,
            window,
            first,
            last,
            candidate,
            candidate_start,
            unindexed,
            unindexed_bits,
            table,
            common,
            matches,
            n_before,
        )
        n_next = _REACHED_AT_ONCE * (last - first) // max(1, at[N_REACHED] - n_before)
        n_at_once = min(max(n_next, _FEWEST_AT_ONCE), MOST_AT_ONCE)
        at[POSITION] = last
        at[N_LISTS] += n_lists
        at[N_NEAR] += n_checked
    return DONE
