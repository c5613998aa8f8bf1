"""The operations of `simd_near` in plain Python: their definition, and the fallback where nothing faster is available.

Entries are packed in columns of int32. LOCATION: x in the lower half, y in the upper. REST: from the lowest bits up, the gap
to the threshold, the share of the rarest word, the spatial weight. On the sphere DEPTH: z. Then two columns with two further
words each: share and slot of the first, above them share and slot of the second; 0 for none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Figures of a message: its location in steps, the squared loss of a step, the squared loss at most, and from OWN on the weight
# of each of its words as the rarest one in common.
X, Y, Z, LOSS, MOST, OWN = range(6)
# Relative weights of the other words, by slot: N_SLOTS integers for each word of the message, in parts of the largest.
N_SLOTS, MAX_RELATIVE_WEIGHT = 64, (1 << 15) - 1
# Coordinates have sixteen bits; the slot of a word has the six above its share. The gap ranges from -1 to 1; the others count
# in parts of their largest.
FULL = 65535
GAP_BITS, OWN_BITS, WEIGHT_BITS, SHARE_BITS = 12, 11, 9, 10
MAX_GAP, MOST_OWN = (1 << GAP_BITS) - 1, (1 << OWN_BITS) - 1
MOST_WEIGHT, MOST_SHARE = (1 << WEIGHT_BITS) - 1, (1 << SHARE_BITS) - 1
GAP_STEPS = MAX_GAP // 2
GAP_STEP = float(np.float32(1.0 / GAP_STEPS))
SHARED_STEP = float(np.float32(1.0 / (MOST_SHARE * MAX_RELATIVE_WEIGHT)))
LOCATION, REST, DEPTH = 0, 1, 2


def near_in_plane(entry: Any, at: int, n: int, figures: Any, relative_weight: Any, word: int) -> int:
    """The lanes of `n` <= 16 entries that a message may reach whose rarest word in common is `word`."""
    lanes = 0
    for i in range(n):
        text = text_of(entry, at + i + n, at + i + 2 * n, n, figures, relative_weight, word)
        if is_reached(entry, at + i + n, figures, text, flat_square(entry, at + i, figures)):
            lanes |= 1 << i
    return lanes


def near_on_sphere(entry: Any, at: int, n: int, figures: Any, relative_weight: Any, word: int) -> int:
    """As `near_in_plane`, with a third coordinate."""
    lanes = 0
    for i in range(n):
        text = text_of(entry, at + i + n, at + i + 3 * n, n, figures, relative_weight, word)
        if is_reached(entry, at + i + n, figures, text, deep_square(entry, at + i, n, figures)):
            lanes |= 1 << i
    return lanes


def text_of(entry: Any, rest: int, others: int, stride: int, figures: Any, relative_weight: Any, word: int) -> Any:
    """What the rarest word in common adds, and up to four others."""
    own = np.float32(np.float32((int(entry[rest]) >> GAP_BITS) & MOST_OWN) * figures[OWN + word])
    shared = 0
    for which in range(4):
        other = int(entry[others + which // 2 * stride]) >> (16 * (which % 2))
        shared += (other & MOST_SHARE) * int(relative_weight[word * N_SLOTS + ((other >> SHARE_BITS) & (N_SLOTS - 1))])
    return np.float32(own + np.float32(np.float32(shared) * np.float32(SHARED_STEP)))


def flat_square(entry: Any, at: int, figures: Any) -> Any:
    """The squared distance, in steps."""
    position = int(entry[at])
    dx = np.float32(np.float32(position & 0xFFFF) - figures[X])
    dy = np.float32(np.float32((position >> 16) & 0xFFFF) - figures[Y])
    return np.float32(np.float32(dx * dx) + np.float32(dy * dy))


def deep_square(entry: Any, at: int, stride: int, figures: Any) -> Any:
    dz = np.float32(np.float32(int(entry[at + DEPTH * stride]) & 0xFFFF) - figures[Z])
    return np.float32(flat_square(entry, at, figures) + np.float32(dz * dz))


def is_reached(entry: Any, at: int, figures: Any, text: Any, squared: Any) -> bool:
    rest = int(entry[at])
    loss = min(np.float32(squared * figures[LOSS]), figures[MOST])
    score_gap = np.float32(np.float32(np.float32(rest & MAX_GAP) * np.float32(GAP_STEP)) - np.float32(1.0))
    left = np.float32(text - score_gap)
    weight = np.float32((rest >> (GAP_BITS + OWN_BITS)) & MOST_WEIGHT)
    return bool(left >= 0.0 and np.float32(left * left) >= np.float32(np.float32(weight * weight) * loss))
