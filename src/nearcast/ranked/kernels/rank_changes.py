"""Who comes into the best k of a list, and who goes: told by keys where they tell, else by exact scores."""

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
    NO_GUARD,
    NO_LAST,
    ROOMS,
    ROW,
    SIZE,
    START,
    full_number,
    held_of,
    k_of,
    key_in,
    low_in,
    lower_half,
    lows_at,
    pack_last,
    room_of,
)
from nearcast.ranked.kernels.lists import clear_over, is_over, mark_over
from nearcast.ranked.kernels.scoring import score_at
from nearcast.ranked.kernels.simd_keys import high_lanes, key_lanes, largest, living, smallest
from nearcast.ranked.kernels.simd_keys_plain import GROUP, NOTHING_BELOW

ENTERS, LEAVES = 1, -1
# Keys do not tell.
UNKNOWN = -3
NONE, SEVERAL = -1, -2
# A score that is computed when all is done.
NOT_TOLD = -1.0


@inline_kernel
def tell(n, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, change, score):
    """Write down a change, in the columns of `ChangeArrays`."""
    at = n[0]
    tick_of[at], subscriber_of[at], number_of[at], change_of[at], score_of[at] = tick, s, number, change, score
    n[0] = at + 1


@inline_kernel
def only_one(keys, key_at, lows, low_at, size, oldest, key):
    """The position of the only living message with a key; NONE without one, SEVERAL if there are more."""
    found = NONE
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        found = one_of(found, i, living(lows, low_at + i, n, oldest) & key_lanes(keys, key_at + i, n, key))
    return found


@inline_kernel
def one_of(found, i, lanes):
    """What is found with these lanes, from position `i` on, if this was found before."""
    if lanes != 0:
        found = i + lowest_lane(lanes) if found == NONE and lanes & (lanes - 1) == 0 else SEVERAL
    return found


@inline_kernel
def enter(row, pool, keys, is_alive, base, marked_key, marked_low, s, key, oldest, is_in_order):
    """As `enter_exactly` for a message with at least the key of the last of the best k, or UNKNOWN."""
    start, room = row[s * ROW + START], room_of(row[s * ROW + ROOMS])
    size = held_of(row[s * ROW + SIZE], room)
    last, low = row[s * ROW + LAST], lower_half(oldest)
    border = key_in(last)
    if last == NO_LAST and size < k_of(row[s * ROW + ROOMS]):
        return NOBODY
    if last == NO_LAST or key == border:
        return UNKNOWN
    lows, key_at, low_at = pool, 2 * start, lows_at(start, room)
    own = low_at
    if not is_in_order:
        mark_over(pool, keys, start, room, size, is_alive, base, oldest, marked_key, marked_low)
        keys, lows, key_at, low_at = marked_key, marked_low, 0, 0
    least = key
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        above = living(lows, low_at + i, n, low) & high_lanes(keys, key_at + i, n, border + 1)
        least = min(least, smallest(keys, key_at + i, n, above))
    new_last, old_last = NONE, NONE
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        alive = living(lows, low_at + i, n, low)
        new_last = one_of(new_last, i, alive & key_lanes(keys, key_at + i, n, least))
        old_last = one_of(old_last, i, alive & key_lanes(keys, key_at + i, n, border))
    if new_last == SEVERAL or old_last == SEVERAL:
        return UNKNOWN
    row[s * ROW + LAST] = pack_last(least, pool[own + new_last])
    return full_number(low_in(last), base)


@inline_kernel
def drop_by_keys(
    row, pool, keys, base, n_told, tick_of, subscriber_of, number_of, change_of, score_of, s, tick, oldest_before, oldest
):
    """As `drop_exactly` where keys tell; else False, and nothing is told. All messages came in order."""
    start, room = row[s * ROW + START], room_of(row[s * ROW + ROOMS])
    size = held_of(row[s * ROW + SIZE], room)
    last, low, before = row[s * ROW + LAST], lower_half(oldest), lower_half(oldest_before)
    key_at, low_at = 2 * start, lows_at(start, room)
    border, first_told = max(0, key_in(last)), n_told[0]
    is_last_gone, is_told, others = False, True, NONE
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        alive = living(pool, low_at + i, n, low)
        others = one_of(others, i, alive & key_lanes(keys, key_at + i, n, border))
        lanes = living(pool, low_at + i, n, before) & ~alive & high_lanes(keys, key_at + i, n, border)
        while lanes != 0:
            ended = i + lowest_lane(lanes)
            lanes &= lanes - 1
            number = full_number(pool[low_at + ended], base)
            tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, LEAVES, NOT_TOLD)
            if keys[key_at + ended] == border:
                is_last_gone = True
                is_told = is_told and pool[low_at + ended] == low_in(last)
    n_ended = n_told[0] - first_told
    if last == NO_LAST or n_ended == 0:
        return True
    is_told = is_told and others != SEVERAL and not (is_last_gone and others != NONE)
    while is_told and n_ended > 0:
        most = most_behind(keys, key_at, pool, low_at, size, low, border)
        if most == NOTHING_BELOW:
            last = NO_LAST
            break
        new = only_one(keys, key_at, pool, low_at, size, low, most)
        if new == SEVERAL:
            is_told = False
            break
        number = full_number(pool[low_at + new], base)
        tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, ENTERS, NOT_TOLD)
        border, last = most, pack_last(most, pool[low_at + new])
        n_ended -= 1
    if is_told:
        row[s * ROW + LAST] = last
    else:
        n_told[0] = first_told
    return is_told


