"""`adaptive_tree`: builds the tree, keeps it up to date and matches."""

from __future__ import annotations

import threading
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
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.keyword_sets import count_clauses
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.adaptive_tree import cost_inputs
from nearcast.papers.boolean.adaptive_tree.allocate import empty_tree, empty_work, resized_tree, trimmed
from nearcast.papers.boolean.adaptive_tree.explain import explain_path
from nearcast.papers.boolean.adaptive_tree.kernels import divide, maintain
from nearcast.papers.boolean.adaptive_tree.kernels.match import match_messages
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import collect_clauses, gather_clauses
from nearcast.papers.boolean.adaptive_tree.layout import (
    ALLOWED,
    DEEPEST,
    DEPTH,
    KEYWORD,
    KIND,
    LEAF,
    MAY_KEYWORD,
    MAY_SPACE,
    MOTION_FIELDS,
    N_BACK,
    N_FILED,
    N_FRONT,
    N_ITEMS,
    N_NODES,
    N_REBUILT,
    NEVER,
    NO_RANK,
    NODE,
    NODE_FIELDS,
    OFFSET,
    POSITION,
    PROVEN,
    ROOT,
    ROWS,
    SIZE,
    SPREAD,
    START,
    STOP,
    CostInputs,
    DensityArrays,
    MotionArrays,
    Options,
    TreeArrays,
    WorkArrays,
)

_CHOICES = {
    "partition": ("heuristic", "optimal"),
    "priority": ("cost", "keyword", "space"),
    "keyword_order": ("rare_first", "frequent_first"),
    "rebuild": ("drift", "never"),
}


@dataclass(frozen=True, slots=True)
class AdaptiveTreeParameters(Parameters):
    """How the tree is divided, and when a part of it is rebuilt.

    `fanout`: most cuts or cells of a node. `leaf_size`: a leaf with as many clauses is divided if that pays. `partition`: how
    cuts are chosen. `priority`: what decides between keyword and space. `keyword_order`: the order in which the keywords of a
    clause are used. `is_refining`: a cut of several keywords may be divided by the same keyword again. `max_copies`: copies of
    a clause, on average. `rebuild`: whether a node is rebuilt when the distribution of its clauses has drifted since it was
    divided (`drift_limit`, a divergence); `is_noise_corrected`: only beyond what chance alone explains; `least_change`: and
    not before this share of its clauses was added or removed. Where there is no history: `message_length`:
    keywords of a message; `is_guessing`: messages are expected where the clauses are, rather than by area.
    """

    fanout: int = 200
    leaf_size: int = 40
    partition: str = "heuristic"
    priority: str = "cost"
    keyword_order: str = "rare_first"
    is_refining: bool = True
    max_copies: float = 4.0
    rebuild: str = "drift"
    drift_limit: float = 0.001
    is_noise_corrected: bool = True
    least_change: float = 0.2
    message_length: float = 9.0
    is_guessing: bool = True

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not known; expected {' or '.join(allowed)}")
        if not 4 <= self.fanout < ROWS:
            raise IndexParameterError(f"fanout={self.fanout!r} is not possible; expected 4 to {ROWS - 1}")
        if self.leaf_size < 2:
            raise IndexParameterError(f"leaf_size={self.leaf_size!r} is not possible; expected at least 2")
        if not self.max_copies >= 1:
            raise IndexParameterError(f"max_copies={self.max_copies!r} is not possible; expected at least 1")
        if not self.message_length > 0:
            raise IndexParameterError(f"message_length={self.message_length!r} is not possible; expected more than 0")
        for name in ("drift_limit", "least_change"):
            if not getattr(self, name) >= 0:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not possible; expected 0 or more")

    def options(self) -> Options:
        """The same, for kernels."""
        return Options(
            self.fanout,
            self.leaf_size,
            _CHOICES["priority"].index(self.priority),
            int(self.partition == "optimal"),
            int(self.is_refining),
            float(self.max_copies),
            float(self.drift_limit) if self.rebuild == "drift" else NEVER,
            float(self.is_noise_corrected),
            float(self.least_change),
        )


