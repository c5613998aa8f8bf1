"""Go through the messages of a subscription's keywords and keep the best."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.ranked_layouts import BASE
from nearcast.kernels.relevance import proximity, relevance, similarity, steady_sum
from nearcast.kernels.result_buffers import ranks_before

NO_OCCURRENCE = -1


@kernel
def link_occurrences(keyword_start, keyword, first_place, latest, earlier, place_of):
    """Chain the occurrences of each keyword from place `first_place` on: `latest[w]`, then `earlier` of each."""
    for place in range(first_place, keyword_start.size - 1):
        for at in range(keyword_start[place], keyword_start[place + 1]):
            place_of[at] = place
            earlier[at] = latest[keyword[at]]
            latest[keyword[at]] = at


@kernel
def find_best(lists, subscribers, window, ground, asked, n_wanted, first_number, seen, common, start, n_found, best):
    """Write the best messages of each subscription asked for, best first, from `start[i]` on."""
    latest, earlier, place_of = lists
    is_lonlat, max_distance = ground
    best_number, best_score = best
    base, time, is_alive = window.head[BASE], window.time, window.is_alive
    x, y, length = window.x, window.y, window.length
    keyword_start, message_keyword, value = window.keyword_start, window.keyword, window.value
    keyword = subscribers.keyword
    for i in range(asked.size):
        s = asked[i]
        begin, end = subscribers.first[s], subscribers.first[s] + subscribers.n_words[s]
        own_x, own_y, weight, own_length = (
            subscribers.x[s],
            subscribers.y[s],
            subscribers.spatial_weight[s],
            subscribers.length[s],
        )
        first, n, wanted = start[i], 0, n_wanted[i]
        for word in range(begin, end):
            at = latest[keyword[word]] if keyword[word] < latest.size else NO_OCCURRENCE
            while at != NO_OCCURRENCE:
                place = place_of[at]
                number = base + place
                at = earlier[at]
                if number < first_number:
                    break
                if is_alive[place] == 0 or seen[place] == i:
                    continue
                seen[place] = i
                n_common = 0
                own = begin
                for there in range(keyword_start[place], keyword_start[place + 1]):
                    while own < end and keyword[own] < message_keyword[there]:
                        own += 1
                    if own < end and keyword[own] == message_keyword[there]:
                        common[n_common] = value[there]
                        n_common += 1
                similar = similarity(steady_sum(common, n_common), length[place], own_length)
                near = proximity(is_lonlat, max_distance, own_x, own_y, x[place], y[place])
                score = relevance(weight, near, similar)
                if n < wanted:
                    best_number[first + n], best_score[first + n] = number, score
                    n += 1
                    lift_last(time, base, best_number, best_score, first, n)
                elif ranks_before(time, base, score, number, best_score[first], best_number[first]):
                    best_number[first], best_score[first] = number, score
                    sink_first(time, base, best_number, best_score, first, n)
        n_found[i] = n
        # The heap has the worst in front: taken out one by one they come in order from the back.
        for left in range(n - 1, 0, -1):
            swap(best_number, best_score, first, first + left)
            sink_first(time, base, best_number, best_score, first, left)


@inline_kernel
def swap(number, score, a, b):
    number[a], number[b] = number[b], number[a]
    score[a], score[b] = score[b], score[a]


@kernel
def lift_last(time, base, number, score, first, n):
    """Restore the heap with the worst in front after one was added at its end."""
    at = n - 1
    while at > 0:
        parent = (at - 1) // 2
        if not ranks_before(time, base, score[first + parent], number[first + parent], score[first + at], number[first + at]):
            return
        swap(number, score, first + at, first + parent)
        at = parent


@kernel
def sink_first(time, base, number, score, first, n):
    """Restore the heap with the worst in front after its front was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            return
        if child + 1 < n:
            left, right = first + child, first + child + 1
            if ranks_before(time, base, score[left], number[left], score[right], number[right]):
                child += 1
        if ranks_before(time, base, score[first + child], number[first + child], score[first + at], number[first + at]):
            return
        swap(number, score, first + at, first + child)
        at = child
