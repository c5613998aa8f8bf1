"""One tick after the other with lists above a floor: changes are told as they happen.

A subscription is touched at most twice in a tick: when the message arrives, and when those that are due end, all at once. What
the second touch undoes of the first is taken back, so that a tick tells what differs from the one before.
"""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.ranked.kernels.exact_order import NOBODY, NOT_SHOWN, enter_exactly, make_room
from nearcast.ranked.kernels.expiry_calendar import has_chunks, let_wait, oldest_shown, take_waiting, wait_at
from nearcast.ranked.kernels.layouts import (
    ADMIT,
    ALL_ARRIVED,
    ARRIVE,
    BASE,
    DONE,
    EXPIRE,
    LACKS_MESSAGES,
    LACKS_OUTPUT,
    N_CUT,
    N_DONE,
    N_HEAP,
    N_LACKING,
    NEWEST,
    NO_MESSAGE,
    NOW,
    PHASE,
    PLACE,
    REFILL,
    SPAN,
    UNFINISHED,
)
from nearcast.ranked.kernels.list_layout import (
    CHUNK,
    COUNT,
    DROP,
    GUARD_NUMBER,
    LAST,
    LAST_LATE,
    MEMBERS,
    MOST_PUT_OFF,
    N_DUE,
    N_DUE_DONE,
    N_SCARCE,
    N_TAKEN_BACK,
    NEXT,
    NO_CHUNK,
    NO_GUARD,
    NO_LAST,
    NOWHERE,
    OLDEST,
    OLDEST_BEFORE,
    ROOMS,
    ROW,
    SIZE,
    START,
    TAKEN_BACK,
    TICK_START,
    TOLD,
    TOLD_BEFORE,
    WAITS_AT,
    held_of,
    k_of,
    key_in,
    key_of,
    lower_half,
    lows_at,
    next_of,
    room_of,
    seems_above,
)
from nearcast.ranked.kernels.lists import clear_over, is_above_guard, is_full, newest_in, put_in
from nearcast.ranked.kernels.rank_changes import (
    ENTERS,
    LEAVES,
    NOT_TOLD,
    UNKNOWN,
    drop_by_keys,
    drop_exactly,
    enter,
    has_no_more,
    tell,
)
from nearcast.ranked.kernels.window import is_newer, next_arrival, next_due, pop_oldest

# Rows and lists that are asked for ahead of their use, and how much of them is in a line of memory.
_ROWS_AHEAD, _LISTS_AHEAD, _TOGETHER, _PER_LINE = 32, 8, 8, 16


@kernel
def run_floor_ticks(found, buffers, window, judge, ends, run, changes, last, is_timed, n_counted):
    """Let messages arrive up to place `last`, or what is due end; returns what stopped the run, see `run_layout.py`."""
    buffers, window, ends, run, changes = borrow(buffers), borrow(window), borrow(ends), borrow(run), borrow(changes)
    found, judge = borrow(found), borrow(judge)
    at = run.at
    while True:
        place = next_arrival(window, run, last, is_timed)
        if place == ALL_ARRIVED:
            return DONE
        if place != UNFINISHED:
            at[TICK_START] = at[TOLD_BEFORE] + changes.n[0]
            if at[NEWEST] != window.head[BASE] + place:
                at[LAST_LATE] = window.head[BASE] + place
        stopped = finish_tick(found, buffers, window, judge, ends, run, changes, is_timed, n_counted)
        if stopped != DONE:
            return stopped


@inline_kernel
def finish_tick(found, buffers, window, judge, ends, run, changes, is_timed, n_counted):
    """From where a tick stands to its end; returns DONE, or what is lacking."""
    at = run.at
    if at[PHASE] == ADMIT:
        if not admit_found(found, buffers, window, judge, ends, run, changes, is_timed):
            return LACKS_OUTPUT
        at[PHASE] = EXPIRE
    if at[PHASE] == EXPIRE:
        gather_due(window, run, is_timed, n_counted)
        at[PHASE] = DROP
    if at[PHASE] == DROP:
        if not drop_due(buffers, window, judge, ends, run, changes):
            return LACKS_OUTPUT
        at[PHASE] = REFILL
    if at[PHASE] == REFILL and at[N_LACKING] > 0:
        return LACKS_MESSAGES
    at[PHASE] = ARRIVE
    return DONE


