"""An engine that has the lists of its subscriptions and the whole window, and is told by others what arrives for them.

Paper: none: Skype's copies of a subscription each keep a list, and see only some of its messages. One owner sees all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.pipeline.ranked.reported_index import ReportedIndex, reported_rows
from nearcast.ranked.engine import Ranker
from nearcast.ranked.index import RankedIndex
from nearcast.ranked.reading import ArrivingRows, reject_duplicate_ids
from nearcast.ranked.subscriptions import table_of_subscriptions
from nearcast.ranked.tick_engine import RankedEngine

FLOOR = "floor"


class Owner(Ranker):
    """A `Ranker` whose messages are found elsewhere."""

    index_class = ReportedIndex

    def _make_index(self, name: str, parameters: Mapping[str, Any]) -> RankedIndex:
        self._reported: pa.Table = reported_rows([])
        self._index = self.index_class()
        return self._index

    def begin(self, number: int, known: int) -> None:
        """A batch begins, whose reports are made with the floors of batch `known`."""
        self._index.begin(number, known)

    def publish_reported(self, messages: pa.Table, told: Sequence[pa.Table]) -> pa.Table:
        """As `publish_table`, with what others found for these messages."""
        self._reported = reported_rows(told)
        return self.publish_table(messages)

    def _arrive(self, read: ArrivingRows) -> pa.Table:
        # Now already: which rows make a tick decides what reports are about.
        reject_duplicate_ids(read, self._window, self._engine)
        numbers = self._ids.find(self._reported["subscription_id"].combine_chunks())
        is_here = np.asarray(self._engine.are_alive(numbers))
        rows, scores = (self._reported[name].to_numpy()[is_here] for name in ("row", "score"))
        self._index.expect(self.tick + 1, read.row, (rows, numbers[is_here], scores))
        return super()._arrive(read)

    def new_floors(self) -> pa.Table:
        """The subscriptions whose floors changed since the last time, as others need them: with their words and place."""
        ranking = self._engine.shards[0]
        numbers = self._index.take_changed(ranking.subscriptions)
        table = table_of_subscriptions(ranking.subscriptions, numbers, self._ids.take(numbers), self._keywords)
        return table.append_column(FLOOR, pa.array(self._floors(ranking, numbers)))

    def _floors(self, ranking: RankedEngine, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
        return ranking.buffers.threshold[numbers]
