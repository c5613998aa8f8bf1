"""Make the arrays of a pyramid: empty, with the room that a kernel asked for, without spare room."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import resized
from nearcast.kernels.hashing import rehash
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.papers.boolean.frequency_pyramid.layout import (
    BELOW,
    FIRST_NODES,
    HEAD_FIELDS,
    ITEM_FIELDS,
    N_NODES,
    N_WORDS,
    NODE_FIELDS,
    NOTHING,
    UNSWEPT,
    WANTED_FIELDS,
    WANTED_ITEMS,
    WANTED_NODES,
    WANTED_SLOTS,
    WANTED_WORDS,
    PyramidArrays,
    WorkArrays,
)
from nearcast.papers.boolean.quadtrees.allocate import free_slots

_FEWEST_SLOTS = 16


def empty_pyramid(frame: NDArray[np.float64], n_owners: int) -> PyramidArrays:
    """The root and nothing in it."""
    node = np.zeros(NODE_FIELDS * FIRST_NODES, np.int64)
    node[BELOW::NODE_FIELDS] = NOTHING
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[N_NODES] = FIRST_NODES
    word = np.zeros(0, np.int64)
    return PyramidArrays(
        node=node,
        slot=free_slots(_FEWEST_SLOTS),
        word=word,
        number=word.view(np.float64),
        free_word=np.full(N_CLASSES, NO_CHUNK, np.int64),
        frequency=np.zeros(n_owners, np.int64),
        frame=frame,
        head=head,
    )


def empty_work() -> WorkArrays:
    """Nothing to do yet."""
    return WorkArrays(np.zeros(2, np.int64), np.zeros(WANTED_FIELDS, np.int64), np.empty(0, np.int64))


def widened_frequency(pyramid: PyramidArrays, n_owners: int) -> PyramidArrays:
    """Room for keywords that came after the build."""
    n_known = len(pyramid.frequency)
    if n_owners <= n_known:
        return pyramid
    return pyramid._replace(frequency=resized(pyramid.frequency, max(n_owners, n_known * 3 // 2)))


def with_room(pyramid: PyramidArrays, work: WorkArrays) -> tuple[PyramidArrays, WorkArrays]:
    """At least the sizes that a kernel asked for; what was too small grows by a quarter as well."""
    wanted = work.wanted.tolist()
    head = pyramid.head
    if (n_nodes := NODE_FIELDS * wanted[WANTED_NODES]) > len(pyramid.node):
        pyramid = pyramid._replace(node=resized(pyramid.node, n_nodes * 5 // 4, used=NODE_FIELDS * int(head[N_NODES])))
    if (n_words := wanted[WANTED_WORDS]) > len(pyramid.word):
        pyramid = _with_words(pyramid, resized(pyramid.word, n_words * 5 // 4, used=int(head[N_WORDS])))
    if (n_slots := wanted[WANTED_SLOTS]) > len(pyramid.slot) // 2:
        slot = free_slots(n_slots)
        rehash(slot, pyramid.slot)
        # Every edge has another place now: the cleaner begins its round again.
        head[UNSWEPT] = len(slot) // 2 if head[UNSWEPT] else 0
        pyramid = pyramid._replace(slot=slot)
    if (n_items := ITEM_FIELDS * wanted[WANTED_ITEMS]) > len(work.item):
        work = work._replace(item=resized(work.item, 2 * n_items))
    return pyramid, work


def trimmed(pyramid: PyramidArrays) -> PyramidArrays:
    """The same without spare room."""
    head = pyramid.head
    pyramid = pyramid._replace(node=pyramid.node[: NODE_FIELDS * int(head[N_NODES])].copy())
    return _with_words(pyramid, pyramid.word[: int(head[N_WORDS])].copy())


def _with_words(pyramid: PyramidArrays, word: NDArray[np.int64]) -> PyramidArrays:
    return pyramid._replace(word=word, number=word.view(np.float64))
