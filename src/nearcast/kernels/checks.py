"""What a box and keywords cannot say: forbidden keywords, exact shapes, one delivery per subscription."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.keyword_sets import has_any, mark_keywords
from nearcast.kernels.shapes import NO, NO_SHAPE, YES, shape_meets

PLAIN = -1  # the check of a clause that needs none


class CheckArrays(NamedTuple):
    """Check `c` forbids `forbidden[forbidden_start[c]:forbidden_start[c + 1]]` and asks for `shape[c]` to be met."""

    check: np.ndarray  # int32[n_clauses]; PLAIN = nothing to check
    subscription: np.ndarray  # int32[n_clauses]: the subscription of a clause
    forbidden_start: np.ndarray  # int64[n_checks + 1]
    forbidden: np.ndarray  # int32[]
    shape: np.ndarray  # int32[n_checks]; NO_SHAPE = the boxes are the region


@kernel
def verify_groups(key, member, begin, end, checks, shapes, is_lonlat, messages, stamp, mark, verdict):
    """Fill `verdict` with YES, NO or UNSURE for each pair of a message `key[i]` and a clause `member[begin[i]:end[i]]`."""
    check, shape = checks.check, checks.shape
    forbidden_start, forbidden = checks.forbidden_start, checks.forbidden
    start, keyword = messages.keyword_start, messages.keyword
    pair = 0
    for i in range(key.size):
        message, is_marked = key[i], False
        for at in range(begin[i], end[i]):
            number = check[member[at]]
            verdict[pair] = YES
            pair += 1
            if number == PLAIN:
                continue
            if not is_marked:
                mark_keywords(stamp, mark + 1 + message, keyword, start[message], start[message + 1])
                is_marked = True
            if has_any(stamp, mark + 1 + message, forbidden, forbidden_start[number], forbidden_start[number + 1]):
                verdict[pair - 1] = NO
            elif shape[number] != NO_SHAPE:
                x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
                verdict[pair - 1] = shape_meets(shapes, shape[number], is_lonlat, x0, y0, x1, y1)


@kernel
def take_verified(key, member, begin, end, verdict, checks, delivered, mark, out_message, out_subscription):
    """Write the pairs with verdict YES, each subscription once per message; returns how many."""
    check, subscription_of = checks.check, checks.subscription
    n_out, pair = 0, 0
    for i in range(key.size):
        current = mark + 1 + key[i]
        for at in range(begin[i], end[i]):
            is_match = verdict[pair] == YES
            pair += 1
            if not is_match:
                continue
            subscription = subscription_of[member[at]]
            if check[member[at]] != PLAIN:
                if delivered[subscription] == current:
                    continue
                delivered[subscription] = current
            out_message[n_out] = key[i]
            out_subscription[n_out] = subscription
            n_out += 1
    return n_out
