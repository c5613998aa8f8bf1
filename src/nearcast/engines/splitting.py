"""A batch over several threads: rows in slices, answers in order. Kernels release the GIL, so slices run beside each other."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from nearcast.errors import NearcastError

# Fewer rows than this are matched sooner than a thread is woken.
_LEAST_ROWS = 1024

Answer = TypeVar("Answer")


def usable_threads(threads: int | None, n_rows: int) -> int:
    """How many slices are worth it; None asks for as many as there are cores to run on."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise NearcastError(f"threads={threads!r} is not possible; expected a number from 1 on, or None for all cores")
    wanted = _n_cores() if threads is None else threads
    return max(1, min(wanted, n_rows // _LEAST_ROWS))


def split_rows(n_rows: int, n_slices: int) -> list[tuple[int, int]]:
    """Where each slice begins, and how long it is; all are of nearly one length."""
    bounds = [n_rows * number // n_slices for number in range(n_slices + 1)]
    return [(first, last - first) for first, last in pairwise(bounds)]


def run_beside(work: Callable[[int, int], Answer], slices: list[tuple[int, int]]) -> list[Answer]:
    """`work(first, length)` of every slice, the last of them in this thread."""
    with ThreadPoolExecutor(max(1, len(slices) - 1), "nearcast-match") as pool:
        waiting = [pool.submit(work, *part) for part in slices[:-1]]
        last = work(*slices[-1])
        return [*(one.result() for one in waiting), last]


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
