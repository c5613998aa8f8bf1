"""A number that tells two sets of changes of lists apart, whatever their order; those of parts add up to that of the whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# Odd constants that spread numbers over 64 bits.
_MIX = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))
_MOST = 1 << 64


def sum_of_changes(changes: pa.Table) -> int:
    """Equal for equal sets of (tick, subscription, message, change, score), scores to the last bit."""
    tick, subscription, message, change = (_bits(changes[name]) for name in ("tick", "subscription_id", "message_id", "change"))
    score = np.asarray(changes["score"], np.float64).view(np.uint64)
    one = np.uint64(1)
    mixed = (subscription + one) * _MIX[0] ^ (message + one) * _MIX[1] ^ (score + change) * _MIX[2] ^ (tick + one) * _MIX[3]
    return int(((mixed ^ (mixed >> np.uint64(29))) * _MIX[0]).sum())


def added(sums: list[int]) -> int:
    """The sum of the whole from those of its parts."""
    return sum(sums) % _MOST


def _bits(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    return np.asarray(column).astype(np.int64).view(np.uint64)
