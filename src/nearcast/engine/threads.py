"""How calls of an engine share threads: one writer or many readers, a batch split over threads, work in the background."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, Generic, TypeVar

from nearcast.errors import NearcastError

Result = TypeVar("Result")

# With fewer rows than this, matching takes less time than waking a thread.
_LEAST_ROWS = 1024
# What a thread writes and reads again should still be in the cache of its core.
_MOST_ROWS = 8192


class ReadWriteLock:
    """Reads run at the same time; a write waits for them and runs alone. Waiting writers go first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._n_readers = 0
        self._n_waiting_writers = 0
        self._is_writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._condition:
            while self._is_writing or self._n_waiting_writers:
                self._condition.wait()
            self._n_readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._n_readers -= 1
                self._condition.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._condition:
            self._n_waiting_writers += 1
            while self._is_writing or self._n_readers:
                self._condition.wait()
            self._n_waiting_writers -= 1
            self._is_writing = True
        try:
            yield
        finally:
            with self._condition:
                self._is_writing = False
                self._condition.notify_all()


# --- a batch split over threads: kernels release the GIL, so parts run at the same time ----------------------------------


def usable_threads(threads: int | None, n_rows: int) -> int:
    """How many threads to use for a batch; None asks for as many as there are cores."""
    limit = _n_cores() if threads is None else checked_threads(threads, ", or None for all cores")
    return max(1, min(limit, n_rows // _LEAST_ROWS))


def checked_threads(threads: int, otherwise: str = "") -> int:
    """The number of threads, or NearcastError; `otherwise` names what else may be given."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise NearcastError(f"threads={threads!r} is not possible; expected a number from 1 on{otherwise}")
    return threads


def split_rows(n_rows: int, n_threads: int) -> list[tuple[int, int]]:
    """The first row and the length of each part: all of nearly the same length, the same number for each thread."""
    n_rounds = max(1, -(-n_rows // (n_threads * _MOST_ROWS)))
    n_parts = n_threads * n_rounds
    bounds = [n_rows * number // n_parts for number in range(n_parts + 1)]
    return [(first, last - first) for first, last in pairwise(bounds)]


def run_in_threads(work: Callable[[int, int], Result], parts: list[tuple[int, int]], n_threads: int) -> list[Result]:
    """The results of `work(first, length)` for each part, in order; this thread works too. An error in a helper is raised."""
    waiting, results = deque(enumerate(parts)), dict[int, Result]()

    def take_turns() -> None:
        while waiting:
            try:
                number, part = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            results[number] = work(*part)

    helpers = [_helpers(os.getpid()).submit(take_turns) for _ in range(n_threads - 1)]
    try:
        take_turns()
    finally:
        # Helpers that have not begun are not needed any more.
        problems = [helper.exception() for helper in helpers if not helper.cancel()]
    for problem in problems:
        if problem is not None:
            raise problem
    return [results[number] for number in range(len(parts))]


@cache
def _helpers(process: int) -> ThreadPoolExecutor:
    """Threads that stay, with the memory they work in. A forked process has no threads of its parent, so it gets its own."""
    return ThreadPoolExecutor(max(1, _n_cores() - 1), "nearcast-match")


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- work in the background ----------------------------------------------------------------------------------------------


class BackgroundMerge:
    """Rebuilds an index in a thread while matching goes on; at most one merge at a time.

    `work` runs at the same time as readers and the writer; `finish` takes the lock and swaps its result in between two matches.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], Any], finish: Callable[[Any], None]) -> None:
        def run() -> None:
            try:
                finish(work())
            except BaseException as problem:  # noqa: BLE001 - raised in the next thread that waits
                self._problem = problem

        self._thread = threading.Thread(target=run, name="nearcast-merge", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when no merge is running; raise the error of the last one."""
        if self._thread is not None:
            self._thread.join()
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem


class BackgroundTask(Generic[Result]):
    """A value that a thread computes from copies while messages go on."""

    def __init__(self, make: Callable[[], Result]) -> None:
        self._future: Future[Result] = Future()
        threading.Thread(target=self._run, args=(make,), name="nearcast-background", daemon=True).start()

    def _run(self, make: Callable[[], Result]) -> None:
        try:
            self._future.set_result(make())
        except BaseException as problem:  # noqa: BLE001 - raised in the thread that asks for the result
            self._future.set_exception(problem)

    @property
    def is_done(self) -> bool:
        return self._future.done()

    def result(self) -> Result:
        """Wait for the value."""
        return self._future.result()
