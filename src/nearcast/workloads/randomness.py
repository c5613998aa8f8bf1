"""Random draws that depend on nothing but (seed, purpose, number, slot): any part of a workload can be made again alone.

The arithmetic stays within int64 without ever overflowing, so the same source gives the same draws compiled, interpreted and
over whole NumPy arrays.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.compile import kernel

MASK = 0xFFFFFFFF
# 2**32 / golden ratio: consecutive slots land far apart before they are mixed.
SLOT_STEP = 0x61C88647
# A 32-bit mixer with very low bias (C. Wellons, hash-prospector). The second factor is written minus 2**32: the product with a
# 32-bit number then fits in int64 and is the same modulo 2**32.
FIRST_FACTOR = 0x21F0AAAD
SECOND_FACTOR = 0xD35A2D97 - 0x100000000
UNIT = 1.0 / 4294967296.0


class StreamKey(NamedTuple):
    """The two 32-bit words that tell one stream of draws from another."""

    low: int
    high: int


def stream_key(seed: int, purpose: str) -> StreamKey:
    """The key of the stream that serves `purpose` under `seed`."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest()
    return StreamKey(int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little"))


def mix(word: Any) -> Any:
    """Scramble 32-bit words (a bijection); takes a number or an int64 array."""
    word = word ^ (word >> 16)
    word = (word * FIRST_FACTOR) & MASK
    word = word ^ (word >> 15)
    word = (word * SECOND_FACTOR) & MASK
    return word ^ (word >> 15)


mix_one = kernel(mix)


@kernel
def lane_of(key: Any, number: Any) -> Any:
    """The first half of a number's own stream; see `draw`."""
    return mix_one((number ^ key[0]) & MASK)


@kernel
def twist_of(key: Any, number: Any) -> Any:
    """The second half: without it two numbers whose lanes lie a few slots apart would share draws."""
    return mix_one(((number >> 31) ^ number ^ key[1]) & MASK)


@kernel
def draw(lane: Any, twist: Any, slot: Any) -> Any:
    """32 random bits for `slot` of the number that `lane` and `twist` belong to."""
    return mix_one(mix_one((lane + slot * SLOT_STEP) & MASK) ^ twist)


@kernel
def normal_pair(first: Any, second: Any) -> Any:
    """Two independent standard normal values from two draws (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log((first + 1) * UNIT))
    angle = 2.0 * math.pi * second * UNIT
    return radius * math.cos(angle), radius * math.sin(angle)


def draws(key: StreamKey, numbers: NDArray[np.int64], slot: int = 0) -> NDArray[np.int64]:
    """`draw` over an array of numbers: 32 random bits each."""
    lane = mix((numbers ^ key.low) & MASK)
    twist = mix(((numbers >> 31) ^ numbers ^ key.high) & MASK)
    bits: NDArray[np.int64] = mix(mix((lane + slot * SLOT_STEP) & MASK) ^ twist)
    return bits


def uniforms(key: StreamKey, numbers: NDArray[np.int64], slot: int = 0) -> NDArray[np.float64]:
    """One uniform value in [0, 1) for each number."""
    return np.multiply(draws(key, numbers, slot), UNIT, dtype=np.float64)


def integers(key: StreamKey, numbers: NDArray[np.int64], low: int, high: int, slot: int = 0) -> NDArray[np.int64]:
    """One whole number in [low, high] for each number; the span stays below 2**31."""
    values: NDArray[np.int64] = low + ((draws(key, numbers, slot) * (high - low + 1)) >> 32)
    return values


def normal_pairs(first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`normal_pair` over arrays; the last bit may differ from it."""
    radius = np.sqrt(-2.0 * np.log((first + 1) * UNIT))
    angle = 2.0 * np.pi * second * UNIT
    return radius * np.cos(angle), radius * np.sin(angle)
