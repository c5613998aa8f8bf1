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
    owner: np.ndarray  # int32[n_clauses]: the subscription of a clause
    forbidden_start: np.ndarray  # int64[n_checks + 1]
    forbidden: np.ndarray  # int32[]
    shape: np.ndarray  # int32[n_checks]; NO_SHAPE = the boxes are the region


@kernel
def judge_pairs(pair_message, pair_clause, checks, shapes, is_lonlat, messages, stamp, mark, verdict):
    """Fill `verdict` with YES, NO or UNSURE for each (message, clause) pair; pairs are grouped by message."""
    check, shape = checks.check, checks.shape
    forbidden_start, forbidden = checks.forbidden_start, checks.forbidden
    start, keyword = messages.keyword_start, messages.keyword
    marked = -1
    for i in range(pair_message.size):
        wanted = check[pair_clause[i]]
        verdict[i] = YES
        if wanted == PLAIN:
            continue
        message = pair_message[i]
        if message != marked:
            mark_keywords(stamp, mark + 1 + message, keyword, start[message], start[message + 1])
            marked = message
        if has_any(stamp, mark + 1 + message, forbidden, forbidden_start[wanted], forbidden_start[wanted + 1]):
            verdict[i] = NO
        elif shape[wanted] != NO_SHAPE:
            x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
            verdict[i] = shape_meets(shapes, shape[wanted], is_lonlat, x0, y0, x1, y1)


@kernel
def keep_deliveries(pair_message, pair_clause, verdict, checks, delivered, mark, out_message, out_owner):
    """Write the pairs judged YES, each subscription once per message; returns how many."""
    check, owner = checks.check, checks.owner
    n_out = 0
    for i in range(pair_message.size):
        if verdict[i] != YES:
            continue
        subscription = owner[pair_clause[i]]
        if check[pair_clause[i]] != PLAIN:
            current = mark + 1 + pair_message[i]
            if delivered[subscription] == current:
                continue
            delivered[subscription] = current
        out_message[n_out] = pair_message[i]
        out_owner[n_out] = subscription
        n_out += 1
    return n_out