@kernel
def admit_found(found, buffers, window, judge, ends, run, changes, is_timed):
    """Offer the message that has arrived to those it was found for; False if room is lacking."""
    buffers, window, judge, ends = borrow(buffers), borrow(window), borrow(judge), borrow(ends)
    run, changes = borrow(run), borrow(changes)
    at, base = run.at, window.head[BASE]
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    first, _, start, subscriber, score = borrow(found)
    # Read out of their tuples once: users of an array are counted whenever that is done.
    n_told, tick_of, subscriber_of, number_of, change_of, score_of = changes
    cut, real, time, is_alive = run.cut, buffers.real, window.time, window.is_alive
    marked_key, marked_low = judge.marked_key, judge.marked_low
    head, first_chunk, chunk = ends
    place = at[PLACE] - 1
    if is_timed and time[place] <= run.clock[NOW] - run.clock[SPAN]:
        # It is over at once.
        return True
    number, oldest = base + place, at[OLDEST]
    low = lower_half(number)
    is_late, is_in_order = at[NEWEST] != number, at[LAST_LATE] < oldest
    begin, end, n_found = start[place - first], start[place - first + 1], start[start.size - 1]
    for i in range(begin + at[N_DONE], end):
        if i % _TOGETHER == 0:
            for ahead in range(i + _ROWS_AHEAD, min(i + _ROWS_AHEAD + _TOGETHER, n_found)):
                prefetch(row, int(subscriber[ahead]) * ROW)
            for ahead in range(i + _LISTS_AHEAD, min(i + _LISTS_AHEAD + _TOGETHER, n_found)):
                ask_for_place(row, pool, int(subscriber[ahead]), score[ahead])
        s = int(subscriber[i])
        if n_told[0] + 2 > tick_of.size or at[N_CUT] == cut.size or not has_chunks(head, chunk, 1):
            at[N_DONE] = i - begin
            return False
        if row[s * ROW + SIZE] > 0 and newest_in(row, pool, s) == low:
            # It was found twice.
            continue
        if not is_above_guard(row, real, time, base, s * ROW, score[i], number):
            continue
        if is_full(row, pool, is_alive, base, s, oldest, is_in_order):
            if make_room(buffers, window, judge, s, oldest, is_in_order):
                cut[at[N_CUT]] = s
                at[N_CUT] += 1
            if not is_above_guard(row, real, time, base, s * ROW, score[i], number):
                continue
        key = key_of(score[i], row[s * ROW + ROOMS])
        put_in(row, pool, keys, s, number, key)
        if key < key_in(row[s * ROW + LAST]):
            continue
        out = enter(row, pool, keys, is_alive, base, marked_key, marked_low, s, key, oldest, is_in_order)
        if out == UNKNOWN:
            out = enter_exactly(buffers, window, judge, s, oldest, is_in_order)
        if out == NOT_SHOWN:
            continue
        row[s * ROW + TOLD] = at[TOLD_BEFORE] + n_told[0]
        tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, number, s, number, ENTERS, score[i])
        if out != NOBODY:
            tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, number, s, out, LEAVES, NOT_TOLD)
        waits_at = row[s * ROW + WAITS_AT]
        if waits_at == NOWHERE or (is_late and waits_at != number and is_newer(time, base, waits_at, number)):
            wait_at(head, first_chunk, chunk, row, base, s, number)
    return True


