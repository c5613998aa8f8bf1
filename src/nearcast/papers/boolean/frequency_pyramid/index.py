"""`frequency_pyramid`: allocates, builds and updates the pyramid, and matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.growing import resized
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters, check_range
from nearcast.kernels.hashing import rehash
from nearcast.kernels.layouts import ClauseArrays, MessageArrays
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.kernels.quadtree import DEEPEST, column_of
from nearcast.papers.boolean.frequency_pyramid.kernels.insert import count_anchors, file_clauses
from nearcast.papers.boolean.frequency_pyramid.kernels.lists import (
    collect_dead,
    find_edge,
    has_clause,
    list_size,
    nth_anchor,
    path_length,
)
from nearcast.papers.boolean.frequency_pyramid.kernels.match import match_messages
from nearcast.papers.boolean.frequency_pyramid.layout import (
    BELOW,
    FIRST_NODES,
    HEAD_FIELDS,
    ITEM_FIELDS,
    LONGEST,
    N_BUILT,
    N_EDGES,
    N_ENTRIES,
    N_FILED,
    N_FREQUENT,
    N_LISTS,
    N_NODES,
    N_SHARED,
    N_UNCLEANED,
    N_WORDS,
    NEEDED_FIELDS,
    NEEDED_ITEMS,
    NEEDED_NODES,
    NEEDED_SLOTS,
    NEEDED_WORDS,
    NO_ANCHOR,
    NODE_FIELDS,
    NOTHING,
    ROOT,
    Options,
    PyramidArrays,
    WorkArrays,
)
from nearcast.papers.boolean.quadtrees.allocate import free_slots
from nearcast.papers.boolean.quadtrees.cost_inputs import frame_of_clauses

# Rebuilt when at least this many clauses were inserted since the build, and as many as it had: then the grids fit again.
_LEAST_REBUILT = 1024
_EDGES = 256  # edges that a message looks up at once


@dataclass(frozen=True, slots=True)
class FrequencyPyramidParameters(Parameters):
    """How long lists get, and how far down the pyramid goes.

    `list_size`: a keyword with more clauses than this in a cell is frequent there and gets a trie. `node_size`: clauses that
    may end at one node of a trie before the smaller ones move to the next finer grid. `max_depth`: the finest grid has
    2^max_depth columns and rows. `is_sharing`: whether neighbouring cells share lists. `cleaned`: slots that the cleaner visits
    for each inserted or deleted clause. Paper: theta = 5, a finest grid of 512 columns; the authors' program uses 20, which is
    slower here.
    """

    list_size: int = 5
    node_size: int = 5
    max_depth: int = 9
    is_sharing: bool = True
    cleaned: int = 4

    def __post_init__(self) -> None:
        check_range("list_size", self.list_size, 1, 1000)
        check_range("node_size", self.node_size, 1, 4000)
        check_range("max_depth", self.max_depth, 1, DEEPEST)
        check_range("cleaned", self.cleaned, 0, 1_000_000)


class FrequencyPyramid(BooleanIndex):
    """Each clause under its rarest keyword in the coarsest grid; frequent keywords get tries, and full tries a finer grid."""

    name = "frequency_pyramid"
    aliases = ("fast",)
    paper = "FAST: Mahmood, Aly, Aref, ICDE 2018"
    summary = (
        "a pyramid of grids: lists by rarest keyword, tries of locally frequent keywords, finer grids where tries are full"
    )
    parameters_class = FrequencyPyramidParameters
    parameters: FrequencyPyramidParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        options = self.parameters
        self._options = Options(options.list_size, options.node_size, options.max_depth, int(options.is_sharing))
        self._stamps = Stamps()
        # Without a kernel: a matcher that is opened replaces these arrays at once.
        self._pyramid = empty_pyramid(np.zeros(6), 1)

    # --- building and updating -----------------------------------------------------------------------------------------

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """File all clauses, one by one; keywords are counted before the first. The history is not used."""
        layout = clauses.layout()
        slots = np.flatnonzero(layout.is_alive).astype(np.int32)
        frame = frame_of_clauses(layout, slots, self.parameters.max_depth)
        self._pyramid = empty_pyramid(frame, clauses.n_keywords + 1)
        self._file(clauses, slots)
        self._pyramid.head[N_BUILT] = len(slots)
        self._pyramid = trimmed(self._pyramid)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        head = self._pyramid.head
        if head[N_FILED] + len(slots) - head[N_BUILT] > max(_LEAST_REBUILT, head[N_BUILT]):
            self.build(clauses)
            return
        self._pyramid = resized_frequency(self._pyramid, clauses.n_keywords + 1)
        self._file(clauses, slots)
        self._collect_dead(clauses, len(slots))

    def _file(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout, work = clauses.layout(), empty_work()
        count_anchors(self._pyramid.frequency, layout.keyword_start, layout.keyword, slots, 1)
        while not file_clauses(self._pyramid, layout, work, self._options, slots):
            self._pyramid, work = resized_pyramid(self._pyramid, work)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Clauses stay where they are and are skipped, until the cleaner or a full list removes them."""
        layout = clauses.layout()
        count_anchors(self._pyramid.frequency, layout.keyword_start, layout.keyword, slots, -1)
        self._pyramid.head[N_FILED] -= len(slots)
        self._pyramid.head[N_UNCLEANED] = len(self._pyramid.slot) // 2
        self._collect_dead(clauses, len(slots))

    def _collect_dead(self, clauses: ClauseStore, n_changes: int) -> None:
        collect_dead(self._pyramid, clauses.layout().is_alive, n_changes * self.parameters.cleaned)

    # --- matching ------------------------------------------------------------------------------------------------------

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        pyramid, layout, max_depth = self._pyramid, clauses.layout(), self.parameters.max_depth
        scratch = (stamp, *_match_scratch(pyramid, max_depth, messages))
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(
                pyramid, max_depth, layout, messages.arrays, scratch, mark, first, n_out, output
            ),
        )

    # --- insight and storage -------------------------------------------------------------------------------------------

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return explain_path(self._pyramid, self.parameters.max_depth, clauses.layout(), messages.arrays, slot)

    def stats(self) -> dict[str, int | float]:
        head = self._pyramid.head
        n_filed = int(head[N_FILED])
        return {
            **super().stats(),
            "lists": int(head[N_LISTS]),
            "longest_list": int(head[LONGEST]),
            "nodes": int(head[N_NODES]),
            "edges": int(head[N_EDGES]),
            "frequent": int(head[N_FREQUENT]),
            "shared": int(head[N_SHARED]),
            "copies": float(head[N_ENTRIES] / n_filed) if n_filed else 1.0,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: array for name, array in self._pyramid._asdict().items() if name != "number"}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        fields = {name: arrays[name] for name in PyramidArrays._fields if name != "number"}
        self._pyramid = PyramidArrays(number=arrays["word"].view(np.float64), **fields)


