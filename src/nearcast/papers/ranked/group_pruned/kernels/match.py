"""Find the subscriptions whose threshold a message reaches: groups are passed over, then entries, and the rest is scored.

Paper: Algorithm 1, corrected: who passes the tests at one keyword is scored at once, and never by parts.
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
    N_FIELDS,
    NORM,
    NORM_LEFT,
    OWN,
    OWN1,
    OWN_LEFT,
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

# What no reach is below.
_LEAST_REACH = 1e-290

# Groups whose entries are asked for ahead of their use, how many of them at most, and fields in a line of memory.
_AHEAD, _ASKED, _PER_LINE = 4, 12, 16

# Rows of the scratch for the keywords of a message, in order: which, their weights, and of all that come after them the largest
# weight and the length of their vector.
WORD, SHARE, AFTER_MOST, AFTER_LENGTH = 0, 1, 2, 3

# Positions in `looked`: lists; groups, those that distance was needed for, those entered; entries; subscriptions scored.
LISTS, GROUPS_SEEN, GROUPS_PLACED, GROUPS_ENTERED, ENTRIES_SEEN, SCORED = 0, 1, 2, 3, 4, 5


@kernel
def run_ticks(lists, ground, scratch, is_grouped, subscribers, window, buffers, calendar, journal, run, changes, last, rules):
    """See `TickIndex.run_ticks`."""
    while True:
        place = next_arrival(window, run, last, rules.is_timed)
        if place == ALL_ARRIVED:
            return DONE
        if place != UNFINISHED:
            n_found = find_candidates(lists, ground, scratch, is_grouped, subscribers, window, buffers, run, place)
            run.at[N_CANDIDATES] = n_found
        stopped = finish_tick(subscribers, window, buffers, calendar, journal, run, changes, rules)
        if stopped != DONE:
            return stopped


@kernel
def find_candidates(lists, ground, scratch, is_grouped, subscribers, window, buffers, run, place):
    """Write the subscriptions whose threshold the message reaches, with its scores; returns how many."""
    lists, subscribers, window, buffers, run = borrow(lists), borrow(subscribers), borrow(window), borrow(buffers), borrow(run)
    message, bits, over, opened, pending, stamp, looked = borrow(scratch)
    is_lonlat, max_distance = ground
    frame = frame_of(is_lonlat, max_distance)
    first_group, n_groups, side = lists.first_group, lists.n_groups, lists.side
    first_entry, n_entries, subscriber = lists.first_entry, lists.n_entries, lists.subscriber
    entry, after, follows = lists.entry, lists.after, lists.follows
    x, y = window.x[place], window.y[place]
    stamp[stamp.size - 1] += 1
    n_words = order_words(lists, window, place, message, bits)
    n_found = n_pending = n_seen = n_placed = n_entered = n_entries_seen = 0
    for j in range(n_words):
        word = int(message[WORD, j])
        share, after_most, after_length = message[SHARE, j], message[AFTER_MOST, j], message[AFTER_LENGTH, j]
        first, after_bits = first_group[word], bits[j]
        n_open = n_groups[word]
        n_seen += n_open
        if is_grouped:
            bound_groups(side, follows, first, n_open, over, frame, x, y, share, after_most, after_length, after_bits)
            n_open = 0
            for i in range(n_groups[word]):
                opened[n_open] = first + i
                n_open += 1 if over[i] >= -SLACK else 0
        else:
            for i in range(n_open):
                opened[i] = first + i
        for i in range(n_open):
            group = opened[i]
            n_placed += 1
            if i + _AHEAD < n_open:
                ask_for_entries(lists, opened[i + _AHEAD])
            x0, y0, x1, y1 = side[X0, group], side[Y0, group], side[X1, group], side[Y1, group]
            distance = distance_to_box(is_lonlat, x, y, x0, y0, x1, y1)
            near = nearness(distance, max_distance)
            begin = first_entry[group]
            end = begin + n_entries[group]
            if is_grouped:
                # Keys ascend and what is left falls, so that from the first entry that cannot be reached on none can.
                low, high = begin, end
                while low < high:
                    middle = (low + high) // 2
                    row = middle * N_FIELDS
                    text = float(entry[row + OWN_LEFT]) * share
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
                text = float(entry[row + OWN]) * share
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
                way = distance_to_rounded(is_lonlat, x, y, float(entry[row + X]), float(entry[row + Y]), rounding)
                if weight * nearness(way, max_distance) < missing:
                    continue
                s = subscriber[at]
                ask_for(subscribers, buffers, stamp, s)
                pending[n_pending] = s
                n_pending += 1
                if n_pending == pending.size:
                    n_found = score_pending(
                        ground, pending, n_pending, stamp, looked, subscribers, window, buffers, run, place, n_found
                    )
                    n_pending = 0
    n_found = score_pending(ground, pending, n_pending, stamp, looked, subscribers, window, buffers, run, place, n_found)
    looked[LISTS] += n_words
    looked[GROUPS_SEEN] += n_seen
    looked[GROUPS_PLACED] += n_placed
    looked[GROUPS_ENTERED] += n_entered
    looked[ENTRIES_SEEN] += n_entries_seen
    run.counters[NODES] += n_seen
    return n_found


@inline_kernel
def frame_of(is_lonlat, max_distance):
    """What differences of coordinates are worth, a little less than they are, and the proximity at none."""
    reach = max(max_distance, _LEAST_REACH)
    if is_lonlat:
        # The difference of latitudes alone.
        return 0.0, M_PER_DEGREE * CLOSE / reach, 1.0 + METRES / reach
    return 1.0, CLOSE / reach, 1.0


@inline_kernel
def bound_groups(side, follows, first, n, over, frame, x, y, share, after_most, after_length, bits):
    """Write by how much the best that groups can reach is over their least key: one loop without a branch, for vector units.

    Paper: Theorem 3, undivided.
    """
    end = first + n
    x0, y0, x1, y1 = side[X0, first:end], side[Y0, first:end], side[X1, first:end], side[Y1, first:end]
    own, after_sum, after_norm = side[OWN1, first:end], side[SUM1, first:end], side[NORM, first:end]
    weight, least = side[WEIGHT1, first:end], side[KEY0, first:end]
    follow = follows[first:end]
    across, scale, nearest = frame
    for i in range(n):
        dx, dy = across * gap(x, x0[i], x1[i]), gap(y, y0[i], y1[i])
        near = max(0.0, nearest - math.sqrt(dx * dx + dy * dy) * scale)
        rest = min(after_sum[i] * after_most, after_norm[i] * after_length)
        over[i] = own[i] * share + (rest if follow[i] & bits != 0 else 0.0) + weight[i] * near - least[i]


@inline_kernel
def rest_bound(after_sum, after_norm, after_most, after_length):
    """The most that keywords after one add to a score, by Hölder's inequality in two ways. Paper: Theorem 2, Equation 5."""
    return min(float(after_sum) * after_most, float(after_norm) * after_length)


