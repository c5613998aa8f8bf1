"""Parts of an index still to be searched, as a heap with the most promising in front."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel


@inline_kernel
def push_bound(bound, part, n, new_bound, new_part):
    """Add a part; there is room for it. Returns how many there are."""
    at = n
    while at > 0:
        parent = (at - 1) // 2
        if bound[parent] >= new_bound:
            break
        bound[at], part[at] = bound[parent], part[parent]
        at = parent
    bound[at], part[at] = new_bound, new_part
    return n + 1


@inline_kernel
def pop_bound(bound, part, n):
    """Take the front away; returns how many are left."""
    n -= 1
    moved_bound, moved_part = bound[n], part[n]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and bound[child + 1] > bound[child]:
            child += 1
        if moved_bound >= bound[child]:
            break
        bound[at], part[at] = bound[child], part[child]
        at = child
    bound[at], part[at] = moved_bound, moved_part
    return n