def _match_scratch(pyramid: PyramidArrays, max_depth: int, messages: MessageBatch) -> tuple[NDArray[np.int64], ...]:
    """Scratch of a match: keys and bits by depth; edges with slots and keys; lists, queue of nodes, stack of cells."""
    longest = int(np.diff(messages.arrays.keyword_start).max(initial=0)) + 1
    n_lists, n_nodes = int(pyramid.head[N_LISTS]), int(pyramid.head[N_NODES])
    sizes = (
        *(2 * [(max_depth + 2) * longest]),
        *(3 * [max(longest, _EDGES)]),
        n_lists + 1,
        2 * (n_nodes + 1),
        5 * 4 * (max_depth + 1),
    )
    return tuple(np.empty(size, np.int64) for size in sizes)


_FEWEST_SLOTS = 16


def empty_pyramid(frame: NDArray[np.float64], n_anchors: int) -> PyramidArrays:
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
        frequency=np.zeros(n_anchors, np.int64),
        frame=frame,
        head=head,
    )


def empty_work() -> WorkArrays:
    """Nothing to do yet."""
    return WorkArrays(np.zeros(2, np.int64), np.zeros(NEEDED_FIELDS, np.int64), np.empty(0, np.int64))


def resized_frequency(pyramid: PyramidArrays, n_anchors: int) -> PyramidArrays:
    """Room for keywords that came after the build."""
    n_known = len(pyramid.frequency)
    if n_anchors <= n_known:
        return pyramid
    return pyramid._replace(frequency=resized(pyramid.frequency, max(n_anchors, n_known * 3 // 2)))


def resized_pyramid(pyramid: PyramidArrays, work: WorkArrays) -> tuple[PyramidArrays, WorkArrays]:
    """The same with at least the sizes that a kernel needs; arrays that were too small grow by a quarter more."""
    needed = work.needed.tolist()
    head = pyramid.head
    if (n_nodes := NODE_FIELDS * needed[NEEDED_NODES]) > len(pyramid.node):
        pyramid = pyramid._replace(node=resized(pyramid.node, n_nodes * 5 // 4, used=NODE_FIELDS * int(head[N_NODES])))
    if (n_words := needed[NEEDED_WORDS]) > len(pyramid.word):
        pyramid = _with_words(pyramid, resized(pyramid.word, n_words * 5 // 4, used=int(head[N_WORDS])))
    if (n_slots := needed[NEEDED_SLOTS]) > len(pyramid.slot) // 2:
        slot = free_slots(n_slots)
        rehash(slot, pyramid.slot)
        # Every edge has another slot now: the cleaner begins its round again.
        head[N_UNCLEANED] = len(slot) // 2 if head[N_UNCLEANED] else 0
        pyramid = pyramid._replace(slot=slot)
    if (n_items := ITEM_FIELDS * needed[NEEDED_ITEMS]) > len(work.item):
        work = work._replace(item=resized(work.item, 2 * n_items))
    return pyramid, work


def trimmed(pyramid: PyramidArrays) -> PyramidArrays:
    """The same without spare capacity."""
    head = pyramid.head
    pyramid = pyramid._replace(node=pyramid.node[: NODE_FIELDS * int(head[N_NODES])].copy())
    return _with_words(pyramid, pyramid.word[: int(head[N_WORDS])].copy())


def _with_words(pyramid: PyramidArrays, word: NDArray[np.int64]) -> PyramidArrays:
    return pyramid._replace(word=word, number=word.view(np.float64))


def explain_path(
    pyramid: PyramidArrays, max_depth: int, clauses: ClauseArrays, messages: MessageArrays, slot: int
) -> list[str]:
    """Follow the first message from grid to grid towards the clause, to its list or to where their paths part."""
    n_path = int(path_length(clauses.keyword_start, slot))
    path = [int(nth_anchor(clauses.keyword_start, clauses.keyword, slot, at)) for at in range(n_path)]
    known = {NO_ANCHOR} | {1 + int(keyword) for keyword in messages.keyword[: int(messages.keyword_start[1])]}
    absent = [anchor - 1 for anchor in path if anchor not in known]
    if absent:
        return [f"not looked for: the message lacks keyword {absent[0]}"]
    column = _common_column(pyramid.frame[:3], max_depth, (clauses.x0, clauses.x1), (messages.x0, messages.x1), slot)
    row = _common_column(pyramid.frame[3:], max_depth, (clauses.y0, clauses.y1), (messages.y0, messages.y1), slot)
    if column is None or row is None:
        return ["not met: the message lies in other cells of the finest grid"]
    lines: list[str] = []
    cell = ROOT
    shift = max_depth
    while True:
        description = _in_cell(pyramid, cell, path, slot)
        location = f"depth {max_depth - shift}, column {column >> shift}, row {row >> shift}"
        if description:
            return [*lines, f"{location}: {description}"]
        lines.append(f"{location}: all its keywords are frequent and their tries full, further down")
        shift -= 1
        cell = int(pyramid.node[NODE_FIELDS * cell + BELOW]) + ((column >> shift) & 1) + 2 * ((row >> shift) & 1)


def _common_column(
    frame: NDArray[np.float64],
    max_depth: int,
    clause: tuple[NDArray[np.float64], NDArray[np.float64]],
    message: tuple[NDArray[np.float64], NDArray[np.float64]],
    slot: int,
) -> int | None:
    """The first column of the finest grid that clause and message have in common."""
    low, high, scale = frame.tolist()
    boxes = [(clause[0][slot], clause[1][slot]), (message[0][0], message[1][0])]
    columns = [[int(column_of(float(bound), low, high, scale, 1 << max_depth)) for bound in location] for location in boxes]
    first, last = max(columns[0][0], columns[1][0]), min(columns[0][1], columns[1][1])
    return first if first <= last else None


def _in_cell(pyramid: PyramidArrays, cell: int, path: list[int], slot: int) -> str:
    """Where the clause is in a cell; empty if it is further down."""
    for anchor in path:
        start = int(find_edge(pyramid.slot, cell, anchor))
        if start >= 0 and has_clause(pyramid.word, start, slot):
            posted = f"keyword {anchor - 1}" if anchor != NO_ANCHOR else "no keyword"
            return f"{_list(pyramid, start)} of {posted}, each verified"
    node = cell
    for at, anchor in enumerate(path):
        value = int(find_edge(pyramid.slot, node, anchor))
        if value >= 0:
            return f"{_list(pyramid, value)} in a trie, after {at + 1} keywords, each verified"
        node = ~value
    start = int(pyramid.node[NODE_FIELDS * node + BELOW])
    if start != NOTHING and has_clause(pyramid.word, start, slot):
        return f"{_list(pyramid, start)} at the end of its path in a trie, each verified"
    return ""


def _list(pyramid: PyramidArrays, start: int) -> str:
    return f"list of {int(list_size(pyramid.word[start]))} clauses"
