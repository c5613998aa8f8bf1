"""What `simd_keys` does, one message at a time.

The messages of a list are two columns: 16-bit keys from `key_at` on, and 32-bit numbers from `numbers32_start` on. At most
GROUP of them are read at once; `n` says how many. Lanes are bits, one per message. Bits of keys from `n` on have no meaning,
and the last bit is the sign in compiled code. A message lives if its number is not before `oldest`; numbers wrap around.
Borders are keys from 0 to MOST_KEY.
"""

from __future__ import annotations

from typing import Any

GROUP = 64
# This many keys are read together, even if there are fewer.
KEY_LANES = 32
# The key of a score of 1, and of slightly larger ones that result from rounding.
MOST_KEY = (1 << 16) - 1
NOTHING_ABOVE = (1 << 31) - 1
NOTHING_BELOW = -1
_HALF, _WHOLE = 1 << 31, 1 << 32


def ahead_of(low: Any, oldest: Any) -> int:
    """How far a number is after another one; negative if before."""
    return (int(low) - int(oldest) + _HALF) % _WHOLE - _HALF


def living(numbers32: Any, numbers32_start: int, n: int, oldest: int) -> int:
    """The messages that live."""
    lanes = 0
    for i in range(n):
        if ahead_of(numbers32[numbers32_start + i], oldest) >= 0:
            lanes |= 1 << i
    return lanes


def high_lanes(keys: Any, key_at: int, n: int, border: int) -> int:
    """The keys that are at least `border`."""
    lanes = 0
    for i in range(n):
        if keys[key_at + i] >= border:
            lanes |= 1 << i
    return lanes


def key_lanes(keys: Any, key_at: int, n: int, key: int) -> int:
    """The keys that are equal to `key`."""
    lanes = 0
    for i in range(n):
        if keys[key_at + i] == key:
            lanes |= 1 << i
    return lanes


def smallest(keys: Any, key_at: int, n: int, lanes: int) -> int:
    """The least key of these lanes, or NOTHING_ABOVE."""
    least = NOTHING_ABOVE
    for i in range(n):
        if (lanes >> i) & 1:
            least = min(least, int(keys[key_at + i]))
    return least


def largest(keys: Any, key_at: int, n: int, lanes: int) -> int:
    """The largest key of these lanes, or NOTHING_BELOW."""
    most = NOTHING_BELOW
    for i in range(n):
        if (lanes >> i) & 1:
            most = max(most, int(keys[key_at + i]))
    return most


def least_ahead(numbers32: Any, numbers32_start: int, n: int, oldest: int, lanes: int) -> int:
    """How far the oldest message of these lanes is after `oldest`, or NOTHING_ABOVE."""
    least = NOTHING_ABOVE
    for i in range(n):
        if (lanes >> i) & 1:
            least = min(least, ahead_of(numbers32[numbers32_start + i], oldest))
    return least
