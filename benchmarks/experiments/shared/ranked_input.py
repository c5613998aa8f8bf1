"""The input of a ranked stream: who subscribes, what arrives batch by batch, and the rules. It is the same for every method.

The window is filled before the subscriptions come: filing them into a full window takes a fraction of the time that it takes to
raise all thresholds from zero, message by message.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.plan import Size
from nearcast.columns.messages import keyword_sets_of
from nearcast.errors import NearcastError
from nearcast.model.normalise import Keyword
from nearcast.model.window import CountWindow
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.ranked.engine import Ranker
from nearcast.workloads import Workload

_FILED_AT_ONCE = 100_000


def ranked_subscriptions(workload: Workload, n: int, seed: int) -> pa.Table:
    """The subscriptions of a workload as ranked ones: at the middle of their boxes, with random weights of nearness."""
    boxes = workload.subscriptions(n, seed)
    x0, y0, x1, y1 = (boxes[name].to_numpy() for name in ("x0", "y0", "x1", "y1"))
    weight = np.random.default_rng([seed, 1]).uniform(0.0, 1.0, boxes.num_rows)
    locations = {"x": (x0 + x1) / 2, "y": (y0 + y1) / 2, "spatial_weight": weight}
    return pa.table({"id": boxes["id"], "keywords": boxes["keywords"], **locations})


def document_frequencies(messages: pa.Table) -> dict[Keyword, int]:
    """The number of messages that contain each keyword; keywords are numbers."""
    lists = messages["keywords"].combine_chunks()
    _, words = keyword_sets_of(lists.offsets.to_numpy().astype(np.int64), np.array(lists.flatten(), np.int32))
    counts = np.bincount(words)
    known = np.flatnonzero(counts)
    return dict(zip(known.tolist(), counts[known].tolist(), strict=True))


class RankedInput:
    """`n_messages` of a size arrive in every batch, the window is `life` batches long, `repetitions` batches are measured."""

    def __init__(self, workload: Workload, size: Size, seed: int, k: int = 20) -> None:
        self.size = size
        self.workload_facts = workload.describe()
        self.space = workload.space
        n_batches = size.life + size.warm_steps + size.repetitions
        numbered = workload.messages(size.n_messages * n_batches, seed).select(["id", "keywords", "x", "y"])
        self._messages = workload.with_words(numbered)
        subscriptions = ranked_subscriptions(workload, size.n_subscriptions, seed)
        lengths = pa.array(np.full(subscriptions.num_rows, k, np.int32))
        self.subscriptions = workload.with_words(subscriptions).append_column("k", lengths).combine_chunks()
        self.window_messages = size.n_messages * size.life
        self.first_window = self._messages.slice(0, self.window_messages)
        frequencies = document_frequencies(numbered.slice(0, self.window_messages))
        self.idf: dict[Keyword, int] = {workload.words[number].as_py(): n for number, n in frequencies.items()}
        spans = [np.ptp(self._messages[axis].to_numpy()) for axis in ("x", "y")]
        self.max_distance = float(np.hypot(*spans)) if self.space == "plane" else 0.0

    @property
    def engine_settings(self) -> dict[str, Any]:
        """The arguments that a `Ranker` is made with."""
        return {
            "window": CountWindow(self.window_messages),
            "space": self.space,
            "max_distance": self.max_distance or None,
            "idf": self.idf,
            "n_documents": self.window_messages,
        }

    def opening(self) -> list[RankedBatch]:
        """The batches that fill the window, then those that bring the subscriptions."""
        return [self.batch_of(self.subscriptions.slice(0, 0), self.first_window), *self.filing(0)]

    def filing(self, first: int) -> list[RankedBatch]:
        """The batches that bring the subscriptions from row `first` on."""
        starts = range(first, self.subscriptions.num_rows, _FILED_AT_ONCE)
        return [self.batch_of(self.subscriptions.slice(start, _FILED_AT_ONCE), self._messages.slice(0, 0)) for start in starts]

    def batch(self, number: int) -> RankedBatch:
        """Batch `number` after the opening: first the `warm_steps`, then those that are measured."""
        first = self.window_messages + number * self.size.n_messages
        return self.batch_of(self.subscriptions.slice(0, 0), self._messages.slice(first, self.size.n_messages))

    def batch_of(self, put: pa.Table, messages: pa.Table) -> RankedBatch:
        return RankedBatch.of(put, pa.array([], pa.int64()), messages.combine_chunks())


def reference_changes(ranker: Ranker, batch: RankedBatch) -> pa.Table:
    """The changes that one process reports for a batch of subscriptions or of messages, but not of both."""
    changes = ranker.subscribe_table(batch.put) if batch.put.num_rows else ranker.publish_table(batch.messages)
    check_usable(ranker)
    return changes


def check_usable(ranker: Ranker) -> None:
    """NearcastError if the last call rejected a row."""
    rejected = ranker.report.rejected
    if rejected:
        row, reason = rejected[0]
        raise NearcastError(f"{len(rejected)} generated rows were rejected; the first, row {row}: {reason}")
