"""Chunks of one growing array, given out and taken back by size: what is freed serves the next of its size."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel

NO_CHUNK = -1
N_CLASSES = 256

_FINEST = 64  # up to here every even size has a class of its own
_STEPS = 8  # sizes per doubling above


@inline_kernel
def chunk_room(size):
    """The room of the smallest chunk for `size` elements: at most one, or an eighth, more."""
    if size <= _FINEST:
        return size + (size & 1)
    shift = 3
    while (size - 1) >> shift >= 2 * _STEPS:
        shift += 1
    return (((size - 1) >> shift) + 1) << shift


@inline_kernel
def chunk_class(room):
    """The number of the free list for chunks of a room that `chunk_room` gave."""
    if room <= _FINEST:
        return room >> 1
    shift = 3
    while (room - 1) >> shift >= 2 * _STEPS:
        shift += 1
    return _FINEST // 2 + _STEPS * (shift - 4) + ((room - 1) >> shift) + 1


@kernel
def take_chunk(free, link, used, field, room):
    """The start of a chunk of `room` elements: a freed one, or the next of the unused part, which must be large enough.

    `free[class]` is the first free chunk of a class, whose first element links to the next; `used[field]` counts elements.
    """
    number = chunk_class(room)
    first = int(free[number])
    if first == NO_CHUNK:
        first = int(used[field])
        used[field] += room
    else:
        free[number] = int(link[first])
    return first


@kernel
def give_back(free, link, first, room):
    """Free a chunk for the next of its size."""
    if room > 0:
        number = chunk_class(room)
        link[first] = free[number]
        free[number] = first
