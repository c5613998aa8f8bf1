"""The loop over ticks: a message arrives, is offered to its matches, and the messages that are due expire.

A list is touched at most twice in a tick: when the message arrives, and when all due messages expire together. Changes of the
first that the second reverses are cancelled, so a tick reports the differences to the tick before.
"""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import prefetch
from nearcast.ranked.kernels.exact_order import NOBODY, NOT_SHOWN, enter_exactly, free_capacity
from nearcast.ranked.kernels.expiry_calendar import has_chunks, oldest_shown, pop_scheduled, schedule, schedule_deferred
from nearcast.ranked.kernels.layouts import (
    ADMIT,
    ALL_ARRIVED,
    ARRIVE,
    BASE,
    DONE,
    EXPIRE,
    LACKS_MESSAGES,
    LACKS_OUTPUT,
    N_DONE,
    N_HEAP,
    N_NEEDS_REFILL,
    N_TRUNCATED,
    NEWEST,
    NO_MESSAGE,
    NOW,
    PHASE,
    POSITION,
    REFILL,
    SPAN,
    UNFINISHED,
)
from nearcast.ranked.kernels.list_layout import (
    CANCELLED,
    CHANGES_BEFORE,
    CHUNK,
    COUNT,
    DROP,
    GUARD_NUMBER,
    LAST,
    LAST_LATE,
    LIMITS,
    MAX_DEFERRED,
    MEMBERS,
    N_CANCELLED,
    N_DUE,
    N_DUE_DONE,
    N_LOW_RESERVE,
    NEXT,
    NO_CHUNK,
    NO_GUARD,
    NO_LAST,
    NOWHERE,
    OLDEST,
    OLDEST_BEFORE,
    RECORDED_AT,
    ROW,
    SCHEDULED_AT,
    SIZE,
    START,
    TICK_START,
    capacity_of,
    held_of,
    is_roughly_above,
    k_of,
    key_in,
    key_of,
    next_of,
    number32_of,
    start_of_numbers32,
)
from nearcast.ranked.kernels.lists import drop_expired, is_above_guard, is_full, newest_in, put_in
from nearcast.ranked.kernels.rank_changes import (
    ENTERS,
    LEAVES,
    SCORED_LATER,
    UNKNOWN,
    drop_by_keys,
    drop_exactly,
    enter,
    is_exhausted,
    record_change,
)
from nearcast.ranked.kernels.window import is_newer, next_arrival, next_due, pop_oldest

# Rows and lists that are prefetched, how many at a time, and the numbers in a line of memory.
_ROWS_AHEAD, _LISTS_AHEAD, _TOGETHER, _PER_LINE = 32, 8, 8, 16


@kernel
def run_tick_loop(matches, buffers, window, scorer, calendar, run, changes, last, is_timed, n_counted):
    """Add messages up to position `last`, or expire what is due; returns why it stopped, see `layouts.py`."""
    buffers, window, calendar, run, changes = borrow(buffers), borrow(window), borrow(calendar), borrow(run), borrow(changes)
    matches, scorer = borrow(matches), borrow(scorer)
    at = run.at
    while True:
        position = next_arrival(window, run, last, is_timed)
        if position == ALL_ARRIVED:
            return DONE
        if position != UNFINISHED:
            at[TICK_START] = at[CHANGES_BEFORE] + changes.n[0]
            if at[NEWEST] != window.head[BASE] + position:
                at[LAST_LATE] = window.head[BASE] + position
        stopped = finish_tick(matches, buffers, window, scorer, calendar, run, changes, is_timed, n_counted)
        if stopped != DONE:
            return stopped


