"""Find the subscriptions whose threshold a message reaches: skip groups, then entries, and score the rest.

Paper: Algorithm 1, corrected: an entry that passes the tests at one keyword is scored completely, never by parts.
"""

from __future__ import annotations

import math

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.simd import prefetch
from nearcast.papers.ranked.group_pruned.kernels.group import (
    AFTER_NORM,
    AFTER_SUM,
    INNER,
    KEY,
    KEY0,
    KEYWORD_SHARE,
    KEYWORD_SHARE1,
    KEYWORD_SHARE_LEFT,
    N_FIELDS,
    NORM,
    NORM_LEFT,
    SUM1,
    SUM_LEFT,
    WEIGHT,
    WEIGHT1,
    WEIGHT_LEFT,
    X0,
    X1,
    Y0,
    Y1,
    X,
    Y,
)
from nearcast.papers.ranked.kernels import (
    CLOSE,
    M_PER_DEGREE,
    METRES,
    SLACK,
    bit_of,
    distance_to_box,
    distance_to_rounded,
    gap,
    nearness,
    rounding_of,
)
from nearcast.papers.ranked.skyband.kernels.ticks import finish_tick
from nearcast.ranked.kernels.layouts import ALL_ARRIVED, DONE, N_CANDIDATES, RECORD, UNFINISHED
from nearcast.ranked.kernels.scoring import proximity, relevance, similarity_of
from nearcast.ranked.kernels.window import next_arrival

# The least distance to divide by.
_LEAST_REACH = 1e-290

# Groups whose entries are prefetched, most entries of each, and fields in a line of memory.
_AHEAD, _ASKED, _PER_LINE = 4, 12, 16

# Rows of the scratch for the keywords of a message, in order: id, weight, and of all keywords after it the largest weight and
# the length of their vector.
WORD, SHARE, AFTER_MOST, AFTER_LENGTH = 0, 1, 2, 3

# Positions in `counts`: lists; groups, those located, those entered; entries; subscriptions scored.
LISTS, GROUPS_SEEN, GROUPS_LOCATED, GROUPS_ENTERED, ENTRIES_SEEN, SCORED = 0, 1, 2, 3, 4, 5


@kernel
def run_ticks(
    lists, distances, scratch, is_grouped, subscriptions, window, buffers, calendar, snapshots, run, changes, last, rules
):
    """See `TickIndex.run_ticks`."""
    while True:
        position = next_arrival(window, run, last, rules.is_timed)
        if position == ALL_ARRIVED:
            return DONE
        if position != UNFINISHED:
            n_reached = find_candidates(lists, distances, scratch, is_grouped, subscriptions, window, buffers, run, position)
            run.at[N_CANDIDATES] = n_reached
        stopped = finish_tick(subscriptions, window, buffers, calendar, snapshots, run, changes, rules)
        if stopped != DONE:
            return stopped


