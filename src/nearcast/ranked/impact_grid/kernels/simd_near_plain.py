"""The operations of `simd_near` in plain Python: what they compute, and what is run where nothing faster is there.

Entries of subscriptions are packed in columns of int32: x below y; what is lacking to the floor, below the share of the own
word, below the spatial weight; on the sphere z. Then two columns have two of the words behind the own one each: share and slot
of the one, below share and slot of the other; 0 where there are none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Figures of a message: its place in steps, what a step away costs, squared, what the whole way costs, squared, and from OWN on
# what each of its words is worth as the own one.
X, Y, Z, LOSS, MOST, OWN = range(6)
# What its other words are worth, by slot, stands apart for each word: so many whole numbers, in parts of the largest.
N_SLOTS, MOST_WORTH = 64, (1 << 15) - 1
# Coordinates have sixteen bits, the slot of a word the six above its share, the others so many. All but what is lacking, from
# -1 to 1, count in parts of their largest.
FULL = 65535
LACKING_BITS, OWN_BITS, WEIGHT_BITS, SHARE_BITS = 12, 11, 9, 10
MOST_LACKING, MOST_OWN = (1 << LACKING_BITS) - 1, (1 << OWN_BITS) - 1
MOST_WEIGHT, MOST_SHARE = (1 << WEIGHT_BITS) - 1, (1 << SHARE_BITS) - 1
LACKING_STEPS = MOST_LACKING // 2
LACKING_STEP = float(np.float32(1.0 / LACKING_STEPS))
SHARED_STEP = float(np.float32(1.0 / (MOST_SHARE * MOST_WORTH)))
PLACE, REST, DEPTH = 0, 1, 2


def near_in_plane(entry: Any, at: int, n: int, figures: Any, worth: Any, word: int) -> int:
    """Which of `n` entries, of at most sixteen, a message may reach whose rarest word in common is this one."""
    lanes = 0
    for i in range(n):
        text = text_of(entry, at + i + n, at + i + 2 * n, n, figures, worth, word)
        if is_reached(entry, at + i + n, figures, text, flat_square(entry, at + i, figures)):
            lanes |= 1 << i
    return lanes


def near_on_sphere(entry: Any, at: int, n: int, figures: Any, worth: Any, word: int) -> int:
    """As `near_in_plane`, with a third coordinate."""
    lanes = 0
    for i in range(n):
        text = text_of(entry, at + i + n, at + i + 3 * n, n, figures, worth, word)
        if is_reached(entry, at + i + n, figures, text, deep_square(entry, at + i, n, figures)):
            lanes |= 1 << i
    return lanes


def text_of(entry: Any, rest: int, others: int, stride: int, figures: Any, worth: Any, word: int) -> Any:
    """What the own word adds, and up to four others."""
    own = np.float32(np.float32((int(entry[rest]) >> LACKING_BITS) & MOST_OWN) * figures[OWN + word])
    shared = 0
    for which in range(4):
        other = int(entry[others + which // 2 * stride]) >> (16 * (which % 2))
        shared += (other & MOST_SHARE) * int(worth[word * N_SLOTS + ((other >> SHARE_BITS) & (N_SLOTS - 1))])
    return np.float32(own + np.float32(np.float32(shared) * np.float32(SHARED_STEP)))


def flat_square(entry: Any, at: int, figures: Any) -> Any:
    """The squared distance, in steps."""
    place = int(entry[at])
    dx = np.float32(np.float32(place & 0xFFFF) - figures[X])
    dy = np.float32(np.float32((place >> 16) & 0xFFFF) - figures[Y])
    return np.float32(np.float32(dx * dx) + np.float32(dy * dy))


def deep_square(entry: Any, at: int, stride: int, figures: Any) -> Any:
    dz = np.float32(np.float32(int(entry[at + DEPTH * stride]) & 0xFFFF) - figures[Z])
    return np.float32(flat_square(entry, at, figures) + np.float32(dz * dz))


def is_reached(entry: Any, at: int, figures: Any, text: Any, squared: Any) -> bool:
    rest = int(entry[at])
    loss = min(np.float32(squared * figures[LOSS]), figures[MOST])
    lacking = np.float32(np.float32(np.float32(rest & MOST_LACKING) * np.float32(LACKING_STEP)) - np.float32(1.0))
    left = np.float32(text - lacking)
    weight = np.float32((rest >> (LACKING_BITS + OWN_BITS)) & MOST_WEIGHT)
    return bool(left >= 0.0 and np.float32(left * left) >= np.float32(np.float32(weight * weight) * loss))