@inline_kernel
def finish_tick(matches, buffers, window, scorer, calendar, run, changes, is_timed, n_counted):
    """Run a tick to its end; returns DONE, or what is lacking."""
    at = run.at
    if at[PHASE] == ADMIT:
        if not admit_message(matches, buffers, window, scorer, calendar, run, changes, is_timed):
            return LACKS_OUTPUT
        at[PHASE] = EXPIRE
    if at[PHASE] == EXPIRE:
        gather_due(window, run, is_timed, n_counted)
        at[PHASE] = DROP
    if at[PHASE] == DROP:
        if not drop_due(buffers, window, scorer, calendar, run, changes):
            return LACKS_OUTPUT
        at[PHASE] = REFILL
    if at[PHASE] == REFILL and at[N_NEEDS_REFILL] > 0:
        return LACKS_MESSAGES
    at[PHASE] = ARRIVE
    return DONE


@kernel
def admit_message(matches, buffers, window, scorer, calendar, run, changes, is_timed):
    """Offer the message that has arrived to the subscriptions it matches; False if memory is lacking."""
    buffers, window, scorer, calendar = borrow(buffers), borrow(window), borrow(scorer), borrow(calendar)
    run, changes = borrow(run), borrow(changes)
    at, base = run.at, window.head[BASE]
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    first, _, start, subscription, score = borrow(matches)
    # Read from their tuples once: each read of an array counts a reference.
    n_changes, tick_of, subscription_of, number_of, change_of, score_of = changes
    truncated, real, time, is_alive = run.truncated, buffers.real, window.time, window.is_alive
    marked_key, marked_number32 = scorer.marked_key, scorer.marked_number32
    head, first_chunk, chunk = calendar
    position = at[POSITION] - 1
    if is_timed and time[position] <= run.clock[NOW] - run.clock[SPAN]:
        # It has expired already.
        return True
    number, oldest = base + position, at[OLDEST]
    number32 = number32_of(number)
    is_late, is_in_order = at[NEWEST] != number, at[LAST_LATE] < oldest
    begin, end, n_matches = start[position - first], start[position - first + 1], start[start.size - 1]
    for i in range(begin + at[N_DONE], end):
        if i % _TOGETHER == 0:
            for ahead in range(i + _ROWS_AHEAD, min(i + _ROWS_AHEAD + _TOGETHER, n_matches)):
                prefetch(row, int(subscription[ahead]) * ROW)
            for ahead in range(i + _LISTS_AHEAD, min(i + _LISTS_AHEAD + _TOGETHER, n_matches)):
                prefetch_insertion(row, pool, int(subscription[ahead]), score[ahead])
        s = int(subscription[i])
        if n_changes[0] + 2 > tick_of.size or at[N_TRUNCATED] == truncated.size or not has_chunks(head, chunk, 1):
            at[N_DONE] = i - begin
            return False
        if row[s * ROW + SIZE] > 0 and newest_in(row, pool, s) == number32:
            # It was found twice.
            continue
        if not is_above_guard(row, real, time, base, s * ROW, score[i], number):
            continue
        if is_full(row, pool, is_alive, base, s, oldest, is_in_order):
            if free_capacity(buffers, window, scorer, s, oldest, is_in_order):
                truncated[at[N_TRUNCATED]] = s
                at[N_TRUNCATED] += 1
            if not is_above_guard(row, real, time, base, s * ROW, score[i], number):
                continue
        key = key_of(score[i], row[s * ROW + LIMITS])
        put_in(row, pool, keys, s, number, key)
        if key < key_in(row[s * ROW + LAST]):
            continue
        replaced = enter(row, pool, keys, is_alive, base, marked_key, marked_number32, s, key, oldest, is_in_order)
        if replaced == UNKNOWN:
            replaced = enter_exactly(buffers, window, scorer, s, oldest, is_in_order)
        if replaced == NOT_SHOWN:
            continue
        row[s * ROW + RECORDED_AT] = at[CHANGES_BEFORE] + n_changes[0]
        record_change(n_changes, tick_of, subscription_of, number_of, change_of, score_of, number, s, number, ENTERS, score[i])
        if replaced != NOBODY:
            record_change(
                n_changes, tick_of, subscription_of, number_of, change_of, score_of, number, s, replaced, LEAVES, SCORED_LATER
            )
        scheduled_at = row[s * ROW + SCHEDULED_AT]
        if scheduled_at == NOWHERE or (is_late and scheduled_at != number and is_newer(time, base, scheduled_at, number)):
            schedule(head, first_chunk, chunk, row, base, s, number)
    return True


