"""Small ranked streams: batches of changed subscriptions and messages, with many ties, and the changes of one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.model.analysis import Analysis
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.sample import ranked_subscriptions
from nearcast.ranked.engine import Ranker
from nearcast.workloads import sample_messages

WORDS = [f"w{number}" for number in range(12)]
_COLUMNS = ("tick", "subscription_id", "message_id", "change", "score")
Change = tuple[int, object, object, int, float]


class StreamMaker:
    """Batches of one seed. Locations are on a coarse grid and words are few, so that scores are often equal."""

    def __init__(self, seed: int, n_subscriptions: int = 40, most_messages: int = 30) -> None:
        self._draw = np.random.default_rng(seed)
        self._n, self._most = n_subscriptions, most_messages
        self._n_messages = 0

    def batches(self, n: int) -> Iterator[RankedBatch]:
        """The first batch brings all subscriptions; later ones replace, add and forget some."""
        for number in range(n):
            yield self.batch(is_first=number == 0)

    def batch(self, is_first: bool) -> RankedBatch:
        draw, most = self._draw, self._n * 3 // 2
        ids = np.arange(self._n) if is_first else draw.choice(most, int(draw.integers(0, self._n // 3)), False)
        gone = [] if is_first else np.setdiff1d(draw.choice(most, self._n // 8, False), ids).tolist()
        return RankedBatch.of(self._subscriptions(ids), pa.array(gone, pa.int64()), self._messages())

    def _subscriptions(self, ids: Any) -> pa.Table:
        n, draw = len(ids), self._draw
        lists = [draw.choice(WORDS, int(draw.integers(1, 5)), False).tolist() for _ in range(n)]
        x, y = np.round(draw.uniform(0, 10, (2, n)))
        ranking = {"k": pa.array(draw.integers(1, 4, n), pa.int32()), "spatial_weight": draw.choice([0.0, 0.3, 0.5, 1.0], n)}
        columns = {"id": pa.array(ids, pa.int64()), "keywords": pa.array(lists, pa.list_(pa.string()))}
        return pa.table({**columns, "x": x, "y": y, **ranking})

    def _messages(self) -> pa.Table:
        n, draw, first = int(self._draw.integers(0, self._most)), self._draw, self._n_messages
        self._n_messages += n
        lists = [draw.choice(WORDS, int(draw.integers(1, 5))).tolist() for _ in range(n)]
        x, y = np.round(draw.uniform(0, 10, (2, n)))
        # Some are late, some have the same time as others.
        time = np.sort(np.round(draw.uniform(first - 5, first + n, n)))
        columns = {"id": pa.array(range(first, first + n), pa.int64()), "keywords": pa.array(lists, pa.list_(pa.string()))}
        return pa.table({**columns, "x": x, "y": y, "time": time})


def incident_batches(n: int, n_messages: int) -> Iterator[RankedBatch]:
    """`n` batches of the bundled incidents by time; all subscriptions are in the first batch, later ones remove some."""
    words = Analysis().words
    sample = sample_messages().slice(0, n * n_messages).sort_by("time")
    lists = pa.array([words(text) for text in sample["text"].to_pylist()], pa.list_(pa.string()))
    messages = sample.select(["id"]).append_column("keywords", lists)
    for name in ("x", "y", "time"):
        messages = messages.append_column(name, sample[name])
    people = ranked_subscriptions()
    for number in range(n):
        put = people if number == 0 else people.slice(number, 50)
        leaving = people["id"].combine_chunks().slice(200 * number, 20 if number else 0)
        yield RankedBatch.of(put, leaving, messages.slice(number * n_messages, n_messages))


def changes_of(ranker: Ranker, batch: RankedBatch) -> list[Change]:
    """The changes that one process reports for a batch."""
    ranker.unsubscribe(batch.removed.to_pylist())
    return sorted(rows_of(ranker.subscribe_table(batch.put)) + rows_of(ranker.publish_table(batch.messages)))


def rows_of(changes: pa.Table) -> list[Change]:
    return list(zip(*(changes[name].to_pylist() for name in _COLUMNS), strict=True))


def as_changes(batch: RankedBatch) -> pa.Table:
    """The subscriptions of a batch as rows of a source of changes."""
    put = batch.put.append_column("change", pa.array([1] * batch.put.num_rows, pa.int8()))
    removed: Mapping[str, Any] = {"id": batch.removed, "change": pa.array([-1] * len(batch.removed), pa.int8())}
    return pa.concat_tables([put, pa.table(removed)], promote_options="default")
