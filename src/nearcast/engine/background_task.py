"""A merge beside the readers: an index brings itself into shape in a thread, and is swapped in between two matches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


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
