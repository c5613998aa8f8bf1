"""Sets of keyword ids: sort and de-duplicate, mark the keywords of a message, test a clause against the marks."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel

_INSERTION_LIMIT = 24


@inline_kernel
def sort_few(values, start, stop):
    """Sort a short run in place."""
    for i in range(start + 1, stop):
        value = values[i]
        j = i - 1
        while j >= start and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


@kernel
def sort_many(values, start, stop):
    """Sort a long run in place (heap sort: no memory, no bad case)."""
    n = stop - start
    for root in range(n // 2 - 1, -1, -1):
        sift_down(values, start, root, n)
    for last in range(n - 1, 0, -1):
        values[start], values[start + last] = values[start + last], values[start]
        sift_down(values, start, 0, last)


@kernel
def sift_down(values, start, root, n):
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and values[start + child] < values[start + child + 1]:
            child += 1
        if values[start + root] >= values[start + child]:
            return
        values[start + root], values[start + child] = values[start + child], values[start + root]
        root = child


@inline_kernel
def sort_run(values, start, stop):
    """Sort a run in place, short or long."""
    if stop - start <= _INSERTION_LIMIT:
        sort_few(values, start, stop)
    else:
        sort_many(values, start, stop)


@kernel
def gather_sets(list_start, ids, set_start, sets):
    """Turn each list of ids into a sorted set without its negative ids; `sets` holds as many as `ids`.

    `list_start` counts from its own first entry, so that slices of a larger column work.
    """
    n_lists = list_start.size - 1
    n_out = 0
    base = list_start[0]
    set_start[0] = 0
    for i in range(n_lists):
        begin = n_out
        for at in range(list_start[i] - base, list_start[i + 1] - base):
            if ids[at] >= 0:
                sets[n_out] = ids[at]
                n_out += 1
        sort_run(sets, begin, n_out)
        kept = begin
        for at in range(begin, n_out):
            if at == begin or sets[at] != sets[at - 1]:
                # `kept` never passes `at`, and sets[at - 1] is compared before it could be overwritten by a later value.
                sets[kept] = sets[at]
                kept += 1
        n_out = kept
        set_start[i + 1] = n_out
    return n_out


@inline_kernel
def mark_keywords(stamp, mark, keyword, start, stop):
    """Stamp the keywords of the current message, so that membership is one look-up."""
    for at in range(start, stop):
        stamp[keyword[at]] = mark


@inline_kernel
def has_all(stamp, mark, keyword, start, stop):
    """Whether every keyword of the run was stamped with the current mark."""
    for at in range(start, stop):
        if stamp[keyword[at]] != mark:
            return False
    return True


@inline_kernel
def has_any(stamp, mark, keyword, start, stop):
    """Whether some keyword of the run was stamped with the current mark."""
    for at in range(start, stop):
        if stamp[keyword[at]] == mark:
            return True
    return False


@kernel
def count_keywords(keyword, counts):
    """Add one to `counts` for each occurrence."""
    for at in range(keyword.size):
        counts[keyword[at]] += np.int64(1)
