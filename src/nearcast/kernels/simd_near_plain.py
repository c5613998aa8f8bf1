"""The operations of `simd_near` in plain Python: what they compute, and what is run where nothing faster is there.

Entries of subscriptions are packed in columns of int32: x below y; what is lacking to the floor, below the share of the own
word, below the spatial weight; on the sphere z. Where there are words behind the own one, two columns more have two of them
each: share and slot of the one, below share and slot of the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Figures of a message and one of its words: its place in steps, what its own word is worth, what a step away costs, squared,
# what the whole way costs, squared, and from TABLE on what its other words are worth, by slot.
X, Y, Z, OWN, LOSS, MOST, TABLE = 0, 1, 2, 3, 4, 5, 16
N_SLOTS = 64
N_FIGURES = TABLE + N_SLOTS
# Coordinates have sixteen bits, the slot of a word the six above its share, the others so many. All but what is lacking, from
# -1 to 1, count in parts of their largest.
FULL = 65535
LACKING_BITS, OWN_BITS, WEIGHT_BITS, SHARE_BITS = 12, 11, 9, 10
MOST_LACKING, MOST_OWN = (1 << LACKING_BITS) - 1, (1 << OWN_BITS) - 1
MOST_WEIGHT, MOST_SHARE = (1 << WEIGHT_BITS) - 1, (1 << SHARE_BITS) - 1
LACKING_STEPS = MOST_LACKING // 2
LACKING_STEP = float(np.float32(1.0 / LACKING_STEPS))
PLACE, REST, DEPTH = 0, 1, 2


def near_in_plane(entry: Any, at: int, stride: int, n: int, figures: Any, first: int) -> int:
    """Which of `n` entries, of at most sixteen, a message may reach by their own word alone."""
    lanes = 0
    for i in range(n):
        text, squared = own_text(entry, at + i + stride, figures, first), flat_square(entry, at + i, figures, first)
        if is_reached(entry, at + i + stride, figures, first, text, squared):
            lanes |= 1 << i
    return lanes


def near_in_plane_of_more(entry: Any, at: int, stride: int, n: int, figures: Any, first: int) -> int:
    """As `near_in_plane`, with up to four other words."""
    lanes = 0
    for i in range(n):
        text, squared = own_text(entry, at + i + stride, figures, first), flat_square(entry, at + i, figures, first)
        text = with_others(entry, at + i + 2 * stride, stride, figures, first, text)
        if is_reached(entry, at + i + stride, figures, first, text, squared):
            lanes |= 1 << i
    return lanes


def near_on_sphere(entry: Any, at: int, stride: int, n: int, figures: Any, first: int) -> int:
    """As `near_in_plane`, with a third coordinate."""
    lanes = 0
    for i in range(n):
        text, squared = own_text(entry, at + i + stride, figures, first), deep_square(entry, at + i, stride, figures, first)
        if is_reached(entry, at + i + stride, figures, first, text, squared):
            lanes |= 1 << i
    return lanes


def near_on_sphere_of_more(entry: Any, at: int, stride: int, n: int, figures: Any, first: int) -> int:
    """As `near_on_sphere`, with up to four other words."""
    lanes = 0
    for i in range(n):
        text, squared = own_text(entry, at + i + stride, figures, first), deep_square(entry, at + i, stride, figures, first)
        text = with_others(entry, at + i + 3 * stride, stride, figures, first, text)
        if is_reached(entry, at + i + stride, figures, first, text, squared):
            lanes |= 1 << i
    return lanes


def own_text(entry: Any, at: int, figures: Any, first: int) -> Any:
    return np.float32(np.float32((int(entry[at]) >> LACKING_BITS) & MOST_OWN) * figures[first + OWN])


def with_others(entry: Any, at: int, stride: int, figures: Any, first: int, text: Any) -> Any:
    """The text with what the other words add."""
    for which in range(4):
        own = int(entry[at + which // 2 * stride]) >> (16 * (which % 2))
        worth = figures[first + TABLE + ((own >> SHARE_BITS) & (N_SLOTS - 1))]
        text = np.float32(text + np.float32(np.float32(own & MOST_SHARE) * worth))
    return text


def flat_square(entry: Any, at: int, figures: Any, first: int) -> Any:
    """The squared distance, in steps."""
    place = int(entry[at])
    dx = np.float32(np.float32(place & 0xFFFF) - figures[first + X])
    dy = np.float32(np.float32((place >> 16) & 0xFFFF) - figures[first + Y])
    return np.float32(np.float32(dx * dx) + np.float32(dy * dy))


def deep_square(entry: Any, at: int, stride: int, figures: Any, first: int) -> Any:
    dz = np.float32(np.float32(int(entry[at + DEPTH * stride]) & 0xFFFF) - figures[first + Z])
    return np.float32(flat_square(entry, at, figures, first) + np.float32(dz * dz))


def is_reached(entry: Any, at: int, figures: Any, first: int, text: Any, squared: Any) -> bool:
    rest = int(entry[at])
    loss = min(np.float32(squared * figures[first + LOSS]), figures[first + MOST])
    lacking = np.float32(np.float32(np.float32(rest & MOST_LACKING) * np.float32(LACKING_STEP)) - np.float32(1.0))
    left = np.float32(text - lacking)
    weight = np.float32((rest >> (LACKING_BITS + OWN_BITS)) & MOST_WEIGHT)
    return bool(left >= 0.0 and np.float32(left * left) >= np.float32(np.float32(weight * weight) * loss))