@inline_kernel
def has_no_more(row, pool, keys, s, low):
    """Whether nothing that lives ranks behind the best k, as far as keys tell."""
    start, room = row[s * ROW + START], room_of(row[s * ROW + ROOMS])
    size, border, lows = held_of(row[s * ROW + SIZE], room), key_in(row[s * ROW + LAST]), lows_at(start, room)
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        if living(pool, lows + i, n, low) & ~high_lanes(keys, 2 * start + i, n, border) != 0:
            return False
    return True


@inline_kernel
def most_behind(keys, key_at, lows, low_at, size, low, border):
    """The largest key of a list below a border of those that live, or NOTHING_BELOW."""
    most = NOTHING_BELOW
    for i in range(0, size, GROUP):
        n = min(GROUP, size - i)
        behind = living(lows, low_at + i, n, low) & ~high_lanes(keys, key_at + i, n, border)
        most = max(most, largest(keys, key_at + i, n, behind))
    return most


@kernel
def find_scarce(buffers, numbers, oldest, is_scarce):
    """Write which subscriptions have their best k messages, no more, and a guard: there are others, which they do not hold."""
    row, pool, keys = buffers.row, buffers.pool, buffers.key
    for i in range(numbers.size):
        s = int(numbers[i])
        has_all = row[s * ROW + LAST] == NO_LAST or row[s * ROW + GUARD_NUMBER] == NO_GUARD
        is_scarce[i] = not has_all and has_no_more(row, pool, keys, s, lower_half(oldest))


@kernel
def drop_exactly(buffers, window, judge, changes, s, tick, oldest_before, oldest, is_in_order):
    """Tell which of the best k have ended in this tick, and who takes their places; clears the list of what is over."""
    buffers, window, judge, changes = borrow(buffers), borrow(window), borrow(judge), borrow(changes)
    row, base = buffers.row, window.head[BASE]
    n_told, tick_of, subscriber_of, number_of, change_of, score_of = changes
    k, size = k_of(row[s * ROW + ROOMS]), held_of(row[s * ROW + SIZE], room_of(row[s * ROW + ROOMS]))
    last = NOBODY if row[s * ROW + LAST] == NO_LAST else find_last(buffers, s)
    start_scoring(judge, size)
    n_ended = 0
    for position in range(size):
        # What ended before was told, or was not among the best k.
        number = number_at(buffers, base, s, position)
        if number < oldest_before or not is_over(window.is_alive, base, number, oldest, is_in_order):
            continue
        if last == NOBODY or position == last or ranks_first(buffers, window, judge, s, position, last):
            tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, LEAVES, NOT_TOLD)
            n_ended += 1
    clear_over(buffers, judge, base, window.is_alive, s, oldest, is_in_order)
    n = order_living(buffers, window, judge, s, oldest, is_in_order)
    # Before, all places were taken, or all messages had one.
    first_new = n if last == NOBODY else k - n_ended
    for rank in range(first_new, min(k, n)):
        number = number_at(buffers, base, s, judge.order[rank])
        tell(n_told, tick_of, subscriber_of, number_of, change_of, score_of, tick, s, number, ENTERS, NOT_TOLD)
    set_last(row, buffers.pool, buffers.key, s, judge.order, n)


# -- The scores of changes that were told without them.

# Changes that are asked for ahead of their use.
_AHEAD = 12


@kernel
def score_told(judge, window, changes):
    """Score what was told without a score; the messages are still in the window."""
    judge, window, changes = borrow(judge), borrow(window), borrow(changes)
    ground, subscribers, common = judge.ground, judge.subscribers, judge.common
    subscriber, number, score, base = changes.subscriber, changes.number, changes.score, window.head[BASE]
    record, message, keyword_start = subscribers.record, window.record, window.keyword_start
    keyword, value, n = window.keyword, window.value, changes.n[0]
    for i in range(n):
        ahead = i + 2 * _AHEAD
        if ahead < n and score[ahead] == NOT_TOLD:
            s, place = int(subscriber[ahead]), number[ahead] - base
            prefetch(record, RECORD * s)
            prefetch(message, MESSAGE_RECORD * place)
            prefetch(message, MESSAGE_RECORD * (place + 1))
        ahead = i + _AHEAD
        if ahead < n and score[ahead] == NOT_TOLD:
            place = number[ahead] - base
            at, end = keyword_start[place], keyword_start[place + 1] - 1
            prefetch(keyword, at)
            prefetch(keyword, end)
            prefetch(value, at)
            prefetch(value, end)
        if score[i] == NOT_TOLD:
            score[i] = score_at(ground, subscribers, window, int(subscriber[i]), number[i] - base, common)


# -- Sums of changes of ranks.

_SLOTS_AHEAD = 32
_HALF = 32


@inline_kernel
def _home_of_pair(first, second, n_slots):
    return number_home(np.int64(first) << _HALF | np.int64(second), n_slots)


@kernel
def add_up_changes(subscriber, message, score, change, slot, total):
    """The sum of all changes of a message in a list with the same score, at the first of them; 0 at the others.

    `slot` is scratch: a power of two of places, more than there are changes, all EMPTY_SLOT.
    """
    n = message.size
    for i in range(n):
        if i + _SLOTS_AHEAD < n:
            prefetch(slot, _home_of_pair(subscriber[i + _SLOTS_AHEAD], message[i + _SLOTS_AHEAD], slot.size))
        at, first = _home_of_pair(subscriber[i], message[i], slot.size), i
        while slot[at] != EMPTY_SLOT:
            other = slot[at]
            if message[other] == message[i] and subscriber[other] == subscriber[i] and score[other] == score[i]:
                first = other
                break
            at = (at + 1) & (slot.size - 1)
        total[i] = 0
        total[first] += change[i]
        slot[at] = first
