"""A hash table from words (UTF-8 bytes) to dense ids, as flat arrays: find and add whole Arrow columns of words.

Words of at most fifteen bytes are their own key, so that nearly every look-up touches one cache line and no stored word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import add, load8, multiply, prefetch, shift_right

ABSENT = -1
ABSENT_NOT_ASCII = -2  # not found as written; its normal form may be
EMPTY_SLOT = -1
SLOT_WIDTH = 4  # low half of the key, high half, word id, nothing: half a cache line, never straddled

_BLOCK = 64
_LONG = -1  # high half of the key of a word longer than fifteen bytes; the low half is a hash
_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, as signed
_MIX = 0x2545F4914F6CDD1D
_HIGH_BITS = -9187201950435737472  # 0x80 in every byte
_LOW_BITS = 0x7F7F7F7F7F7F7F7F
_PAST_Z = 0x2525252525252525  # 0x7F - 'Z' in every byte
_FROM_A = 0x3F3F3F3F3F3F3F3F  # 0x80 - 'A' in every byte


class WordTableArrays(NamedTuple):
    """Word `w` is `word_bytes[word_start[w]:word_start[w + 1]]`; slots are probed linearly.

    The number of slots is a power of two, at least 4/3 of the number of words.
    """

    slot: np.ndarray  # int64[n_slots * SLOT_WIDTH]
    word_start: np.ndarray  # int64[capacity + 1]
    word_bytes: np.ndarray  # uint8[bytes capacity]


class WordColumn(NamedTuple):
    """The buffers of an Arrow string column; word `i` is `data[start[i]:start[i + 1]]`."""

    start: np.ndarray  # int64[n + 1]
    data: np.ndarray  # uint8[]


@inline_kernel
def read_short(data, start, stop):
    """Read at most seven bytes as one integer, without reading outside `data`."""
    length = np.int64(stop - start)
    if start + 8 <= data.size:
        return load8(data, start) & ((np.int64(1) << np.int64(8 * length)) - np.int64(1))
    part = np.int64(0)
    for i in range(length):
        part |= np.int64(data[start + i]) << np.int64(8 * i)
    return part


@inline_kernel
def fold_case(part, fold):
    """Turn ASCII capitals in eight bytes into small letters if `fold`; other bytes stay."""
    if not fold:
        return part
    low = part & np.int64(_LOW_BITS)
    # A byte is a capital when adding _FROM_A reaches its top bit and adding _PAST_Z does not.
    capital = (add(low, np.int64(_FROM_A)) ^ add(low, np.int64(_PAST_Z))) & ~part & np.int64(_HIGH_BITS)
    return part | shift_right(capital, np.int64(2))


@inline_kernel
def mix_into_hash(key, part):
    """Add the next eight bytes of a word to its hash."""
    mixed = multiply(key ^ part, np.int64(_GOLDEN))
    return mixed ^ shift_right(mixed, np.int64(29))


@kernel
def hash_long_word(data, start, stop, fold):
    """A hash of a word of at least sixteen bytes, and its bytes or-ed together."""
    key = np.int64(stop - start)
    seen = np.int64(0)
    for position in range(start, stop - 7, 8):
        part = load8(data, position)
        seen |= part
        key = mix_into_hash(key, fold_case(part, fold))
    # The last eight bytes overlap those before if the length is no multiple of eight.
    part = load8(data, stop - 8)
    return mix_into_hash(key, fold_case(part, fold)), seen | part


@inline_kernel
def word_key(data, start, stop, fold):
    """The two halves of a word's key, and its bytes or-ed together (a top bit means: not ASCII)."""
    length = np.int64(stop - start)
    if length <= 7:
        part = read_short(data, start, stop)
        return fold_case(part, fold), length << np.int64(56), part
    if length <= 15:
        first = load8(data, start)
        rest = shift_right(load8(data, stop - 8), np.int64(8 * (16 - length)))
        return fold_case(first, fold), fold_case(rest, fold) | (length << np.int64(56)), first | rest
    key, seen = hash_long_word(data, start, stop, fold)
    return key, np.int64(_LONG), seen


@inline_kernel
def word_home(low, high, n_slots):
    """The slot at which the search for a key begins; the number of slots is a power of two."""
    spread = multiply(low ^ multiply(high, np.int64(_MIX)), np.int64(_GOLDEN))
    spread = multiply(spread ^ shift_right(spread, np.int64(32)), np.int64(_GOLDEN))
    return shift_right(spread, np.int64(24)) & np.int64(n_slots - 1)


@kernel
def same_long_word(word_start, word_bytes, word, data, start, stop, fold):
    """Whether stored `word` has exactly these bytes (at least sixteen)."""
    begin = word_start[word]
    if word_start[word + 1] - begin != stop - start:
        return False
    for offset in range(0, stop - start - 7, 8):
        if fold_case(load8(data, start + offset), fold) != load8(word_bytes, begin + offset):
            return False
    return fold_case(load8(data, stop - 8), fold) == load8(word_bytes, begin + (stop - start) - 8)


