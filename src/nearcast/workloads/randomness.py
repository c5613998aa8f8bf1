"""Random draws that depend only on (seed, purpose, number, slot): any part of a workload can be made again alone.

The arithmetic stays within int64 without overflow, so the same source gives the same draws compiled, interpreted and over whole
NumPy arrays. Alias tables (Walker) draw from any finite distribution in constant time; their thresholds are integers, because
a float32 compares differently compiled and interpreted.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.kernels.compile import kernel

MASK = 0xFFFFFFFF
# 2**32 / golden ratio: consecutive slots are far apart before they are mixed.
SLOT_STEP = 0x61C88647
# A 32-bit mixer with very low bias (C. Wellons, hash-prospector). The second factor is written minus 2**32: the product with a
# 32-bit number then fits in int64 and is the same modulo 2**32.
FIRST_FACTOR = 0x21F0AAAD
SECOND_FACTOR = 0xD35A2D97 - 0x100000000
UNIT = 1.0 / 4294967296.0


class StreamKey(NamedTuple):
    """The two 32-bit words that identify a stream of draws."""

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
def low_key(key: Any, number: Any) -> Any:
    """The first 32 bits of the key of a number; see `draw`."""
    return mix_one((number ^ key[0]) & MASK)


@kernel
def high_key(key: Any, number: Any) -> Any:
    """The second 32 bits. Without them two numbers whose low keys lie a few slots apart would share draws."""
    return mix_one(((number >> 31) ^ number ^ key[1]) & MASK)


@kernel
def draw(low: Any, high: Any, slot: Any) -> Any:
    """32 random bits for `slot` of the number with the keys `low` and `high`."""
    return mix_one(mix_one((low + slot * SLOT_STEP) & MASK) ^ high)


@kernel
def normal_pair(first: Any, second: Any) -> Any:
    """Two independent standard normal values from two draws (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log((first + 1) * UNIT))
    angle = 2.0 * math.pi * second * UNIT
    return radius * math.cos(angle), radius * math.sin(angle)


def draws(key: StreamKey, numbers: NDArray[np.int64], slot: int = 0) -> NDArray[np.int64]:
    """`draw` over an array of numbers: 32 random bits each."""
    low = mix((numbers ^ key.low) & MASK)
    high = mix(((numbers >> 31) ^ numbers ^ key.high) & MASK)
    bits: NDArray[np.int64] = mix(mix((low + slot * SLOT_STEP) & MASK) ^ high)
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


THRESHOLD_ONE = (1 << 31) - 1


class AliasTable(NamedTuple):
    """Entry i is selected if a 31-bit draw is below `threshold[i]`, else `other[i]`."""

    threshold: NDArray[np.int32]  # int32[n]
    other: NDArray[np.int32]  # int32[n]


def alias_table(weight: NDArray[np.float64]) -> AliasTable:
    """The table of a distribution proportional to `weight`."""
    total = float(weight.sum())
    if weight.size == 0 or not total > 0 or bool((weight < 0).any()):
        raise WorkloadError(f"weights must be non-negative with a positive sum; got {weight.size} weights with sum {total}")
    share = weight * (weight.size / total)
    table = AliasTable(np.full(weight.size, THRESHOLD_ONE, np.int32), np.arange(weight.size, dtype=np.int32))
    fill_alias_table(share, table.threshold, table.other, np.empty(weight.size, np.int32))
    return table


@kernel
def fill_alias_table(share: Any, threshold: Any, other: Any, pending: Any) -> None:
    """Pair every entry whose `share` is below 1 with one above. Overwrites `share`.

    `pending` is scratch: entries below 1 from the left, entries above 1 from the right.
    """
    n_below = 0
    first_above = share.size
    for entry in range(share.size):
        if share[entry] < 1.0:
            pending[n_below] = entry
            n_below += 1
        else:
            first_above -= 1
            pending[first_above] = entry
    while n_below > 0 and first_above < share.size:
        n_below -= 1
        below = pending[n_below]
        above = pending[first_above]
        threshold[below] = int(share[below] * THRESHOLD_ONE)
        other[below] = above
        share[above] -= 1.0 - share[below]
        if share[above] < 1.0:
            first_above += 1
            pending[n_below] = above
            n_below += 1


@kernel
def choose_entry(table: Any, first: Any, second: Any) -> Any:
    """The entry that two 32-bit draws select."""
    entry = (first * table.threshold.size) >> 32
    return entry if (second >> 1) < table.threshold[entry] else table.other[entry]
