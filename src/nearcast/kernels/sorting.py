"""Sort runs of numbers, and group items by list (counting sort)."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import LANES, count_below

_INSERTION_LIMIT = 24
# With more numbers than this, comparing each with every other takes longer than sorting them.
_MOST_COUNTED = 128
_FREE = -1


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


@inline_kernel
def sort_into(values, begin, n, target, to):
    """Write `n` integers from 0 on in ascending order to `target`, from position `to` on.

    Few numbers are ranked by counting how many are smaller, which needs no branch that the processor could mispredict.
    """
    if n > _MOST_COUNTED:
        for i in range(n):
            target[to + i] = values[begin + i]
        sort_many(target, to, to + n)
        return
    for i in range(to, to + n):
        target[i] = _FREE
    for i in range(begin, begin + n):
        rank = 0
        for at in range(0, n, LANES):
            rank += count_below(values, begin + at, min(LANES, n - at), values[i])
        target[to + rank] = values[i]
    # Equal numbers have the same rank and fill the positions behind it.
    for i in range(to + 1, to + n):
        target[i] = target[i - 1] if target[i] == _FREE else target[i]


@kernel
def offsets_from_counts(counts, offsets):
    """Fill `offsets`, one longer than `counts`, with the running sums from zero; returns the total."""
    total = 0
    offsets[0] = 0
    for i in range(counts.size):
        total += counts[i]
        offsets[i + 1] = total
    return total


@kernel
def fill_lists(list_ids, items, cursor, out):
    """Write each item to its list; `cursor` holds where each list begins, and afterwards where it ends.

    Items keep their order inside a list; items with a negative list id are left out.
    """
    for i in range(list_ids.size):
        if list_ids[i] >= 0:
            out[cursor[list_ids[i]]] = items[i]
            cursor[list_ids[i]] += 1
