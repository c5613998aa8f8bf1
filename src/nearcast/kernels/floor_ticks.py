"""One tick after the other with lists above a floor: changes are told as they happen.

A subscription is touched at most twice in a tick: when the message arrives, and when those that are due end, all at once. What
the second touch undoes of the first is taken back, so that a tick tells what differs from the one before.
"""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel, lent
from nearcast.kernels.floor_calendar import has_chunk, oldest_shown, take_waiting, wait_at
from nearcast.kernels.floor_layouts import (
    CHUNK,
    COUNT,
    DROP,
    GUARD_NUMBER,
    LAST_LATE,
    MEMBERS,
    N_DUE,
    N_DUE_DONE,
    N_TAKEN_BACK,
    NEXT,
    NO_CHUNK,
    NO_GUARD,
    NOWHERE,
    OLDEST,
    ROOMS,
    ROW,
    SIZE,
    START,
    TAKEN_BACK,
    TICK_START,
    TOLD,
    TOLD_BEFORE,
    WAITS_AT,
    full_number,
    k_of,
    room_of,
)
from nearcast.kernels.floor_lists import REFUSED, is_above_guard, is_over, make_room, put_in, rank_for
from nearcast.kernels.ranked_layouts import BASE
from nearcast.kernels.result_buffers import NO_MESSAGE
from nearcast.kernels.simd import move_within, prefetch
from nearcast.kernels.ticks import (
    ADMIT,
    ALL_ARRIVED,
    ARRIVE,
    DONE,
    EXPIRE,
    LACKS_MESSAGES,
    LACKS_OUTPUT,
    N_CUT,
    N_DONE,
    N_HEAP,
    N_LACKING,
    NEWEST,
    NOW,
    PHASE,
    PLACE,
    REFILL,
    SPAN,
    UNFINISHED,
    next_arrival,
    next_due,
)
from nearcast.kernels.window import is_newer, pop_oldest

ENTERS, LEAVES = 1, -1
# Rows and lists that are asked for ahead of their use, and how much of them is in a line of memory.
_AHEAD, _SCORES, _NUMBERS = 6, 8, 16


@kernel
def run_floor_ticks(found, buffers, window, ends, run, changes, last, is_timed, n_counted):
    """Let messages arrive up to place `last`, or what is due end; returns what stopped the run, see `kernels/ticks.py`."""
    buffers, window, ends, run, changes = lent(buffers), lent(window), lent(ends), lent(run), lent(changes)
    at = run.at
    while True:
        place = next_arrival(window, run, last, is_timed)
        if place == ALL_ARRIVED:
            return DONE
        if place != UNFINISHED:
            at[TICK_START] = at[TOLD_BEFORE] + changes.n[0]
            if at[NEWEST] != window.head[BASE] + place:
                at[LAST_LATE] = window.head[BASE] + place
        stopped = finish_tick(found, buffers, window, ends, run, changes, is_timed, n_counted)
        if stopped != DONE:
            return stopped


@kernel
def finish_tick(found, buffers, window, ends, run, changes, is_timed, n_counted):
    """From where a tick stands to its end; returns DONE, or what is lacking."""
    at = run.at
    if at[PHASE] == ADMIT:
        if not admit_found(found, buffers, window, ends, run, changes, is_timed):
            return LACKS_OUTPUT
        at[PHASE] = EXPIRE
    if at[PHASE] == EXPIRE:
        gather_due(window, run, is_timed, n_counted)
        at[PHASE] = DROP
    if at[PHASE] == DROP:
        if not drop_due(buffers, window, ends, run, changes):
            return LACKS_OUTPUT
        at[PHASE] = REFILL
    if at[PHASE] == REFILL and at[N_LACKING] > 0:
        return LACKS_MESSAGES
    at[PHASE] = ARRIVE
    return DONE


@inline_kernel
def tell(n, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, change, score):
    """Write down a change, in the columns of `ChangeArrays`."""
    at = n[0]
    tick_of[at], subscriber_of[at], number_of[at], change_of[at], score_of[at] = tick, s, number, change, score
    n[0] = at + 1


