"""Draw from any finite distribution in constant time: Walker's alias table, in whole numbers.

Thresholds are integers because a float32 compares differently compiled and interpreted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.kernels.compile import kernel

THRESHOLD_ONE = (1 << 31) - 1


class AliasTable(NamedTuple):
    """Entry i is kept when a 31-bit draw is below `threshold[i]`; otherwise `other[i]` is taken."""

    threshold: NDArray[np.int32]  # int32[n]
    other: NDArray[np.int32]  # int32[n]


def alias_table(weight: NDArray[np.float64]) -> AliasTable:
    """The table of a distribution proportional to `weight`."""
    total = float(weight.sum())
    if weight.size == 0 or not total > 0 or bool((weight < 0).any()):
        raise WorkloadError(f"weights must be non-negative with a positive sum; got {weight.size} weights with sum {total}")
    share = weight * (weight.size / total)
    table = AliasTable(np.full(weight.size, THRESHOLD_ONE, np.int32), np.arange(weight.size, dtype=np.int32))
    fill_alias_table(share, table.threshold, table.other, np.empty(weight.size, np.int32))
    return table


@kernel
def fill_alias_table(share: Any, threshold: Any, other: Any, pending: Any) -> None:
    """Pair every entry whose `share` is below 1 with one above; `share` is consumed.

    `pending` holds entries below 1 from the left and entries above 1 from the right.
    """
    n_below = 0
    first_above = share.size
    for entry in range(share.size):
        if share[entry] < 1.0:
            pending[n_below] = entry
            n_below += 1
        else:
            first_above -= 1
            pending[first_above] = entry
    while n_below > 0 and first_above < share.size:
        n_below -= 1
        below = pending[n_below]
        above = pending[first_above]
        threshold[below] = int(share[below] * THRESHOLD_ONE)
        other[below] = above
        share[above] -= 1.0 - share[below]
        if share[above] < 1.0:
            first_above += 1
            pending[n_below] = above
            n_below += 1


@kernel
def choose(table: Any, first: Any, second: Any) -> Any:
    """The entry that two 32-bit draws select."""
    entry = (first * table.threshold.size) >> 32
    return entry if (second >> 1) < table.threshold[entry] else table.other[entry]
