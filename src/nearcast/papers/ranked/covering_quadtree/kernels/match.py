"""Find the subscriptions whose threshold a message reaches: in each cell around it the lists of its keywords are merged."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.hashing import EMPTY_SLOT, find_number, number_home
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.ranked.covering_quadtree.kernels.cover import column_at, list_key
from nearcast.papers.ranked.covering_quadtree.layout import QUARTERS
from nearcast.papers.ranked.kernels.score_bounds import SLACK
from nearcast.papers.ranked.skyband.kernels.ticks import finish_tick
from nearcast.ranked.kernels.relevance import proximity, relevance
from nearcast.ranked.kernels.run_layout import ALL_ARRIVED, DONE, N_CANDIDATES, UNFINISHED
from nearcast.ranked.kernels.scoring import similarity_of
from nearcast.ranked.kernels.window import next_arrival

# Rows of the scratch for lists that are merged: where each stands, where it ends, the subscription it stands at.
STANDS, ENDS, NEXT = 0, 1, 2
_NOBODY = 1 << 40

# Positions in `looked`: cells, lists, postings, subscriptions met, subscriptions scored.
CELLS, LISTS, POSTINGS_SEEN, MET, SCORED = 0, 1, 2, 3, 4


@kernel
def run_ticks(index, scratch, subscribers, window, buffers, calendar, journal, run, changes, last, rules):
    """See `TickIndex.run_ticks`; `index` is (lists, table of their keys, cover)."""
    while True:
        place = next_arrival(window, run, last, rules.is_timed)
        if place == ALL_ARRIVED:
            return DONE
        if place != UNFINISHED:
            run.at[N_CANDIDATES] = find_candidates(index, scratch, subscribers, window, buffers, run, place)
        stopped = finish_tick(subscribers, window, buffers, calendar, journal, run, changes, rules)
        if stopped != DONE:
            return stopped


@kernel
def find_candidates(index, scratch, subscribers, window, buffers, run, place):
    """Write the subscriptions whose threshold the message reaches, with its scores; returns how many.

    Exactly one of the cells that cover the plane for a subscription has the message, so that each is met in one cell only.
    """
    lists, table, cover = index
    merged, value, looked = scratch
    subscribers, window, lists = borrow(subscribers), borrow(window), borrow(lists)
    subscriber, share, near, threshold = lists.subscriber, lists.share, lists.near, buffers.threshold
    x, y = window.x[place], window.y[place]
    column = column_at(x, cover.x0, cover.x1, cover.levels)
    row = column_at(y, cover.y0, cover.y1, cover.levels)
    per_subscription = cover.levels * QUARTERS
    n_found = n_lists = n_seen = n_met = n_scored = 0
    for depth in range(1, cover.levels + 1):
        across, up = column >> (cover.levels - depth), row >> (cover.levels - depth)
        own = (depth - 1) * QUARTERS + (across & 1) + 2 * (up & 1)
        n_merged = open_lists(lists, table, window, place, depth, across, up, merged, value)
        n_lists += n_merged
        for i in range(n_merged):
            n_seen += merged[ENDS, i] - merged[STANDS, i]
        while True:
            s = _NOBODY
            for i in range(n_merged):
                s = min(s, merged[NEXT, i])
            if s == _NOBODY:
                break
            text = 0.0
            for i in range(n_merged):
                if merged[NEXT, i] == s:
                    at = merged[STANDS, i]
                    text += float(share[at]) * value[i]
                    merged[STANDS, i] = at + 1
                    merged[NEXT, i] = subscriber[at + 1] if at + 1 < merged[ENDS, i] else _NOBODY
            n_met += 1
            if text + float(near[s * per_subscription + own]) < threshold[s] - SLACK:
                continue
            n_scored += 1
            weight = subscribers.spatial_weight[s]
            exact = proximity(cover.is_lonlat, cover.max_distance, subscribers.x[s], subscribers.y[s], x, y)
            score = relevance(weight, exact, similarity_of(subscribers, window, run.scores, s, place))
            if score >= threshold[s]:
                run.candidate[n_found] = s
                run.candidate_score[n_found] = score
                n_found += 1
    looked[CELLS] += cover.levels
    looked[LISTS] += n_lists
    looked[POSTINGS_SEEN] += n_seen
    looked[MET] += n_met
    looked[SCORED] += n_scored
    run.counters[NODES] += n_lists
    run.counters[CANDIDATES] += n_scored
    return n_found


@kernel
def open_lists(lists, table, window, place, depth, column, row, merged, value):
    """Stand at the beginning of the lists of a message's keywords in a cell, those that are not empty; returns how many."""
    slot, known = table.slot, table.number
    n = 0
    for at in range(window.keyword_start[place], window.keyword_start[place + 1]):
        key = list_key(depth, column, row, int(window.keyword[at]))
        owner = slot[find_number(slot, known, key, number_home(key, slot.size))]
        if owner != EMPTY_SLOT and lists.size[owner] > 0:
            first = lists.first[owner]
            merged[STANDS, n], merged[ENDS, n] = first, first + lists.size[owner]
            merged[NEXT, n] = lists.subscriber[first]
            value[n] = window.value[at] / window.length[place]
            n += 1
    return n
