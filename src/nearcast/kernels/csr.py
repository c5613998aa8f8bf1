"""Lists of lists as two arrays: offsets from counts, and filling by owner."""

from __future__ import annotations

from nearcast.kernels.compile import kernel


@kernel
def offsets_from_counts(counts, offsets):
    """Fill `offsets` (one longer than `counts`) with running sums, from zero."""
    total = 0
    offsets[0] = 0
    for i in range(counts.size):
        total += counts[i]
        offsets[i + 1] = total
    return total


@kernel
def fill_by_owner(owners, items, cursor, out):
    """Put each item into the list of its owner; `cursor` starts as the lists' offsets and ends at their ends.

    Items keep their order inside a list; a negative owner is left out.
    """
    for i in range(owners.size):
        if owners[i] >= 0:
            out[cursor[owners[i]]] = items[i]
            cursor[owners[i]] += 1
