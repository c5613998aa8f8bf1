"""Score every living subscription."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.kernels.layouts import CANDIDATES
from nearcast.papers.ranked.skyband.kernels.ticks import finish_tick
from nearcast.ranked.kernels.layouts import ALL_ARRIVED, DONE, N_CANDIDATES, UNFINISHED
from nearcast.ranked.kernels.scoring import proximity, relevance, similarity, steady_sum
from nearcast.ranked.kernels.window import next_arrival


@kernel
def run_ticks(distances, spread, subscriptions, window, buffers, calendar, snapshots, run, changes, last, rules):
    """See `TickIndex.run_ticks`; `spread` has a value for each keyword and is all zero between messages."""
    while True:
        position = next_arrival(window, run, last, rules.is_timed)
        if position == ALL_ARRIVED:
            return DONE
        if position != UNFINISHED:
            run.at[N_CANDIDATES] = find_candidates(distances, spread, subscriptions, window, buffers, run, position)
        stopped = finish_tick(subscriptions, window, buffers, calendar, snapshots, run, changes, rules)
        if stopped != DONE:
            return stopped


@kernel
def find_candidates(distances, spread, subscriptions, window, buffers, run, position):
    """Write the subscriptions whose threshold the message reaches, with scores; returns their number."""
    is_lonlat, max_distance = distances
    begin, end = window.keyword_start[position], window.keyword_start[position + 1]
    x, y, message_length = window.x[position], window.y[position], window.length[position]
    value, message_keyword = window.value, window.keyword
    first, n_words, keyword, is_alive = (
        subscriptions.first,
        subscriptions.n_words,
        subscriptions.keyword,
        subscriptions.is_alive,
    )
    subscription_x, subscription_y, weight, length = (
        subscriptions.x,
        subscriptions.y,
        subscriptions.spatial_weight,
        subscriptions.length,
    )
    threshold, common = buffers.threshold, run.scores
    for at in range(begin, end):
        spread[message_keyword[at]] = value[at]
    n_reached = 0
    n_tested = 0
    for s in range(threshold.size):
        if is_alive[s] == 0:
            continue
        n_common = 0
        for at in range(first[s], first[s] + n_words[s]):
            if spread[keyword[at]] > 0.0:
                common[n_common] = spread[keyword[at]]
                n_common += 1
        n_tested += 1
        if n_common == 0:
            continue
        similar = similarity(steady_sum(common, n_common), message_length, length[s])
        near = proximity(is_lonlat, max_distance, subscription_x[s], subscription_y[s], x, y)
        score = relevance(weight[s], near, similar)
        if score >= threshold[s]:
            run.candidate[n_reached] = s
            run.candidate_score[n_reached] = score
            n_reached += 1
    for at in range(begin, end):
        spread[message_keyword[at]] = 0.0
    run.counters[CANDIDATES] += n_tested
    return n_reached
