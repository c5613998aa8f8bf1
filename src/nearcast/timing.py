"""How times are measured: several passes over the whole stream, then the best time of each chunk.

Between two passes over a stream larger than the cache no chunk stays warm. The best of several passes excludes the time
that other processes took.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.machine import n_cached_kernels

# Another process may compile all the time; its kernels do not matter here.
_MAX_TRIES = 3

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds and result. Repeated if a kernel was compiled meanwhile, so that no time includes compilation."""
    for _ in range(_MAX_TRIES):
        n_before = n_cached_kernels()
        with _collector_off():
            start = time.perf_counter()
            result = work()
            seconds = time.perf_counter() - start
        if n_cached_kernels() == n_before:
            break
    return seconds, result


def time_passes(
    chunks: Sequence[Chunk],
    work: Callable[[Chunk], Any],
    n_passes: int,
    prepare: Callable[[Chunk], Any] = lambda chunk: chunk,
) -> NDArray[np.float64]:
    """Seconds of `work(prepare(chunk))` without `prepare`: float64[n_passes, n_chunks]."""
    seconds = np.empty((n_passes, len(chunks)))
    for number in range(n_passes):
        for _ in range(_MAX_TRIES):
            n_before = n_cached_kernels()
            seconds[number] = time_once(chunks, work, prepare)
            if n_cached_kernels() == n_before:
                break
    return seconds


def time_once(
    chunks: Sequence[Chunk], work: Callable[[Chunk], Any], prepare: Callable[[Chunk], Any] = lambda chunk: chunk
) -> NDArray[np.float64]:
    """One pass of `time_passes`, for work that changes something and cannot be repeated: float64[n_chunks]."""
    seconds = np.empty(len(chunks))
    with _collector_off():
        for position, chunk in enumerate(chunks):
            prepared = prepare(chunk)
            start = time.perf_counter()
            work(prepared)
            seconds[position] = time.perf_counter() - start
    return seconds


def in_chunks(table: pa.Table, size: int) -> list[pa.Table]:
    """The table in slices of `size` rows."""
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


@contextmanager
def _collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