@inline_kernel
def ask_for_entries(lists, group):
    """Have the entries of a group brought from memory, or the beginning of a large one."""
    first = lists.first_entry[group]
    prefetch(lists.after, first)
    prefetch(lists.subscriber, first)
    for line in range(0, min(int(lists.n_entries[group]), _ASKED) * N_FIELDS, _PER_LINE):
        prefetch(lists.entry, first * N_FIELDS + line)


@inline_kernel
def ask_for(subscribers, buffers, stamp, s):
    """Have what scoring reads brought from memory."""
    prefetch(stamp, s)
    prefetch(subscribers.record, RECORD * s)
    prefetch(buffers.threshold, s)


@kernel
def score_pending(ground, pending, n_pending, stamp, looked, subscribers, window, buffers, run, place, n_found):
    """Score subscriptions, each once for a message, and write those whose threshold is reached; returns how many there are."""
    subscribers, window, buffers, run = borrow(subscribers), borrow(window), borrow(buffers), borrow(run)
    is_lonlat, max_distance = ground
    now, n_scored = stamp[stamp.size - 1], 0
    for i in range(n_pending):
        s = pending[i]
        if stamp[s] == now:
            continue
        stamp[s] = now
        n_scored += 1
        near = proximity(is_lonlat, max_distance, subscribers.x[s], subscribers.y[s], window.x[place], window.y[place])
        score = relevance(subscribers.spatial_weight[s], near, similarity_of(subscribers, window, run.scores, s, place))
        if score >= buffers.threshold[s]:
            run.candidate[n_found] = s
            run.candidate_score[n_found] = score
            n_found += 1
    looked[SCORED] += n_scored
    run.counters[CANDIDATES] += n_scored
    return n_found


@kernel
def order_words(lists, window, place, message, bits):
    """Write the filed keywords of a message, rarest first, with bounds and bits of what comes after; returns how many."""
    rank, weight = lists.rank, lists.weight
    begin, end = window.keyword_start[place], window.keyword_start[place + 1]
    keyword, value, length = window.keyword, window.value, window.length[place]
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
