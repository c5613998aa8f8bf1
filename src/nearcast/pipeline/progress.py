"""Progress of a running stream: a Spark listener that reports each batch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class StreamNews:
    """A batch that Spark has finished."""

    batch: int
    rows: int
    rows_per_second: float
    batch_seconds: float


# The longest delay of Spark's last report.
_REPORT_TIMEOUT_S = 10.0

OnNews = Callable[[StreamNews], None]


@contextmanager
def watch_stream(session: SparkSession, stream: str, on_news: OnNews) -> Iterator[None]:
    """Call `on_news` for every batch of the stream of that name that runs within the block.

    Spark reports late, so the end of the block waits for the report that the stream has ended: no batch is missed.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener

    running: set[str] = set()
    has_ended = threading.Event()

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            if event.name == stream:
                running.add(str(event.runId))

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            progress = event.progress
            if progress.name == stream:
                on_news(read_news(progress.json))

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            if str(event.runId) in running:
                has_ended.set()

    listener = Listener()
    session.streams.addListener(listener)
    try:
        yield
        has_ended.wait(_REPORT_TIMEOUT_S)
    finally:
        session.streams.removeListener(listener)


def read_news(progress: str) -> StreamNews:
    """The batch in a progress report of Spark (JSON)."""
    facts = json.loads(progress)
    return StreamNews(
        batch=int(facts["batchId"]),
        rows=int(facts["numInputRows"]),
        rows_per_second=float(facts.get("processedRowsPerSecond") or 0.0),
        batch_seconds=float(facts.get("durationMs", {}).get("triggerExecution", 0)) / 1000.0,
    )
