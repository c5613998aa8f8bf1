"""The operations of `simd_near` in plain Python: what they compute, and what is run where nothing faster is there."""

from __future__ import annotations

from typing import Any

import numpy as np

# Figures of a message and one of its words: its place in steps, what its own word is worth, what a step away costs, squared,
# what the whole way costs, squared, and from TABLE on what its other words are worth, by slot.
X, Y, Z, OWN, LOSS, MOST, TABLE = 0, 1, 2, 3, 4, 5, 16
N_SLOTS, SLOT_BITS = 64, 6
N_FIGURES = TABLE + N_SLOTS
# Shares and weights count in parts of this; what is lacking to the floor, from -1 to 1, in FLOOR_STEP.
FULL = 65535
FLOOR_STEP = float(np.float32(1.0 / 32767.0))


def near_lanes(entry: Any, at: int, stride: int, n: int, figures: Any, first: int) -> int:
    """Which of `n` entries, of at most sixteen, a message may reach by their own word alone.

    Columns: x below y; z below the spatial weight; what is lacking to the floor below the share of the own word.
    """
    lanes = 0
    for i in range(n):
        if is_reached(entry, at + i, stride, figures, first, own_text(entry, at + i + 2 * stride, figures, first)):
            lanes |= 1 << i
    return lanes


def near_lanes_of_more(entry: Any, at: int, stride: int, n: int, figures: Any, first: int) -> int:
    """As `near_lanes`, with three more columns: the shares of four other words, and their slots."""
    lanes = 0
    for i in range(n):
        text = own_text(entry, at + i + 2 * stride, figures, first)
        slots = int(entry[at + i + 5 * stride])
        for which in range(4):
            pair = int(entry[at + i + (3 + which // 2) * stride])
            share = np.float32((pair >> (16 * (which % 2))) & 0xFFFF)
            text = np.float32(
                text + np.float32(share * figures[first + TABLE + ((slots >> (SLOT_BITS * which)) & (N_SLOTS - 1))])
            )
        if is_reached(entry, at + i, stride, figures, first, text):
            lanes |= 1 << i
    return lanes


def own_text(entry: Any, at: int, figures: Any, first: int) -> Any:
    return np.float32(np.float32((int(entry[at]) >> 16) & 0xFFFF) * figures[first + OWN])


def is_reached(entry: Any, at: int, stride: int, figures: Any, first: int, text: Any) -> bool:
    place, rest, words = int(entry[at]), int(entry[at + stride]), int(entry[at + 2 * stride])
    dx = np.float32(np.float32(place & 0xFFFF) - figures[first + X])
    dy = np.float32(np.float32((place >> 16) & 0xFFFF) - figures[first + Y])
    dz = np.float32(np.float32(rest & 0xFFFF) - figures[first + Z])
    squared = np.float32(np.float32(np.float32(dx * dx) + np.float32(dy * dy)) + np.float32(dz * dz))
    loss = min(np.float32(squared * figures[first + LOSS]), figures[first + MOST])
    lacking = np.float32(np.float32(np.float32(words & 0xFFFF) * np.float32(FLOOR_STEP)) - np.float32(1.0))
    left = np.float32(text - lacking)
    weight = np.float32((rest >> 16) & 0xFFFF)
    return bool(left >= 0.0 and np.float32(left * left) >= np.float32(np.float32(weight * weight) * loss))
