"""What `simd_keys` does, one message at a time.

Messages of a list are two columns, keys of 16 bits and numbers of 32: `key_at` and `low_at` are where those of at most
GROUP messages begin, of which there are `n`. Lanes are bits, one for each message. Whether those of keys from `n` on are set
means nothing, and the last bit is the sign where all is compiled. One lives if its number is not before `oldest`; numbers go
around. Borders are keys: from 0 to MOST_KEY.
"""

from __future__ import annotations

from typing import Any

GROUP = 64
# So many keys are read together, whether or not there are as many.
KEY_LANES = 32
# That of a score of 1, and of a little more, which is what rounding makes of it.
MOST_KEY = (1 << 16) - 1
NOTHING_ABOVE = (1 << 31) - 1
NOTHING_BELOW = -1
_HALF, _WHOLE = 1 << 31, 1 << 32


def ahead_of(low: Any, oldest: Any) -> int:
    """How far one number is behind another one, below 0 if it is before it."""
    return (int(low) - int(oldest) + _HALF) % _WHOLE - _HALF


def living(lows: Any, low_at: int, n: int, oldest: int) -> int:
    """Which messages live."""
    lanes = 0
    for i in range(n):
        if ahead_of(lows[low_at + i], oldest) >= 0:
            lanes |= 1 << i
    return lanes


def high_lanes(keys: Any, key_at: int, n: int, border: int) -> int:
    """Which have a key of at least `border`."""
    lanes = 0
    for i in range(n):
        if keys[key_at + i] >= border:
            lanes |= 1 << i
    return lanes


def key_lanes(keys: Any, key_at: int, n: int, key: int) -> int:
    """Which have this key."""
    lanes = 0
    for i in range(n):
        if keys[key_at + i] == key:
            lanes |= 1 << i
    return lanes


def smallest(keys: Any, key_at: int, n: int, lanes: int) -> int:
    """The least key of some messages, or NOTHING_ABOVE."""
    least = NOTHING_ABOVE
    for i in range(n):
        if (lanes >> i) & 1:
            least = min(least, int(keys[key_at + i]))
    return least


def largest(keys: Any, key_at: int, n: int, lanes: int) -> int:
    """The largest key of some messages, or NOTHING_BELOW."""
    most = NOTHING_BELOW
    for i in range(n):
        if (lanes >> i) & 1:
            most = max(most, int(keys[key_at + i]))
    return most


def least_ahead(lows: Any, low_at: int, n: int, oldest: int, lanes: int) -> int:
    """How far the oldest of some messages that live is behind `oldest`, or NOTHING_ABOVE."""
    least = NOTHING_ABOVE
    for i in range(n):
        if (lanes >> i) & 1:
            least = min(least, ahead_of(lows[low_at + i], oldest))
    return least