class _Scratch(threading.local):
    """Scratch arrays of one thread for the nodes that a message reaches; touched only as far as they are used."""

    def __init__(self) -> None:
        self._queue: NDArray[np.int32] = np.empty(0, np.int32)
        self._cell: NDArray[np.float64] = np.empty(0)

    def take(self, n_nodes: int, has_boxes: bool) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Three numbers for every node, and a cell for each if some message is a box."""
        self._queue = resized(self._queue, 3 * n_nodes, None, 0)
        if has_boxes:
            self._cell = resized(self._cell, 4 * n_nodes, None, 0)
        return self._queue, self._cell


class AdaptiveTree(BooleanIndex):
    """Each node is divided by the l-th keyword or by a grid, whichever costs less; leaves have clauses and boxes."""

    name = "adaptive_tree"
    aliases = ("ap-tree",)
    paper = "AP-Tree of Wang et al. 2017"
    summary = "a tree whose nodes divide by keyword or by space, chosen by expected cost; adapts as clauses come and go"
    parameters_class = AdaptiveTreeParameters
    parameters: AdaptiveTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._scratch = _Scratch()
        self._options = self.parameters.options()
        self._history = cost_inputs.no_history()
        # Without a kernel: a matcher that is opened replaces these arrays at once.
        self._tree = empty_tree(np.zeros(0, np.int32), np.zeros(4), 0, 0)
        nowhere = DensityArrays(np.zeros(4), np.array([0, 0, 0, 0, 0, 0, 1.0]))
        at_rest = MotionArrays(np.zeros(0, np.float32), np.zeros(MOTION_FIELDS))
        self._inputs = CostInputs(np.ones(1, np.float32), nowhere, at_rest)
        self._work = self._new_work(0, 0, 0)

    def _new_work(self, n_local: int, n_keywords: int, n_clauses: int) -> WorkArrays:
        head, parameters = self._tree.head, self.parameters
        n_line = int(head[N_FRONT] + head[N_BACK])
        return empty_work(parameters.fanout, parameters.partition == "optimal", n_local, n_keywords, n_line, n_clauses)

    # --- building and updating -----------------------------------------------------------------------------------------

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """Without a history, that of an earlier build is used."""
        slots = np.flatnonzero(clauses.layout().is_alive).astype(np.int32)
        if history is not None and len(history):
            self._history = cost_inputs.count_history(history)
            self._inputs = self._inputs._replace(density=cost_inputs.density_of_history(history))
        self._build_of(clauses, slots)

    def _motion(self, n_clauses: int) -> MotionArrays:
        """How the clauses move, when the tree is built for `n_clauses` of them."""
        return self._inputs.motion

    def _build_of(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Rebuild the whole tree for the clauses at `slots`, with a new order of keywords."""
        layout, parameters, n = clauses.layout(), self.parameters, len(slots)
        frequency = np.zeros(clauses.n_keywords, np.int64)
        count_clauses(layout.keyword_start, layout.keyword, slots, frequency, 1)
        rank, n_ranked = _ranks(frequency, parameters.keyword_order == "rare_first")
        density = self._inputs.density
        if self._history.n[0] == 0:
            density = cost_inputs.density_of_clauses(layout, slots, parameters.is_guessing)
        likelihood = cost_inputs.likelihoods(rank, frequency, self._history, parameters.message_length)
        self._inputs = CostInputs(likelihood, density, self._motion(n))
        n_rebuilt = self._tree.head[N_REBUILT]
        self._tree = empty_tree(rank, _region(layout, slots), n_ranked, n)
        self._tree.head[N_REBUILT] = n_rebuilt
        self._work = work = self._new_work(n, int(frequency.sum()), 0)
        work.clause[:] = slots
        gather_clauses(self._tree, layout, work, n)
        self._tree.head[N_FILED] = self._tree.n_below[ROOT] = self._tree.n_at_division[ROOT] = n
        _push_root(work, self._tree.region, n)
        while not divide.divide_items(self._tree, self._inputs, self._work, self._options):
            self._tree, self._work = resized_tree(self._tree, self._work)
        self._tree = trimmed(self._tree)
        self._work = self._new_work(0, 0, 0)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        tree = self._tree
        if clauses.n_keywords > len(tree.rank):
            self._tree = tree._replace(rank=resized(tree.rank, clauses.n_keywords * 5 // 4, NO_RANK, needed=clauses.n_keywords))
        is_front = self.parameters.keyword_order == "rare_first"
        maintain.rank_new_keywords(self._tree, clauses.layout(), slots, is_front)
        self._change(clauses, slots, 1)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        self._change(clauses, slots, -1)

    def _change(self, clauses: ClauseStore, slots: NDArray[np.int32], step: int) -> None:
        layout = clauses.layout()
        position = 0
        while True:
            head, work = self._tree.head, self._work
            n_line = int(head[N_FRONT] + head[N_BACK])
            line = resized(work.line, 2 * n_line, needed=n_line)
            seen = resized(work.seen, 2 * clauses.n, needed=clauses.n)
            self._work = work._replace(line=line, seen=seen)
            self._work.state[POSITION] = position
            status = maintain.change_clauses(self._tree, layout, self._inputs, self._work, self._options, slots, step)
            position = int(self._work.state[POSITION])
            if status == maintain.DONE:
                return
            if status == maintain.SHORT:
                self._tree, self._work = resized_tree(self._tree, self._work)
            else:
                self._rebuild(clauses, slots[position:] if step > 0 else slots[:0])

    def _rebuild(self, clauses: ClauseStore, coming: NDArray[np.int32]) -> None:
        """Rebuild the tree, and rank the keywords of the clauses that come next."""
        filed = np.empty(int(self._tree.head[N_FILED]), np.int32)
        collect_clauses(self._tree, ROOT, self._work.stack, self._work.seen, filed)
        self._tree.head[N_REBUILT] += 1
        self._build_of(clauses, filed)
        maintain.rank_new_keywords(self._tree, clauses.layout(), coming, self.parameters.keyword_order == "rare_first")

    # --- matching ------------------------------------------------------------------------------------------------------

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        tree, layout, arrays = self._tree, clauses.layout(), messages.arrays
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        longest = int(np.diff(arrays.keyword_start).max(initial=0))
        n_nodes = int(tree.head[N_NODES])
        has_boxes = bool(np.any(arrays.x0 != arrays.x1) or np.any(arrays.y0 != arrays.y1))
        queue, cell = self._scratch.take(n_nodes, has_boxes)
        rank, is_refining = np.empty(longest, np.int32), self._options.is_refining
        scratch = (stamp, rank, queue[:n_nodes], queue[n_nodes : 2 * n_nodes], queue[2 * n_nodes :], cell)
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(tree, layout, arrays, is_refining, scratch, mark, first, n_out, output),
        )

    # --- insight and storage -------------------------------------------------------------------------------------------

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return explain_path(self._tree, clauses.layout(), messages.arrays, slot)

    def stats(self) -> dict[str, int | float]:
        head, node = self._tree.head, self._tree.node[: NODE_FIELDS * int(self._tree.head[N_NODES])]
        kind, size = node[KIND::NODE_FIELDS], node[SIZE::NODE_FIELDS]
        # Freed nodes are leaves without entries.
        sizes = size[(kind == LEAF) & (size > 0)]
        n_filed = int(head[N_FILED])
        return {
            "bytes": sum(array.nbytes for array in self._named(self._tree).values()),
            "nodes": len(sizes) + int(np.count_nonzero(kind != LEAF)),
            "keyword_nodes": int(np.count_nonzero(kind == KEYWORD)),
            "space_nodes": int(np.count_nonzero(kind > KEYWORD)),
            "longest_leaf": int(sizes.max(initial=0)),
            "copies": float(sizes.sum() / n_filed) if n_filed else 1.0,
            "depth": int(head[DEEPEST]),
            "rebuilt": int(head[N_REBUILT]),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._named(trimmed(self._tree))

    def _named(self, tree: TreeArrays) -> dict[str, NDArray[Any]]:
        return {
            **tree._asdict(),
            "likelihood": self._inputs.likelihood,
            **{f"density_{name}": array for name, array in self._inputs.density._asdict().items()},
            **{f"history_{name}": array for name, array in self._history._asdict().items()},
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._tree = TreeArrays(**{name: arrays[name] for name in TreeArrays._fields})
        density = DensityArrays(**{name: arrays[f"density_{name}"] for name in DensityArrays._fields})
        self._inputs = self._inputs._replace(likelihood=arrays["likelihood"], density=density)
        self._history = cost_inputs.HistoryArrays(*(arrays[f"history_{name}"] for name in cost_inputs.HistoryArrays._fields))
        self._work = self._new_work(0, 0, 0)


def _ranks(frequency: NDArray[np.int64], is_rare_first: bool) -> tuple[NDArray[np.int32], int]:
    """The rank of each keyword that some clause has, the smaller id first on a tie; and how many there are."""
    used = np.flatnonzero(frequency)
    key = frequency[used] if is_rare_first else -frequency[used]
    rank = np.full(len(frequency), NO_RANK, np.int32)
    rank[used[np.argsort(key, kind="stable")]] = np.arange(len(used), dtype=np.int32)
    return rank, len(used)


def _region(clauses: ClauseArrays, slots: NDArray[np.int32]) -> NDArray[np.float64]:
    """The box around all boxes that do not reach to the end of the plane."""
    bounds = cost_inputs.bounded_boxes(clauses, slots)
    if len(bounds[0]) == 0:
        return np.zeros(4)
    return np.array([bounds[0].min(), bounds[1].min(), bounds[2].max(), bounds[3].max()])


def _push_root(work: WorkArrays, region: NDArray[np.float64], n: int) -> None:
    item = work.item
    item[NODE], item[START], item[STOP], item[OFFSET], item[PROVEN] = ROOT, 0, n, 0, 0
    item[ALLOWED], item[DEPTH] = MAY_KEYWORD | MAY_SPACE, 1
    work.item_region[:4] = region
    work.item_region[SPREAD] = 1.0
    work.state[N_ITEMS] = 1
