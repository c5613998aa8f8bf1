"""Which messages enter and leave the best k of a list: decided by keys where possible, else by exact scores."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import EMPTY_SLOT, number_home
from nearcast.kernels.simd import lowest_lane, prefetch
from nearcast.ranked.kernels.exact_order import NOBODY, find_last, number_at, order_living, ranks_first, set_last, start_scoring
from nearcast.ranked.kernels.layouts import BASE, MESSAGE_RECORD, RECORD
from nearcast.ranked.kernels.list_layout import (
    GUARD_NUMBER,
    LAST,
    LIMITS,
    NO_GUARD,
    NO_LAST,
    ROW,
    SIZE,
    START,
    capacity_of,
    full_number,
    held_of,
    k_of,
    key_in,
    number32_in,
    number32_of,
    pack_last,
    start_of_numbers32,
)
from nearcast.ranked.kernels.lists import drop_expired, is_expired, mark_expired
from nearcast.ranked.kernels.scoring import score_at
from nearcast.ranked.kernels.simd_keys import high_lanes, key_lanes, largest, living, smallest
from nearcast.ranked.kernels.simd_keys_plain import GROUP, NOTHING_BELOW

ENTERS, LEAVES = 1, -1
# Keys do not decide.
UNKNOWN = -3
NONE, SEVERAL = -1, -2
# The score is computed at the end of the run.
SCORED_LATER = -1.0


@inline_kernel
def record_change(n, tick_of, subscription_of, number_of, change_of, score_of, tick, s, number, change, score):
    """Append a change to the columns of `ChangeArrays`."""
    at = n[0]
    tick_of[at], subscription_of[at], number_of[at], change_of[at], score_of[at] = tick, s, number, change, score
    n[0] = at + 1


@inline_kernel
def find_unique(keys, key_at, numbers32, numbers32_start, size, oldest, key):
    """The position of the only living message with a key; NONE if there is none, SEVERAL if there are more."""
    position = NONE
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        position = merge_unique(
            position, i, living(numbers32, numbers32_start + i, n, oldest) & key_lanes(keys, key_at + i, n, key)
        )
    return position


@inline_kernel
def merge_unique(position, i, lanes):
    """The result of `find_unique` after another group of lanes, which begins at position `i`."""
    if lanes != 0:
        position = i + lowest_lane(lanes) if position == NONE and lanes & (lanes - 1) == 0 else SEVERAL
    return position


@inline_kernel
def enter(row, pool, keys, is_alive, base, marked_key, marked_number32, s, key, oldest, is_in_order):
    """As `enter_exactly`, for a message whose key is at least that of the last of the best k; UNKNOWN if keys do not decide."""
    start, capacity = row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])
    size = held_of(row[s * ROW + SIZE], capacity)
    last, oldest32 = row[s * ROW + LAST], number32_of(oldest)
    last_key = key_in(last)
    if last == NO_LAST and size < k_of(row[s * ROW + LIMITS]):
        return NOBODY
    if last == NO_LAST or key == last_key:
        return UNKNOWN
    numbers32, key_at, numbers32_start = pool, 2 * start, start_of_numbers32(start, capacity)
    pool_start = numbers32_start
    if not is_in_order:
        mark_expired(pool, keys, start, capacity, size, is_alive, base, oldest, marked_key, marked_number32)
        keys, numbers32, key_at, numbers32_start = marked_key, marked_number32, 0, 0
    least = key
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        above = living(numbers32, numbers32_start + i, n, oldest32) & high_lanes(keys, key_at + i, n, last_key + 1)
        least = min(least, smallest(keys, key_at + i, n, above))
    new_last, old_last = NONE, NONE
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        alive = living(numbers32, numbers32_start + i, n, oldest32)
        new_last = merge_unique(new_last, i, alive & key_lanes(keys, key_at + i, n, least))
        old_last = merge_unique(old_last, i, alive & key_lanes(keys, key_at + i, n, last_key))
    if new_last == SEVERAL or old_last == SEVERAL:
        return UNKNOWN
    row[s * ROW + LAST] = pack_last(least, pool[pool_start + new_last])
    return full_number(number32_in(last), base)


@inline_kernel
def drop_by_keys(
    row, pool, keys, base, n_changes, tick_of, subscription_of, number_of, change_of, score_of, s, tick, oldest_before, oldest
):
    """As `drop_exactly`, if keys decide; else False, and nothing is recorded.

    All messages arrived in the order of their times.
    """
    start, capacity = row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])
    size = held_of(row[s * ROW + SIZE], capacity)
    last, oldest32, before32 = row[s * ROW + LAST], number32_of(oldest), number32_of(oldest_before)
    key_at, numbers32_start = 2 * start, start_of_numbers32(start, capacity)
    last_key, first_change = max(0, key_in(last)), n_changes[0]
    is_last_gone, is_decided, others = False, True, NONE
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        alive = living(pool, numbers32_start + i, n, oldest32)
        others = merge_unique(others, i, alive & key_lanes(keys, key_at + i, n, last_key))
        lanes = living(pool, numbers32_start + i, n, before32) & ~alive & high_lanes(keys, key_at + i, n, last_key)
        while lanes != 0:
            ended = i + lowest_lane(lanes)
            lanes &= lanes - 1
            number = full_number(pool[numbers32_start + ended], base)
            record_change(
                n_changes, tick_of, subscription_of, number_of, change_of, score_of, tick, s, number, LEAVES, SCORED_LATER
            )
            if keys[key_at + ended] == last_key:
                is_last_gone = True
                is_decided = is_decided and pool[numbers32_start + ended] == number32_in(last)
    n_ended = n_changes[0] - first_change
    if last == NO_LAST or n_ended == 0:
        return True
    is_decided = is_decided and others != SEVERAL and not (is_last_gone and others != NONE)
    while is_decided and n_ended > 0:
        most = largest_key_below(keys, key_at, pool, numbers32_start, size, oldest32, last_key)
        if most == NOTHING_BELOW:
            last = NO_LAST
            break
        new = find_unique(keys, key_at, pool, numbers32_start, size, oldest32, most)
        if new == SEVERAL:
            is_decided = False
            break
        number = full_number(pool[numbers32_start + new], base)
        record_change(
            n_changes, tick_of, subscription_of, number_of, change_of, score_of, tick, s, number, ENTERS, SCORED_LATER
        )
        last_key, last = most, pack_last(most, pool[numbers32_start + new])
        n_ended -= 1
    if is_decided:
        row[s * ROW + LAST] = last
    else:
        n_changes[0] = first_change
    return is_decided


@inline_kernel
def is_exhausted(row, pool, keys, s, oldest32):
    """Whether no living message ranks behind the best k, as far as keys decide."""
    start, capacity = row[s * ROW + START], capacity_of(row[s * ROW + LIMITS])
    size, last_key, numbers32_start = (
        held_of(row[s * ROW + SIZE], capacity),
        key_in(row[s * ROW + LAST]),
        start_of_numbers32(start, capacity),
    )
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        if living(pool, numbers32_start + i, n, oldest32) & ~high_lanes(keys, 2 * start + i, n, last_key) != 0:
            return False
    return True


@inline_kernel
def largest_key_below(keys, key_at, numbers32, numbers32_start, size, oldest32, last_key):
    """The largest key below `last_key` among living messages, or NOTHING_BELOW."""
    most = NOTHING_BELOW
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        behind = living(numbers32, numbers32_start + i, n, oldest32) & ~high_lanes(keys, key_at + i, n, last_key)
        most = max(most, largest(keys, key_at + i, n, behind))
    return most


@kernel
def find_low_reserve(buffers, numbers, oldest, has_low_reserve):
    """Write which lists have a guard and nothing beyond their best k messages: the window has more, which they do not hold."""
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    for i in range(numbers.size):
        s = int(numbers[i])
        has_all = row[s * ROW + LAST] == NO_LAST or row[s * ROW + GUARD_NUMBER] == NO_GUARD
        has_low_reserve[i] = not has_all and is_exhausted(row, pool, keys, s, number32_of(oldest))


@kernel
def drop_exactly(buffers, window, scorer, changes, s, tick, oldest_before, oldest, is_in_order):
    """Record which of the best k expired in this tick, and which messages take their places; expired messages are removed."""
    buffers, window, scorer, changes = borrow(buffers), borrow(window), borrow(scorer), borrow(changes)
    row, base = buffers.row, window.head[BASE]
    n_changes, tick_of, subscription_of, number_of, change_of, score_of = changes
    k, size = k_of(row[s * ROW + LIMITS]), held_of(row[s * ROW + SIZE], capacity_of(row[s * ROW + LIMITS]))
    last = NOBODY if row[s * ROW + LAST] == NO_LAST else find_last(buffers, s)
    start_scoring(scorer, size)
    n_ended = 0
    for position in range(size):
        # Messages that expired earlier were recorded, or were not among the best k.
        number = number_at(buffers, base, s, position)
        if number < oldest_before or not is_expired(window.is_alive, base, number, oldest, is_in_order):
            continue
        if last == NOBODY or position == last or ranks_first(buffers, window, scorer, s, position, last):
            record_change(
                n_changes, tick_of, subscription_of, number_of, change_of, score_of, tick, s, number, LEAVES, SCORED_LATER
            )
            n_ended += 1
    drop_expired(buffers, scorer, base, window.is_alive, s, oldest, is_in_order)
    n = order_living(buffers, window, scorer, s, oldest, is_in_order)
    # Before, all k ranks were taken, or every message had one.
    first_new = n if last == NOBODY else k - n_ended
    for rank in range(first_new, min(k, n)):
        number = number_at(buffers, base, s, scorer.order[rank])
        record_change(
            n_changes, tick_of, subscription_of, number_of, change_of, score_of, tick, s, number, ENTERS, SCORED_LATER
        )
    set_last(row, buffers.pool, buffers.key, s, scorer.order, n)


# Changes that are prefetched.
_AHEAD = 12


@kernel
def score_changes(scorer, window, changes):
    """Compute the scores of changes that were recorded without; their messages are still in the window."""
    scorer, window, changes = borrow(scorer), borrow(window), borrow(changes)
    distances, subscriptions, common = scorer.distances, scorer.subscriptions, scorer.common
    subscription, number, score, base = changes.subscription, changes.number, changes.score, window.head[BASE]
    record, message, keyword_start = subscriptions.record, window.record, window.keyword_start
    keyword, value, n = window.keyword, window.value, changes.n[0]
    for i in range(n):
        ahead = i + 2 * _AHEAD
        if ahead < n and score[ahead] == SCORED_LATER:
            s, position = int(subscription[ahead]), number[ahead] - base
            prefetch(record, RECORD * s)
            prefetch(message, MESSAGE_RECORD * position)
            prefetch(message, MESSAGE_RECORD * (position + 1))
        ahead = i + _AHEAD
        if ahead < n and score[ahead] == SCORED_LATER:
            position = number[ahead] - base
            at, end = keyword_start[position], keyword_start[position + 1] - 1
            prefetch(keyword, at)
            prefetch(keyword, end)
            prefetch(value, at)
            prefetch(value, end)
        if score[i] == SCORED_LATER:
            score[i] = score_at(distances, subscriptions, window, int(subscription[i]), number[i] - base, common)


_SLOTS_AHEAD = 32
_HALF = 32


@inline_kernel
def _home_of_pair(first, second, n_slots):
    return number_home(np.int64(first) << _HALF | np.int64(second), n_slots)


@kernel
def sum_changes(subscription, message, score, change, slot, total):
    """Write the sum of the changes of a message in a list with the same score, at the first of them; 0 at the others.

    `slot` is scratch: a power of two of slots, more than there are changes, all EMPTY_SLOT.
    """
    n = message.size
    for i in range(n):
        if i + _SLOTS_AHEAD < n:
            prefetch(slot, _home_of_pair(subscription[i + _SLOTS_AHEAD], message[i + _SLOTS_AHEAD], slot.size))
        at, first = _home_of_pair(subscription[i], message[i], slot.size), i
        while slot[at] != EMPTY_SLOT:
            other = slot[at]
            if message[other] == message[i] and subscription[other] == subscription[i] and score[other] == score[i]:
                first = other
                break
            at = (at + 1) & (slot.size - 1)
        total[i] = 0
        total[first] += change[i]
        slot[at] = first
