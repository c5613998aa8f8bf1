"""Runs as pairs."""

from __future__ import annotations

from nearcast.kernels.compile import kernel


@kernel
def fill_pairs(of, member, begin, end, first, second):
    """Write each member of run i beside `of[i]`."""
    n_out = 0
    for i in range(of.size):
        for at in range(begin[i], end[i]):
            first[n_out] = of[i]
            second[n_out] = member[at]
            n_out += 1
