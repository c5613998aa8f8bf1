"""A batch in pieces, over several threads: kernels release the GIL, so pieces run beside each other; answers come in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

from nearcast.errors import NearcastError

# Fewer rows than this are matched sooner than a thread is woken.
_LEAST_ROWS = 1024
# What one piece writes and reads again should still be in the cache of its core.
_MOST_ROWS = 8192

Answer = TypeVar("Answer")


def usable_threads(threads: int | None, n_rows: int) -> int:
    """How many threads are worth it; None asks for as many as there are cores to run on."""
    wanted = _n_cores() if threads is None else checked_threads(threads, ", or None for all cores")
    return max(1, min(wanted, n_rows // _LEAST_ROWS))


def checked_threads(threads: int, otherwise: str = "") -> int:
    """A number of threads that is possible; `otherwise` is what else may be given."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise NearcastError(f"threads={threads!r} is not possible; expected a number from 1 on{otherwise}")
    return threads


def split_rows(n_rows: int, n_threads: int) -> list[tuple[int, int]]:
    """Where each piece begins, and how long it is: all of nearly one length, as many for each thread."""
    n_rounds = max(1, -(-n_rows // (n_threads * _MOST_ROWS)))
    n_pieces = n_threads * n_rounds
    bounds = [n_rows * number // n_pieces for number in range(n_pieces + 1)]
    return [(first, last - first) for first, last in pairwise(bounds)]


def run_in_threads(work: Callable[[int, int], Answer], pieces: list[tuple[int, int]], n_threads: int) -> list[Answer]:
    """`work(first, length)` of every piece, by this thread and as many helpers as are free; raises what one ran into."""
    waiting, answers = deque(enumerate(pieces)), dict[int, Answer]()

    def take_turns() -> None:
        while waiting:
            try:
                place, piece = waiting.popleft()
            except IndexError:  # another one was faster
                return
            answers[place] = work(*piece)

    helpers = [_helpers(os.getpid()).submit(take_turns) for _ in range(n_threads - 1)]
    try:
        take_turns()
    finally:
        # Who has not begun is not needed any more; who has is waited for.
        problems = [helper.exception() for helper in helpers if not helper.cancel()]
    for problem in problems:
        if problem is not None:
            raise problem
    return [answers[place] for place in range(len(pieces))]


@cache
def _helpers(process: int) -> ThreadPoolExecutor:
    """Threads that stay, with the memory they work in. A forked process has none of its parent's, so it gets its own."""
    return ThreadPoolExecutor(max(1, _n_cores() - 1), "nearcast-match")


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