@kernel
def find_long_word(slot, word_start, word_bytes, low, number, data, start, stop, fold):
    """As `find_short_word`, for words whose key is only a hash."""
    last = slot.size // SLOT_WIDTH - 1
    while True:
        at = number * SLOT_WIDTH
        word = slot[at + 2]
        if word == EMPTY_SLOT or (
            slot[at] == low and slot[at + 1] == _LONG and same_long_word(word_start, word_bytes, word, data, start, stop, fold)
        ):
            return at
        number = (number + 1) & last


@inline_kernel
def find_short_word(slot, low, high, number):
    """The slot that holds the word with this key, or the free slot where it belongs."""
    last = slot.size // SLOT_WIDTH - 1
    while True:
        at = number * SLOT_WIDTH
        if slot[at + 2] == EMPTY_SLOT or (slot[at] == low and slot[at + 1] == high):
            return at
        number = (number + 1) & last


@kernel
def find_words(table, column, fold, longest, ids):
    """Fill `ids` with the id of each word: ABSENT, or ABSENT_NOT_ASCII when the word has bytes outside ASCII.

    Works in blocks: all keys of a block are computed and their slots prefetched before the first one is read.
    Returns how many words are empty or longer than `longest` bytes.
    """
    # Fields are read once: taking an array out of a tuple inside a loop counts references, atomically.
    slot, word_start, word_bytes = table.slot, table.word_start, table.word_bytes
    starts, data = column.start, column.data
    n_slots = slot.size // SLOT_WIDTH
    lows, highs = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    seens, homes = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    n_unusable = 0
    for block in range(0, ids.size, _BLOCK):
        n_block = min(_BLOCK, ids.size - block)
        for i in range(n_block):
            length = starts[block + i + 1] - starts[block + i]
            n_unusable += length == 0 or length > longest
            low, high, seen = word_key(data, starts[block + i], starts[block + i + 1], fold)
            lows[i], highs[i], seens[i] = low, high, seen
            homes[i] = word_home(low, high, n_slots)
            prefetch(slot, homes[i] * SLOT_WIDTH)
        for i in range(n_block):
            if highs[i] != _LONG:
                at = find_short_word(slot, lows[i], highs[i], homes[i])
            else:
                start, stop = starts[block + i], starts[block + i + 1]
                at = find_long_word(slot, word_start, word_bytes, lows[i], homes[i], data, start, stop, fold)
            word = slot[at + 2]
            if word == EMPTY_SLOT and seens[i] & np.int64(_HIGH_BITS) != 0:
                word = np.int64(ABSENT_NOT_ASCII)
            ids[block + i] = word
    return n_unusable


@inline_kernel
def find_slot(slot, word_start, word_bytes, data, start, stop, fold):
    """The slot that holds the word or the free one where it belongs, and the two halves of its key."""
    low, high, _ = word_key(data, start, stop, fold)
    number = word_home(low, high, slot.size // SLOT_WIDTH)
    if high != _LONG:
        return find_short_word(slot, low, high, number), low, high
    return find_long_word(slot, word_start, word_bytes, low, number, data, start, stop, fold), low, high


@kernel
def add_words(table, n_known, column, fold, first, ids):
    """Fill `ids` from position `first` on, giving new words the next ids.

    Stops where the table or its bytes are full. Returns the number of words known and the position reached.
    """
    slot, word_start, word_bytes = table.slot, table.word_start, table.word_bytes
    starts, data = column.start, column.data
    n_slots = slot.size // SLOT_WIDTH
    for position in range(first, ids.size):
        start, stop = starts[position], starts[position + 1]
        at, low, high = find_slot(slot, word_start, word_bytes, data, start, stop, fold)
        if slot[at + 2] == EMPTY_SLOT:
            begin = word_start[n_known]
            is_full = 4 * (n_known + 1) > 3 * n_slots or n_known + 1 >= word_start.size
            if is_full or begin + (stop - start) > word_bytes.size:
                return n_known, position
            copy_word(word_bytes, begin, data, start, stop, fold)
            word_start[n_known + 1] = begin + (stop - start)
            slot[at], slot[at + 1], slot[at + 2] = low, high, n_known
            n_known += 1
        ids[position] = slot[at + 2]
    return n_known, ids.size


@kernel
def copy_word(target, at, data, start, stop, fold):
    for i in range(stop - start):
        byte = data[start + i]
        target[at + i] = byte + 32 if fold and 65 <= byte <= 90 else byte


@kernel
def fill_slots(table, n_known):
    """Insert every known word into empty slots, after the table has grown."""
    slot, word_start, word_bytes = table.slot, table.word_start, table.word_bytes
    for word in range(n_known):
        at, low, high = find_slot(slot, word_start, word_bytes, word_bytes, word_start[word], word_start[word + 1], False)
        slot[at], slot[at + 1], slot[at + 2] = low, high, word
