"""Let messages arrive whose subscriptions were found before."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.kernels.ticks import ALL_ARRIVED, DONE, N_CANDIDATES, UNFINISHED, finish_tick, next_arrival


@kernel
def run_found(found, subscribers, window, buffers, calendar, journal, run, changes, last, rules):
    """See `RankedIndex.run_ticks`; `found` holds the messages up to `last`."""
    while True:
        place = next_arrival(window, run, last, rules.is_timed)
        if place == ALL_ARRIVED:
            return DONE
        if place != UNFINISHED:
            run.at[N_CANDIDATES] = take_found(found, run, place)
        stopped = finish_tick(subscribers, window, buffers, calendar, journal, run, changes, rules)
        if stopped != DONE:
            return stopped


@kernel
def take_found(found, run, place):
    """Write the candidates of a message, each once; returns how many."""
    first, _, start, subscriber, score = found
    candidate, candidate_score, is_there = run.candidate, run.candidate_score, run.is_lacking
    n = 0
    for i in range(start[place - first], start[place - first + 1]):
        # Nobody lacks anything when a message arrives, so the marks are free.
        if is_there[subscriber[i]] == 0:
            is_there[subscriber[i]] = 1
            candidate[n], candidate_score[n] = subscriber[i], score[i]
            n += 1
    for i in range(n):
        is_there[candidate[i]] = 0
    return n