@kernel
def find_candidates(lists, distances, scratch, is_grouped, subscriptions, window, buffers, run, position):
    """Write the subscriptions whose threshold the message reaches, with scores; returns their number."""
    lists, subscriptions, window, buffers, run = (
        borrow(lists),
        borrow(subscriptions),
        borrow(window),
        borrow(buffers),
        borrow(run),
    )
    message, bits, excess, opened, pending, stamp, counts = borrow(scratch)
    is_lonlat, max_distance = distances
    frame = frame_of(is_lonlat, max_distance)
    first_group, n_groups, bound = lists.first_group, lists.n_groups, lists.bound
    first_entry, n_entries, subscription = lists.first_entry, lists.n_entries, lists.subscription
    entry, after, follows = lists.entry, lists.after, lists.follows
    x, y = window.x[position], window.y[position]
    stamp[stamp.size - 1] += 1
    n_words = order_words(lists, window, position, message, bits)
    n_reached = n_pending = n_seen = n_located = n_entered = n_entries_seen = 0
    for j in range(n_words):
        word = int(message[WORD, j])
        share, after_most, after_length = message[SHARE, j], message[AFTER_MOST, j], message[AFTER_LENGTH, j]
        first, after_bits = first_group[word], bits[j]
        n_open = n_groups[word]
        n_seen += n_open
        if is_grouped:
            bound_groups(bound, follows, first, n_open, excess, frame, x, y, share, after_most, after_length, after_bits)
            n_open = 0
            for i in range(n_groups[word]):
                opened[n_open] = first + i
                n_open += 1 if excess[i] >= -SLACK else 0
        else:
            for i in range(n_open):
                opened[i] = first + i
        for i in range(n_open):
            group = opened[i]
            n_located += 1
            if i + _AHEAD < n_open:
                prefetch_entries(lists, opened[i + _AHEAD])
            x0, y0, x1, y1 = bound[X0, group], bound[Y0, group], bound[X1, group], bound[Y1, group]
            distance = distance_to_box(is_lonlat, x, y, x0, y0, x1, y1)
            near = nearness(distance, max_distance)
            begin = first_entry[group]
            end = begin + n_entries[group]
            if is_grouped:
                # Keys ascend and maxima fall, so from the first entry that cannot be reached on none can.
                low, high = begin, end
                while low < high:
                    middle = (low + high) // 2
                    row = middle * N_FIELDS
                    text = float(entry[row + KEYWORD_SHARE_LEFT]) * share
                    text += rest_bound(entry[row + SUM_LEFT], entry[row + NORM_LEFT], after_most, after_length)
                    if text + float(entry[row + WEIGHT_LEFT]) * near < float(entry[row + KEY]) - SLACK:
                        high = middle
                    else:
                        low = middle + 1
                end = low
                if end == begin:
                    continue
            n_entered += 1
            n_entries_seen += end - begin
            rounding = rounding_of(is_lonlat, x0, y0, x1, y1)
            for at in range(begin, end):
                row = at * N_FIELDS
                text = float(entry[row + KEYWORD_SHARE]) * share
                if after[at] & after_bits != 0:
                    text += rest_bound(entry[row + AFTER_SUM], entry[row + AFTER_NORM], after_most, after_length)
                missing = float(entry[row + KEY]) - SLACK - text
                weight = float(entry[row + WEIGHT])
                if (
                    is_lonlat
                    and distance > 0.0
                    and weight * nearness(distance + float(entry[row + INNER]), max_distance) < missing
                ):
                    continue
                entry_distance = distance_to_rounded(is_lonlat, x, y, float(entry[row + X]), float(entry[row + Y]), rounding)
                if weight * nearness(entry_distance, max_distance) < missing:
                    continue
                s = subscription[at]
                prefetch_subscription(subscriptions, buffers, stamp, s)
                pending[n_pending] = s
                n_pending += 1
                if n_pending == pending.size:
                    n_reached = score_pending(
                        distances, pending, n_pending, stamp, counts, subscriptions, window, buffers, run, position, n_reached
                    )
                    n_pending = 0
    n_reached = score_pending(
        distances, pending, n_pending, stamp, counts, subscriptions, window, buffers, run, position, n_reached
    )
    counts[LISTS] += n_words
    counts[GROUPS_SEEN] += n_seen
    counts[GROUPS_LOCATED] += n_located
    counts[GROUPS_ENTERED] += n_entered
    counts[ENTRIES_SEEN] += n_entries_seen
    run.counters[NODES] += n_seen
    return n_reached


@inline_kernel
def frame_of(is_lonlat, max_distance):
    """The scale of differences of coordinates, slightly too small, and the proximity at distance 0."""
    reach = max(max_distance, _LEAST_REACH)
    if is_lonlat:
        # The difference of latitudes alone.
        return 0.0, M_PER_DEGREE * CLOSE / reach, 1.0 + METRES / reach
    return 1.0, CLOSE / reach, 1.0


