"""How many clauses name each keyword."""

from __future__ import annotations

from nearcast.kernels.compile import kernel


@kernel
def count_clauses(keyword_start, keyword, slots, frequency, step):
    """Add `step` to the frequency of every keyword of the clauses at `slots`."""
    for i in range(slots.size):
        for at in range(keyword_start[slots[i]], keyword_start[slots[i] + 1]):
            frequency[keyword[at]] += step
