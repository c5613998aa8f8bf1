"""What a message costs in the trie and in the quadtree: estimates from a few figures of both, and their calibration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays
from nearcast.papers.boolean.cost_filter.kernels import QUADTREE_STEP, TRIE_STEP, CostArrays, estimate_lists_met
from nearcast.papers.boolean.pivot_quadtree.kernels import MessageCells, QuadtreeArrays
from nearcast.papers.boolean.region_trie.kernels import TrieArrays, TrieEntries

# Paper: lists are counted on "the k-th level" of the quadtree; k is not given. At least as many cells as lists, up to 512 x
# 512.
_MOST_CELLS = 512


class Estimates(NamedTuple):
    """The cost of each message of a batch in either structure: microseconds if calibrated, else steps."""

    trie: NDArray[np.float64]
    quadtree: NDArray[np.float64]


def cost_figures(entries: TrieEntries, trie: TrieArrays, tree: QuadtreeArrays) -> CostArrays:
    """The figures of two structures over the same clauses; every unit costs 1, as in the paper."""
    sizes = np.diff(trie.level_start).astype(np.float64)
    n_words = (len(tree.cover) + len(tree.other)) / len(tree.parent)
    return CostArrays(
        np.ones(3),
        np.ones(3),
        np.ones(1),
        sizes,
        np.concatenate([sizes[1:] / sizes[:-1], [0.0, 0.0]]),
        np.array([max(1.0, len(entries.word) / max(1, len(entries.clause)))]),
        np.array([max(1.0, n_words)]),
        _summed_lists(tree),
    )


class Factors(NamedTuple):
    """What the cost of each message is made of, at least 1 each. Paper: Eq 1; cand_Q and the rest of Eq 3."""

    trie_steps: NDArray[np.float64]
    lists: NDArray[np.float64]
    steps_per_list: NDArray[np.float64]


class LengthFactors(NamedTuple):
    """The factors that depend only on the number of known words of a message, for 0, 1, … words."""

    trie_steps: NDArray[np.float64]
    steps_per_list: NDArray[np.float64]


def length_factors(figures: CostArrays, n_ranks: int, n_levels: int, most_words: int) -> LengthFactors:
    """The factors of messages of up to `most_words` words, as a table for batches."""
    n_words = np.arange(most_words + 1)
    n_set = float(figures.words_per_cell[0])
    per_list = n_levels * np.minimum(_log(n_words) * n_set, _log(n_set) * n_words)
    return LengthFactors(_trie_steps(figures, n_words, n_ranks), np.maximum(per_list, 1.0))


def cost_factors(
    figures: CostArrays, by_length: LengthFactors, n_words: NDArray[np.int64], n_columns: int, cells: MessageCells
) -> Factors:
    """The factors of each message of a batch."""
    return Factors(by_length.trie_steps[n_words], lists_met(figures, n_columns, cells), by_length.steps_per_list[n_words])


def estimate(figures: CostArrays, factors: Factors) -> Estimates:
    """Paper: Eq 1 for the trie, Eq 3 for the quadtree; calibrated, with a unit cost and exponents."""
    unit, exponent = figures.unit_cost, figures.exponent
    quadtree = factors.lists ** exponent[1] * factors.steps_per_list ** exponent[2]
    return Estimates(unit[TRIE_STEP] * factors.trie_steps ** exponent[0], unit[QUADTREE_STEP] * quadtree)


def lists_met(figures: CostArrays, n_columns: int, cells: MessageCells) -> NDArray[np.float64]:
    """About how many lists a message meets: the share of each grid cell that it covers, times the lists there; at least 1.

    Paper: cand_Q; 1 for a point.
    """
    width = round(len(figures.lists_before) ** 0.5) - 1
    n_met = np.empty(len(cells.x0))
    estimate_lists_met(figures.lists_before, width, n_columns // width, cells.x0, cells.y0, cells.x1, cells.y1, n_met)
    return n_met


def _trie_steps(figures: CostArrays, n_words: NDArray[np.int64], n_ranks: int) -> NDArray[np.float64]:
    """Steps in the trie for messages with these numbers of known words, assumed to be spread evenly over the vocabulary."""
    words = n_words[:, None].astype(np.float64)
    sizes, fanout = figures.level_size, figures.fanout[: len(figures.level_size) - 1]
    by_keywords = _log(words) * sizes[1:]
    by_children = words * _log(fanout) * sizes[:-1]
    share = np.minimum(1.0, words / max(1, n_ranks))
    # A node of level i is reached if the message has the i words on the path to it.
    steps: NDArray[np.float64] = (np.minimum(by_keywords, by_children) * share ** np.arange(len(fanout))).sum(axis=1)
    np.maximum(steps, 1.0, out=steps)
    return steps


def _summed_lists(tree: QuadtreeArrays) -> NDArray[np.float64]:
    """Lists in a grid over the root cell, summed up from the lower left corner; a larger cell is spread evenly."""
    n_columns = int(tree.cell_size[0])
    is_list = np.diff(tree.child_start) == 0
    width = 1
    while width < min(n_columns, _MOST_CELLS) and width * width < np.count_nonzero(is_list):
        width *= 2
    per_cell = n_columns // width
    x, y, size = (column[is_list] for column in (tree.cell_x, tree.cell_y, tree.cell_size))
    x0, y0 = x // per_cell, y // per_cell
    x1, y1 = (x + size - 1) // per_cell + 1, (y + size - 1) // per_cell + 1
    weight = 1.0 / ((x1 - x0) * (y1 - y0))
    change = np.zeros((width + 1, width + 1))
    for column, row, sign in ((x0, y0, 1), (x1, y0, -1), (x0, y1, -1), (x1, y1, 1)):
        np.add.at(change, (column, row), sign * weight)
    per_grid_cell = change.cumsum(0).cumsum(1)[:width, :width]
    before = np.zeros((width + 1, width + 1))
    before[1:, 1:] = per_grid_cell.cumsum(0).cumsum(1)
    return before.ravel()


def _log(n: NDArray[np.int64] | NDArray[np.float64] | float) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.log2(np.maximum(n, 1.0))
    return result


N_SAMPLES = 200
_N_GROUPS = 16
_N_RUNS = 3
_LEAST_MICROSECONDS = 2000.0
_MOST_REPEATS = 20
_SEED = 2015
# Noise must not make more steps take less time.
_EXPONENTS = (0.0, 1.2)
_LEAST_SPREAD = 0.5
# Paper: short messages have 6-20 words, long ones 100-1000. Here: the words of several clauses, at a point or over a region.
_CLAUSES_OF_A_MESSAGE = (3, 8, 40, 200)


class Fit(NamedTuple):
    """A message takes about unit_cost * factor ** exponent * … microseconds, within a factor of exp(error)."""

    unit_cost: float
    exponent: NDArray[np.float64]
    error: float


def sample_of(history: MessageBatch) -> MessageBatch:
    """Messages of a history, spread evenly over it."""
    rows = np.unique(np.linspace(0, len(history) - 1, min(N_SAMPLES, len(history))).astype(np.int64))
    arrays = history.arrays
    start, keyword = take_lists(arrays.keyword_start, arrays.keyword, rows)
    bounds = (bound[rows] for bound in arrays[2:])
    return MessageBatch(MessageArrays(start, keyword, *bounds), np.arange(len(rows)), history.n_keywords)


def sample_from_clauses(
    box: NDArray[np.float64], slots: NDArray[np.int32], start: NDArray[np.int64], keyword: NDArray[np.int32], n_keywords: int
) -> MessageBatch:
    """Messages with the keywords of a few or many clauses, at the centre of a clause or over its region.

    `box` has the boxes of the clauses at `slots`, in any order; `start` and `keyword` are of all clauses.
    """
    rng = np.random.default_rng(_SEED)
    x0, y0, x1, y1 = box.reshape(-1, 4)[rng.integers(len(slots), size=N_SAMPLES)].T.copy()
    is_point = np.arange(N_SAMPLES) % 2 == 0
    for low, high in ((x0, x1), (y0, y1)):
        low[is_point] = high[is_point] = low[is_point] * 0.5 + high[is_point] * 0.5
    words = []
    for i in range(N_SAMPLES):
        some = slots[rng.integers(len(slots), size=_CLAUSES_OF_A_MESSAGE[i // 2 % 4])]
        words.append(np.unique(np.concatenate([keyword[start[c] : start[c + 1]] for c in some])))
    word_start = np.concatenate([[0], np.cumsum([len(some) for some in words])])
    arrays = MessageArrays(word_start, np.concatenate(words).astype(np.int32), x0, y0, x1, y1)
    return MessageBatch(arrays, np.arange(N_SAMPLES), n_keywords)


def fit_cost(factors: Sequence[NDArray[np.float64]], match: Callable[[NDArray[np.int64]], object]) -> Fit:
    """How the time of a message depends on its factors.

    A plane through the logarithms, fitted to groups of messages that are alike; `match` matches the messages at some rows.
    """
    logs = np.log(np.stack(factors, axis=1))
    groups = [np.arange(len(logs))]
    for column in logs.T:
        # As many parts by each factor as make about `_N_GROUPS` groups in all.
        n_parts = round(_N_GROUPS ** (1 / len(factors)))
        groups = [part for rows in groups for part in np.array_split(rows[np.argsort(column[rows], kind="stable")], n_parts)]
    groups = [rows for rows in groups if len(rows)]
    x = np.stack([logs[rows].mean(axis=0) for rows in groups])
    y = np.log([_microseconds_per_message(match, rows) for rows in groups])
    deviation = x - x.mean(axis=0)
    # A factor that hardly varies says nothing about its exponent, which is then pulled to 1, as in the paper.
    pull = _LEAST_SPREAD * np.eye(len(factors))
    slope = np.linalg.solve(deviation.T @ deviation + pull, deviation.T @ (y - y.mean()) + pull @ np.ones(len(factors)))
    exponent = np.clip(slope, *_EXPONENTS)
    rest = y - y.mean() - (x - x.mean(axis=0)) @ exponent
    return Fit(float(np.exp(y.mean() - exponent @ x.mean(axis=0))), exponent, float(np.sqrt((rest**2).mean())))


def _microseconds_per_message(match: Callable[[NDArray[np.int64]], object], rows: NDArray[np.int64]) -> float:
    """The group is repeated until the fixed cost of a call is negligible."""
    once = microseconds(lambda: match(rows))
    n_times = min(max(int(_LEAST_MICROSECONDS / once), 1), _MOST_REPEATS)
    repeated = np.tile(rows, n_times)
    return microseconds(lambda: match(repeated)) / len(repeated)


def microseconds(run: Callable[[], object]) -> float:
    """The least of a few runs, in time of this thread, without compilation and other work on the machine."""
    fastest = np.inf
    for _ in range(_N_RUNS):
        begin = time.thread_time()
        run()
        fastest = min(fastest, time.thread_time() - begin)
    return max(fastest, 1e-9) * 1e6
