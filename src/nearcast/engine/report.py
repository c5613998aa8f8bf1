"""The report of an engine's last call, kept for each thread."""

from __future__ import annotations

import threading

from nearcast.model.delivery import MatchReport


class LastReport(threading.local):
    """`value` is the report of the last call of this thread: threads that read at the same time do not see each other's."""

    def __init__(self) -> None:
        self.value = MatchReport()
