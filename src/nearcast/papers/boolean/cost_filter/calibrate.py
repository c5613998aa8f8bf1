"""Time sample messages in both structures, so that estimates of either can be compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays

N_SAMPLES = 200
_N_GROUPS = 16
_N_RUNS = 3
_LEAST_MICROSECONDS = 2000.0
_MOST_REPEATS = 20
_SEED = 2015
# Noise must not turn more steps into less time.
_EXPONENTS = (0.0, 1.2)
_LEAST_SPREAD = 0.5
# Paper: short messages have 6-20 words, long ones 100-1000. Here: the words of so many clauses, at a point or over a region.
_CLAUSES_OF_A_MESSAGE = (3, 8, 40, 200)


class Fit(NamedTuple):
    """A message takes about unit_cost * factor ** exponent * … microseconds, give or take the factor exp(error)."""

    unit_cost: float
    exponent: NDArray[np.float64]
    error: float


def sample_of(history: MessageBatch) -> MessageBatch:
    """Messages of a history, spread evenly over it."""
    rows = np.unique(np.linspace(0, len(history) - 1, min(N_SAMPLES, len(history))).astype(np.int64))
    arrays = history.arrays
    start, keyword = take_lists(arrays.keyword_start, arrays.keyword, rows)
    sides = (side[rows] for side in arrays[2:])
    return MessageBatch(MessageArrays(start, keyword, *sides), np.arange(len(rows)), history.n_keywords)


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
        # So many parts by each factor that there are about as many groups in all.
        n_parts = round(_N_GROUPS ** (1 / len(factors)))
        groups = [part for rows in groups for part in np.array_split(rows[np.argsort(column[rows], kind="stable")], n_parts)]
    groups = [rows for rows in groups if len(rows)]
    x = np.stack([logs[rows].mean(axis=0) for rows in groups])
    y = np.log([_microseconds_per_message(match, rows) for rows in groups])
    spread = x - x.mean(axis=0)
    # A factor that hardly varies tells nothing about its exponent: it is drawn to 1, as in the paper.
    pull = _LEAST_SPREAD * np.eye(len(factors))
    slope = np.linalg.solve(spread.T @ spread + pull, spread.T @ (y - y.mean()) + pull @ np.ones(len(factors)))
    exponent = np.clip(slope, *_EXPONENTS)
    rest = y - y.mean() - (x - x.mean(axis=0)) @ exponent
    return Fit(float(np.exp(y.mean() - exponent @ x.mean(axis=0))), exponent, float(np.sqrt((rest**2).mean())))


def _microseconds_per_message(match: Callable[[NDArray[np.int64]], object], rows: NDArray[np.int64]) -> float:
    """The group is repeated until what a call costs of its own does not count."""
    once = microseconds(lambda: match(rows))
    n_times = min(max(int(_LEAST_MICROSECONDS / once), 1), _MOST_REPEATS)
    repeated = np.tile(rows, n_times)
    return microseconds(lambda: match(repeated)) / len(repeated)


def microseconds(run: Callable[[], object]) -> float:
    """The least of a few runs, in time of this thread, so that compiling and other work on the machine do not count."""
    fastest = np.inf
    for _ in range(_N_RUNS):
        begin = time.thread_time()
        run()
        fastest = min(fastest, time.thread_time() - begin)
    return max(fastest, 1e-9) * 1e6