@inline_kernel
def prefetch_insertion(row, pool, s, score):
    """Prefetch where a message will be added: the end of a list, or all of the list if the message ranks among the best k."""
    limits = row[s * ROW + LIMITS]
    if is_roughly_above(score, limits, key_in(row[s * ROW + LAST])):
        prefetch_list(row, pool, s)
    else:
        start, capacity = row[s * ROW + START], capacity_of(limits)
        at = next_of(row[s * ROW + SIZE], capacity)
        prefetch(pool, start + at // 2)
        prefetch(pool, start_of_numbers32(start, capacity) + at)


@inline_kernel
def prefetch_list(row, pool, s):
    """Prefetch the messages of a list."""
    start, capacity = row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])
    size, numbers32_start = held_of(row[s * ROW + SIZE], capacity), start_of_numbers32(start, capacity)
    for at in range(start, start + (size + 2) // 2, _PER_LINE):
        prefetch(pool, at)
    for at in range(numbers32_start, numbers32_start + size + 1, _PER_LINE):
        prefetch(pool, at)


@inline_kernel
def gather_due(window, run, is_timed, n_counted):
    """Expire the messages that are due, and list them."""
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
    oldest, end = max(at[OLDEST], base), base + at[POSITION]
    while oldest < end and is_alive[oldest - base] == 0:
        oldest += 1
    at[OLDEST_BEFORE], at[OLDEST], at[N_DUE], at[N_DUE_DONE] = at[OLDEST], oldest, n, 0


@kernel
def drop_due(buffers, window, scorer, calendar, run, changes):
    """Remove the due messages from the best k of the lists scheduled at them; False if memory is lacking."""
    buffers, window, scorer, calendar = borrow(buffers), borrow(window), borrow(scorer), borrow(calendar)
    run, changes = borrow(run), borrow(changes)
    at, due, needs_refill, low_reserve = run.at, run.due, run.needs_refill, run.low_reserve
    base, time, is_alive = window.head[BASE], window.time, window.is_alive
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    head, first_chunk, chunk = calendar
    n_changes, tick_of, subscription_of, number_of, change_of, score_of = changes
    oldest, deferred, n_deferred = at[OLDEST], run.deferred, 0
    before, tick = at[OLDEST_BEFORE], base + at[POSITION] - 1
    is_in_order, was_in_order = at[LAST_LATE] < oldest, at[LAST_LATE] < before
    for i in range(at[N_DUE_DONE], at[N_DUE]):
        number = due[i]
        prefetch_next(row, pool, first_chunk, chunk, number - base)
        current_chunk = NO_CHUNK
        while first_chunk[number - base] != NO_CHUNK:
            if first_chunk[number - base] != current_chunk:
                current_chunk = int(first_chunk[number - base])
                prefetch_lists(row, pool, chunk, int(chunk[current_chunk * CHUNK + NEXT]))
            s = next_scheduled(first_chunk, chunk, number - base)
            k = k_of(row[s * ROW + LIMITS])
            is_short = n_changes[0] + 2 * k > tick_of.size or at[N_NEEDS_REFILL] == needs_refill.size
            is_short = is_short or at[N_LOW_RESERVE] == low_reserve.size or not has_chunks(head, chunk, n_deferred + 1)
            if is_short or n_deferred == MAX_DEFERRED:
                schedule_deferred(head, first_chunk, chunk, row, base, deferred, n_deferred)
                n_deferred = 0
            if is_short:
                at[N_DUE_DONE] = i
                return False
            pop_scheduled(head, first_chunk, chunk, number - base)
            # The subscription was removed or rescheduled, but is still listed here.
            if row[s * ROW + SCHEDULED_AT] != number:
                continue
            first_change = n_changes[0]
            if not was_in_order or not drop_by_keys(
                row,
                pool,
                keys,
                base,
                n_changes,
                tick_of,
                subscription_of,
                number_of,
                change_of,
                score_of,
                s,
                tick,
                before,
                oldest,
            ):
                drop_exactly(buffers, window, scorer, changes, s, tick, before, oldest, is_in_order)
            if row[s * ROW + RECORDED_AT] >= at[TICK_START]:
                cancel_reversed(run, changes, row[s * ROW + RECORDED_AT] - at[CHANGES_BEFORE], first_change, s)
            row[s * ROW + SCHEDULED_AT] = NOWHERE
            next_end = oldest_shown(row, pool, keys, time, is_alive, base, s, oldest, is_in_order)
            if next_end != NOWHERE:
                prefetch(first_chunk, next_end - base)
                deferred[2 * n_deferred], deferred[2 * n_deferred + 1] = s, next_end
                n_deferred += 1
            if row[s * ROW + GUARD_NUMBER] == NO_GUARD:
                continue
            if row[s * ROW + LAST] != NO_LAST:
                if is_exhausted(row, pool, keys, s, number32_of(oldest)):
                    low_reserve[at[N_LOW_RESERVE]] = s
                    at[N_LOW_RESERVE] += 1
            else:
                # Everything left in the list is among its best k; `_refill_during_run` relies on that.
                drop_expired(buffers, scorer, base, is_alive, s, oldest, is_in_order)
                needs_refill[at[N_NEEDS_REFILL]] = s
                at[N_NEEDS_REFILL] += 1
    schedule_deferred(head, first_chunk, chunk, row, base, deferred, n_deferred)
    return True


@inline_kernel
def next_scheduled(first_chunk, chunk, position):
    """The subscription that `pop_scheduled` returns next."""
    at = int(first_chunk[position]) * CHUNK
    return int(chunk[at + MEMBERS + int(chunk[at + COUNT]) - 1])


@inline_kernel
def prefetch_next(row, pool, first_chunk, chunk, position):
    """Prefetch for the messages that expire next: chunks, rows, and the lists of the first."""
    if position + 3 >= first_chunk.size:
        return
    if first_chunk[position + 3] != NO_CHUNK:
        prefetch(chunk, int(first_chunk[position + 3]) * CHUNK)
    at = int(first_chunk[position + 2])
    while at != NO_CHUNK:
        for i in range(chunk[at * CHUNK + COUNT]):
            prefetch(row, int(chunk[at * CHUNK + MEMBERS + i]) * ROW)
        at = int(chunk[at * CHUNK + NEXT])
    prefetch_lists(row, pool, chunk, int(first_chunk[position + 1]))


@inline_kernel
def prefetch_lists(row, pool, chunk, at):
    """Prefetch the lists of the members of a chunk, if there is one."""
    if at != NO_CHUNK:
        for i in range(chunk[at * CHUNK + COUNT]):
            prefetch_list(row, pool, int(chunk[at * CHUNK + MEMBERS + i]))


@inline_kernel
def cancel_reversed(run, changes, earlier, first_change, s):
    """Mark changes from the arrival (`earlier` on) as cancelled if a later one (`first_change` on) reverses them."""
    number, change = changes.number, changes.change
    for i in range(earlier, min(earlier + 2, first_change)):
        if changes.subscription[i] != s:
            continue
        for j in range(first_change, changes.n[0]):
            if number[j] == number[i] and change[j] == -change[i]:
                change[i], change[j] = CANCELLED, CANCELLED
                run.at[N_CANCELLED] += 2
                break