@inline_kernel
def ask_for_place(row, pool, s, score):
    """Have what a message is put into brought from memory: the end of a list, or all of it if it ranks among the best k."""
    rooms = row[s * ROW + ROOMS]
    if seems_above(score, rooms, key_in(row[s * ROW + LAST])):
        ask_for_list(row, pool, s)
    else:
        start, room = row[s * ROW + START], room_of(rooms)
        at = next_of(row[s * ROW + SIZE], room)
        prefetch(pool, start + at // 2)
        prefetch(pool, lows_at(start, room) + at)


@inline_kernel
def ask_for_list(row, pool, s):
    """Have the messages of a list brought from memory."""
    start, room = row[s * ROW + START], room_of(row[s * ROW + ROOMS])
    size, lows = held_of(row[s * ROW + SIZE], room), lows_at(start, room)
    for at in range(start, start + (size + 2) // 2, _PER_LINE):
        prefetch(pool, at)
    for at in range(lows, lows + size + 1, _PER_LINE):
        prefetch(pool, at)


@inline_kernel
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
    at[OLDEST_BEFORE], at[OLDEST], at[N_DUE], at[N_DUE_DONE] = at[OLDEST], oldest, n, 0


@kernel
def drop_due(buffers, window, judge, ends, run, changes):
    """Take the messages that are due out of the best k of those who wait at them; False if room is lacking."""
    buffers, window, judge, ends = borrow(buffers), borrow(window), borrow(judge), borrow(ends)
    run, changes = borrow(run), borrow(changes)
    at, due, lacking, scarce = run.at, run.due, run.lacking, run.scarce
    base, time, is_alive = window.head[BASE], window.time, window.is_alive
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    head, first_chunk, chunk = ends
    n_told, tick_of, subscriber_of, number_of, change_of, score_of = changes
    oldest, put_off, n_put_off = at[OLDEST], run.put_off, 0
    before, tick = at[OLDEST_BEFORE], base + at[PLACE] - 1
    is_in_order, was_in_order = at[LAST_LATE] < oldest, at[LAST_LATE] < before
    for i in range(at[N_DUE_DONE], at[N_DUE]):
        number = due[i]
        ask_for_next(row, pool, first_chunk, chunk, number - base)
        here = NO_CHUNK
        while first_chunk[number - base] != NO_CHUNK:
            if first_chunk[number - base] != here:
                here = int(first_chunk[number - base])
                ask_for_lists(row, pool, chunk, int(chunk[here * CHUNK + NEXT]))
            s = next_waiting(first_chunk, chunk, number - base)
            k = k_of(row[s * ROW + ROOMS])
            is_short = n_told[0] + 2 * k > tick_of.size or at[N_LACKING] == lacking.size
            is_short = is_short or at[N_SCARCE] == scarce.size or not has_chunks(head, chunk, n_put_off + 1)
            if is_short or n_put_off == MOST_PUT_OFF:
                let_wait(head, first_chunk, chunk, row, base, put_off, n_put_off)
                n_put_off = 0
            if is_short:
                at[N_DUE_DONE] = i
                return False
            take_waiting(head, first_chunk, chunk, number - base)
            # Who went, or waits elsewhere by now, is still there.
            if row[s * ROW + WAITS_AT] != number:
                continue
            first_told = n_told[0]
            if not was_in_order or not drop_by_keys(
                row, pool, keys, base, n_told, tick_of, subscriber_of, number_of, change_of, score_of, s, tick, before, oldest
            ):
                drop_exactly(buffers, window, judge, changes, s, tick, before, oldest, is_in_order)
            if row[s * ROW + TOLD] >= at[TICK_START]:
                take_back(run, changes, row[s * ROW + TOLD] - at[TOLD_BEFORE], first_told, s)
            row[s * ROW + WAITS_AT] = NOWHERE
            next_end = oldest_shown(row, pool, keys, time, is_alive, base, s, oldest, is_in_order)
            if next_end != NOWHERE:
                prefetch(first_chunk, next_end - base)
                put_off[2 * n_put_off], put_off[2 * n_put_off + 1] = s, next_end
                n_put_off += 1
            if row[s * ROW + GUARD_NUMBER] == NO_GUARD:
                continue
            if row[s * ROW + LAST] != NO_LAST:
                if has_no_more(row, pool, keys, s, lower_half(oldest)):
                    scarce[at[N_SCARCE]] = s
                    at[N_SCARCE] += 1
            else:
                # All that is left of it is shown; who refills it counts on that.
                clear_over(buffers, judge, base, is_alive, s, oldest, is_in_order)
                lacking[at[N_LACKING]] = s
                at[N_LACKING] += 1
    let_wait(head, first_chunk, chunk, row, base, put_off, n_put_off)
    return True


@inline_kernel
def next_waiting(first_chunk, chunk, place):
    """Who is taken next by `take_waiting`."""
    at = int(first_chunk[place]) * CHUNK
    return int(chunk[at + MEMBERS + int(chunk[at + COUNT]) - 1])


@inline_kernel
def ask_for_next(row, pool, first_chunk, chunk, place):
    """Have brought from memory what the messages that end next are waited for by: chunks, rows, and the lists of the first."""
    if place + 3 >= first_chunk.size:
        return
    if first_chunk[place + 3] != NO_CHUNK:
        prefetch(chunk, int(first_chunk[place + 3]) * CHUNK)
    at = int(first_chunk[place + 2])
    while at != NO_CHUNK:
        for i in range(chunk[at * CHUNK + COUNT]):
            prefetch(row, int(chunk[at * CHUNK + MEMBERS + i]) * ROW)
        at = int(chunk[at * CHUNK + NEXT])
    ask_for_lists(row, pool, chunk, int(first_chunk[place + 1]))


@inline_kernel
def ask_for_lists(row, pool, chunk, at):
    """Have the lists of the members of a chunk brought from memory, if there is one."""
    if at != NO_CHUNK:
        for i in range(chunk[at * CHUNK + COUNT]):
            ask_for_list(row, pool, int(chunk[at * CHUNK + MEMBERS + i]))


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
