"""Many readers or one writer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