@kernel
def admit_found(found, buffers, window, ends, run, changes, is_timed):
    """Offer the message that has arrived to those it was found for; False if room is lacking."""
    at, base = run.at, window.head[BASE]
    row, scores, numbers = buffers.row, buffers.score, buffers.number
    first, _, start, subscriber, score = lent(found)
    # Read out of their tuples once: users of an array are counted whenever that is done.
    n_told, tick_of, subscriber_of, number_of, change_of, score_of = changes
    cut, real, time = run.cut, buffers.real, window.time
    head, first_chunk, chunk = ends
    place = at[PLACE] - 1
    if is_timed and time[place] <= run.clock[NOW] - run.clock[SPAN]:
        # It is over at once.
        return True
    number, oldest = base + place, at[OLDEST]
    is_late, is_in_order = at[NEWEST] != number, at[LAST_LATE] < oldest
    begin, end, n_found = start[place - first], start[place - first + 1], start[start.size - 1]
    for i in range(begin + at[N_DONE], end):
        if i + 2 * _AHEAD < n_found:
            prefetch(row, int(subscriber[i + 2 * _AHEAD]) * ROW)
        if i + _AHEAD < n_found:
            ask_for_list(row, scores, numbers, int(subscriber[i + _AHEAD]))
        s = int(subscriber[i])
        if n_told[0] + 2 > tick_of.size or at[N_CUT] == cut.size or not has_chunk(head, chunk):
            at[N_DONE] = i - begin
            return False
        if not is_above_guard(row, real, s * ROW, score[i], time[place], number):
            continue
        guard = row[s * ROW + GUARD_NUMBER]
        rank = rank_for(row, scores, numbers, time, base, s, number, score[i], is_late)
        if rank == REFUSED:
            continue
        if row[s * ROW + SIZE] == room_of(row[s * ROW + ROOMS]):
            rank = make_room(buffers, window, s, rank, oldest, is_in_order)
        if rank != REFUSED:
            put_in(row, scores, numbers, s, rank, number, score[i])
        if row[s * ROW + GUARD_NUMBER] != guard:
            cut[at[N_CUT]] = s
            at[N_CUT] += 1
        k = k_of(row[s * ROW + ROOMS])
        if rank == REFUSED or rank >= k:
            continue
        row[s * ROW + TOLD] = at[TOLD_BEFORE] + n_told[0]
        tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, number, s, number, ENTERS, score[i])
        if row[s * ROW + SIZE] > k:
            left = row[s * ROW + START] + k
            out = full_number(numbers[left], base)
            tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, number, s, out, LEAVES, scores[left])
        waits_at = row[s * ROW + WAITS_AT]
        if waits_at == NOWHERE or (is_late and waits_at != number and is_newer(time, base, waits_at, number)):
            wait_at(head, first_chunk, chunk, row, base, s, number)
    return True


@inline_kernel
def ask_for_list(row, scores, numbers, s):
    """Have the messages of a list brought from memory."""
    start = row[s * ROW + START]
    end = start + row[s * ROW + SIZE]
    for at in range(start, end + 1, _SCORES):
        prefetch(scores, at)
    for at in range(start, end + 1, _NUMBERS):
        prefetch(numbers, at)


@kernel
def gather_due(window, run, is_timed, n_counted):
    """End the messages that are due, and write them down."""
    at, base, is_alive = run.at, window.head[BASE], window.is_alive
    n = 0
    while True:
        number = next_due(window, run, is_timed, n_counted)
        if number == NO_MESSAGE:
            break
        is_alive[number - base] = 0
        run.due[n] = number
        n += 1
        if is_timed:
            at[N_HEAP] = pop_oldest(window, run.heap, at[N_HEAP])
    oldest, end = max(at[OLDEST], base), base + at[PLACE]
    while oldest < end and is_alive[oldest - base] == 0:
        oldest += 1
    at[OLDEST], at[N_DUE], at[N_DUE_DONE] = oldest, n, 0


