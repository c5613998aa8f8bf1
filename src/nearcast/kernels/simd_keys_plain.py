"""What `simd_keys` does, one message at a time.

Messages of a list are two columns, keys of 16 bits and numbers of 32: `key_at` and `low_at` are where those of sixteen begin,
of which the first `n` count; all sixteen keys may be read. One lives if its number is not before `oldest`; numbers go around.
"""

from __future__ import annotations

from typing import Any

NOTHING_ABOVE = (1 << 31) - 1
NOTHING_BELOW = -1
_HALF, _WHOLE = 1 << 31, 1 << 32


def ahead_of(low: Any, oldest: Any) -> int:
    """How far one number is behind another one, below 0 if it is before it."""
    return (int(low) - int(oldest) + _HALF) % _WHOLE - _HALF


def least_above(keys: Any, key_at: int, lows: Any, low_at: int, n: int, oldest: int, border: int) -> int:
    """The least key above a border of those that live, or NOTHING_ABOVE."""
    least = NOTHING_ABOVE
    for i in range(n):
        if keys[key_at + i] > border and ahead_of(lows[low_at + i], oldest) >= 0:
            least = min(least, int(keys[key_at + i]))
    return least


def most_below(keys: Any, key_at: int, lows: Any, low_at: int, n: int, oldest: int, border: int) -> int:
    """The largest key below a border of those that live, or NOTHING_BELOW."""
    most = NOTHING_BELOW
    for i in range(n):
        if keys[key_at + i] < border and ahead_of(lows[low_at + i], oldest) >= 0:
            most = max(most, int(keys[key_at + i]))
    return most


def living_lanes(keys: Any, key_at: int, lows: Any, low_at: int, n: int, oldest: int, key: int) -> int:
    """Which of those that live have this key, as bits."""
    lanes = 0
    for i in range(n):
        if keys[key_at + i] == key and ahead_of(lows[low_at + i], oldest) >= 0:
            lanes |= 1 << i
    return lanes


def least_ahead(keys: Any, key_at: int, lows: Any, low_at: int, n: int, oldest: int, border: int) -> int:
    """How far the oldest that lives and has a key of at least `border` is behind `oldest`, or NOTHING_ABOVE."""
    least = NOTHING_ABOVE
    for i in range(n):
        ahead = ahead_of(lows[low_at + i], oldest)
        if keys[key_at + i] >= border and ahead >= 0:
            least = min(least, ahead)
    return least


def high_lanes(keys: Any, key_at: int, lows: Any, low_at: int, n: int, oldest: int, border: int) -> int:
    """Which of those that live have a key of at least `border`, as bits."""
    lanes = 0
    for i in range(n):
        if keys[key_at + i] >= border and ahead_of(lows[low_at + i], oldest) >= 0:
            lanes |= 1 << i
    return lanes
