"""How times are taken: best per chunk over several passes, the whole stream before any repetition.

A stream larger than the cache leaves no chunk warm by itself; what other processes steal falls out with the best of several.
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

# Another process may be compiling all the time; then its kernels are not ours.
_MOST_TRIES = 3

Chunk = TypeVar("Chunk")
Answer = TypeVar("Answer")


def timed(work: Callable[[], Answer]) -> tuple[float, Answer]:
    """Seconds and result; taken again if a kernel was compiled meanwhile, so that no number holds compile time."""
    for _ in range(_MOST_TRIES):
        n_before = n_cached_kernels()
        with _collector_off():
            start = time.perf_counter()
            answer = work()
            seconds = time.perf_counter() - start
        if n_cached_kernels() == n_before:
            break
    return seconds, answer


def time_passes(
    chunks: Sequence[Chunk],
    work: Callable[[Chunk], Any],
    n_passes: int,
    prepare: Callable[[Chunk], Any] = lambda chunk: chunk,
) -> NDArray[np.float64]:
    """Seconds of `work(prepare(chunk))` without `prepare`: float64[n_passes, n_chunks]."""
    seconds = np.empty((n_passes, len(chunks)))
    for number in range(n_passes):
        for _ in range(_MOST_TRIES):
            n_before = n_cached_kernels()
            seconds[number] = time_once(chunks, work, prepare)
            if n_cached_kernels() == n_before:
                break
    return seconds


def time_once(
    chunks: Sequence[Chunk], work: Callable[[Chunk], Any], prepare: Callable[[Chunk], Any] = lambda chunk: chunk
) -> NDArray[np.float64]:
    """As one pass of `time_passes`, for work that changes something and cannot be repeated: float64[n_chunks]."""
    seconds = np.empty(len(chunks))
    with _collector_off():
        for position, chunk in enumerate(chunks):
            prepared = prepare(chunk)
            start = time.perf_counter()
            work(prepared)
            seconds[position] = time.perf_counter() - start
    return seconds


def in_chunks(table: pa.Table, size: int) -> list[pa.Table]:
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
