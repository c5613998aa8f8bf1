"""What takes long is made in a thread, from copies, while messages go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

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