@kernel
def drop_due(buffers, window, ends, run, changes):
    """Take the messages that are due out of the lists of those who wait at them; False if room is lacking."""
    at, due, lacking = run.at, run.due, run.lacking
    base, time, is_alive = window.head[BASE], window.time, window.is_alive
    row, scores, numbers = buffers.row, buffers.score, buffers.number
    head, first_chunk, chunk = ends
    n_told, tick_of = changes.n, changes.tick
    oldest = at[OLDEST]
    is_in_order, tick = at[LAST_LATE] < oldest, base + at[PLACE] - 1
    for i in range(at[N_DUE_DONE], at[N_DUE]):
        number = due[i]
        ask_for_next(row, scores, numbers, first_chunk, chunk, number - base)
        while first_chunk[number - base] != NO_CHUNK:
            s = next_waiting(first_chunk, chunk, number - base)
            k = k_of(row[s * ROW + ROOMS])
            if n_told[0] + 2 * k > tick_of.size or at[N_LACKING] == lacking.size or not has_chunk(head, chunk):
                at[N_DUE_DONE] = i
                return False
            take_waiting(head, first_chunk, chunk, number - base)
            # Who went, or waits elsewhere by now, is still there.
            if row[s * ROW + WAITS_AT] != number:
                continue
            first_told = n_told[0]
            n_shown = drop_over(row, scores, numbers, is_alive, base, changes, s, k, tick, oldest, is_in_order)
            if row[s * ROW + TOLD] >= at[TICK_START]:
                take_back(run, changes, row[s * ROW + TOLD] - at[TOLD_BEFORE], first_told, s)
            row[s * ROW + WAITS_AT] = NOWHERE
            next_end = oldest_shown(row, numbers, time, base, s, is_in_order)
            if next_end != NOWHERE:
                wait_at(head, first_chunk, chunk, row, base, s, next_end)
            if n_shown < k and row[s * ROW + GUARD_NUMBER] != NO_GUARD:
                lacking[at[N_LACKING]] = s
                at[N_LACKING] += 1
    return True


@inline_kernel
def next_waiting(first_chunk, chunk, place):
    """Who is taken next by `take_waiting`."""
    at = int(first_chunk[place]) * CHUNK
    return int(chunk[at + MEMBERS + int(chunk[at + COUNT]) - 1])


@inline_kernel
def ask_for_next(row, scores, numbers, first_chunk, chunk, place):
    """Have brought from memory what the messages that end next are waited for by: chunks, then rows, then lists."""
    if place + 3 >= first_chunk.size:
        return
    if first_chunk[place + 3] != NO_CHUNK:
        prefetch(chunk, int(first_chunk[place + 3]) * CHUNK)
    at = int(first_chunk[place + 2])
    while at != NO_CHUNK:
        for i in range(chunk[at * CHUNK + COUNT]):
            prefetch(row, int(chunk[at * CHUNK + MEMBERS + i]) * ROW)
        at = int(chunk[at * CHUNK + NEXT])
    at = int(first_chunk[place + 1])
    while at != NO_CHUNK:
        for i in range(chunk[at * CHUNK + COUNT]):
            ask_for_list(row, scores, numbers, int(chunk[at * CHUNK + MEMBERS + i]))
        at = int(chunk[at * CHUNK + NEXT])


@inline_kernel
def drop_over(row, scores, numbers, is_alive, base, changes, s, k, tick, oldest, is_in_order):
    """Take messages that are over out of the best k, tell of them and of those that take their places; how many there are."""
    n_told, tick_of, subscriber_of, number_of, change_of, score_of = changes
    start, size = row[s * ROW + START], row[s * ROW + SIZE]
    kept, behind, end = start, start + min(k, size), start + size
    for i in range(start, behind):
        number = full_number(numbers[i], base)
        if is_over(is_alive, base, number, oldest, is_in_order):
            tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, LEAVES, scores[i])
        else:
            if kept < i:
                scores[kept], numbers[kept] = scores[i], numbers[i]
            kept += 1
    if kept == behind:
        return kept - start
    # Those behind move up; what is over among them is passed over.
    while kept < start + k and behind < end:
        number = full_number(numbers[behind], base)
        if not is_over(is_alive, base, number, oldest, is_in_order):
            tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, ENTERS, scores[behind])
            scores[kept], numbers[kept] = scores[behind], numbers[behind]
            kept += 1
        behind += 1
    # So that the list goes on without a gap.
    move_within(scores, behind, end, kept - behind)
    move_within(numbers, behind, end, kept - behind)
    row[s * ROW + SIZE] = kept - start + end - behind
    return kept - start


@inline_kernel
def take_back(run, changes, told, first_told, s):
    """Of what was told of a subscription when the message arrived, at `told`, take back what is undone since `first_told`."""
    number, change = changes.number, changes.change
    for i in range(told, min(told + 2, first_told)):
        if changes.subscriber[i] != s:
            continue
        for j in range(first_told, changes.n[0]):
            if number[j] == number[i] and change[j] == -change[i]:
                change[i], change[j] = TAKEN_BACK, TAKEN_BACK
                run.at[N_TAKEN_BACK] += 2
                break
