"""What `simd_alive` does, one message at a time.

Of the sixteen slots of messages from `at` on the first `n` count; `alive` has a bit for each slot, 32 to a word.
"""

from __future__ import annotations

from typing import Any


def alive_lanes(slots: Any, at: int, n: int, alive: Any) -> int:
    """Which of these messages live, as bits."""
    lanes = 0
    for i in range(n):
        slot = int(slots[at + i])
        lanes |= ((int(alive[slot >> 5]) >> (slot & 31)) & 1) << i
    return lanes


def fitting_lanes(slots: Any, at: int, n: int, alive: Any, masks: Any, mask: int) -> int:
    """Which of them live and have every bit of a mask in their own, as bits."""
    lanes = alive_lanes(slots, at, n, alive)
    for i in range(n):
        if mask & ~int(masks[slots[at + i]]) != 0:
            lanes &= ~(1 << i)
    return lanes