@inline_kernel
def bound_groups(bound, follows, first, n, excess, frame, x, y, share, after_most, after_length, bits):
    """Write by how much the best possible score of each group exceeds its least key, in one loop without branches.

    Paper: Theorem 3, undivided.
    """
    end = first + n
    x0, y0, x1, y1 = bound[X0, first:end], bound[Y0, first:end], bound[X1, first:end], bound[Y1, first:end]
    group_share, after_sum, after_norm = bound[KEYWORD_SHARE1, first:end], bound[SUM1, first:end], bound[NORM, first:end]
    weight, least = bound[WEIGHT1, first:end], bound[KEY0, first:end]
    follow = follows[first:end]
    across, scale, nearest = frame
    for i in range(n):
        dx, dy = across * gap(x, x0[i], x1[i]), gap(y, y0[i], y1[i])
        near = max(0.0, nearest - math.sqrt(dx * dx + dy * dy) * scale)
        rest = min(after_sum[i] * after_most, after_norm[i] * after_length)
        excess[i] = group_share[i] * share + (rest if follow[i] & bits != 0 else 0.0) + weight[i] * near - least[i]


@inline_kernel
def rest_bound(after_sum, after_norm, after_most, after_length):
    """The most that keywords after one add to a score, by Hölder's inequality in two ways. Paper: Theorem 2, Equation 5."""
    return min(float(after_sum) * after_most, float(after_norm) * after_length)


@inline_kernel
def prefetch_entries(lists, group):
    """Prefetch the entries of a group, or the beginning of a large one."""
    first = lists.first_entry[group]
    prefetch(lists.after, first)
    prefetch(lists.subscription, first)
    for line in range(0, min(int(lists.n_entries[group]), _ASKED) * N_FIELDS, _PER_LINE):
        prefetch(lists.entry, first * N_FIELDS + line)


@inline_kernel
def prefetch_subscription(subscriptions, buffers, stamp, s):
    """Prefetch what scoring reads."""
    prefetch(stamp, s)
    prefetch(subscriptions.record, RECORD * s)
    prefetch(buffers.threshold, s)


@kernel
def score_pending(distances, pending, n_pending, stamp, counts, subscriptions, window, buffers, run, position, n_reached):
    """Score subscriptions, each once per message, and write those whose threshold is reached; returns their number."""
    subscriptions, window, buffers, run = borrow(subscriptions), borrow(window), borrow(buffers), borrow(run)
    is_lonlat, max_distance = distances
    now, n_scored = stamp[stamp.size - 1], 0
    for i in range(n_pending):
        s = pending[i]
        if stamp[s] == now:
            continue
        stamp[s] = now
        n_scored += 1
        near = proximity(
            is_lonlat, max_distance, subscriptions.x[s], subscriptions.y[s], window.x[position], window.y[position]
        )
        score = relevance(subscriptions.spatial_weight[s], near, similarity_of(subscriptions, window, run.scores, s, position))
        if score >= buffers.threshold[s]:
            run.candidate[n_reached] = s
            run.candidate_score[n_reached] = score
            n_reached += 1
    counts[SCORED] += n_scored
    run.counters[CANDIDATES] += n_scored
    return n_reached


@kernel
def order_words(lists, window, position, message, bits):
    """Write the filed keywords of a message, rarest first, with bounds and bits of those after each; returns their number."""
    rank, weight = lists.rank, lists.weight
    begin, end = window.keyword_start[position], window.keyword_start[position + 1]
    keyword, value, length = window.keyword, window.value, window.length[position]
    n = 0
    for at in range(begin, end):
        word = int(keyword[at])
        if word < rank.size and lists.n_groups[word] > 0:
            j = n
            while j > 0 and rank[int(message[WORD, j - 1])] > rank[word]:
                message[WORD, j], message[SHARE, j] = message[WORD, j - 1], message[SHARE, j - 1]
                j -= 1
            message[WORD, j], message[SHARE, j] = word, value[at] / (weight[word] * length)
            n += 1
    most, squares, later = 0.0, 0.0, 0
    for j in range(n - 1, -1, -1):
        message[AFTER_MOST, j], message[AFTER_LENGTH, j], bits[j] = most, math.sqrt(squares), later
        most = max(most, message[SHARE, j])
        squares += message[SHARE, j] * message[SHARE, j]
        later |= bit_of(int(message[WORD, j]))
    return n
