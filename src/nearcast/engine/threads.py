"""Many readers or one writer."""

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


class ReadWriteLock:
    """Reads run beside each other; a write waits for them and runs alone. Waiting writers go first."""

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


# -- A batch in pieces, over several threads: kernels release the GIL, so pieces run beside each other; answers come in order.

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


# -- A merge beside the readers: an index brings itself into shape in a thread, and is swapped in between two matches.


class BackgroundMerge:
    """At most one merge at a time. `work` runs beside readers and the writer, `finish` takes its result and takes the lock."""

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
            except BaseException as problem:  # noqa: BLE001 - told to the next who waits, in his own thread
                self._problem = problem

        self._thread = threading.Thread(target=run, name="nearcast-merge", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when no merge is running; raise what the last one ran into."""
        if self._thread is not None:
            self._thread.join()
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem


# -- What takes long is made in a thread, from copies, while messages go on.

Result = TypeVar("Result")


class BackgroundTask(Generic[Result]):
    """Something that is being made."""

    def __init__(self, make: Callable[[], Result]) -> None:
        self._made: Future[Result] = Future()
        threading.Thread(target=self._run, args=(make,), name="nearcast-beside", daemon=True).start()

    def _run(self, make: Callable[[], Result]) -> None:
        try:
            self._made.set_result(make())
        except BaseException as problem:  # noqa: BLE001 - told to who asks for the result, in his own thread
            self._made.set_exception(problem)

    @property
    def is_done(self) -> bool:
        return self._made.done()

    def result(self) -> Result:
        """Waits for it."""
        return self._made.result()
