"""DuckDB: subscriptions as a table in memory, a batch of messages joined to it. Needs `pip install duckdb`."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers.peer import Peer, cell_of, with_cells, with_rarest
from nearcast.columns.arrow import numbers

_IS_MATCH = "m.x BETWEEN s.x0 AND s.x1 AND m.y BETWEEN s.y0 AND s.y1 AND list_has_all(m.keywords, s.keywords)"


class DuckRarest(Peer):
    """Each keyword of a message joined with the rarest of a subscription. A join is planned again each time: batches only."""

    takes_singles = False

    @classmethod
    def missing(cls) -> str | None:
        return None if importlib.util.find_spec("duckdb") else "DuckDB is not installed: pip install duckdb"

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        import duckdb

        self._database: Any = duckdb.connect(":memory:")
        self._database.register("loaded", self._filed(with_rarest(subscriptions, history)))
        self._database.execute("CREATE TABLE filed AS SELECT * FROM loaded")
        self._database.unregister("loaded")

    def match(self, messages: pa.Table) -> pa.Table:
        self._database.register("arrived", self._placed(messages))
        sql = (
            "SELECT m.id AS message_id, s.id AS subscription_id "
            "FROM (SELECT *, unnest(list_distinct(keywords)) AS word FROM arrived) m "
            f"JOIN filed s ON m.word = s.rarest {self._same_place} WHERE {_IS_MATCH}"
        )
        pairs = self._database.sql(sql).to_arrow_table()
        self._database.unregister("arrived")
        return pairs

    _same_place = ""

    def _filed(self, subscriptions: pa.Table) -> pa.Table:
        return subscriptions

    def _placed(self, messages: pa.Table) -> pa.Table:
        return messages

    def close(self) -> None:
        self._database.close()


class DuckCells(DuckRarest):
    """Joined by cell as well; a subscription has a row for each cell it meets."""

    _same_place = "AND m.cell = s.cell"

    def _filed(self, subscriptions: pa.Table) -> pa.Table:
        return with_cells(subscriptions)

    def _placed(self, messages: pa.Table) -> pa.Table:
        cells = cell_of(*(numbers(messages[name].combine_chunks(), np.float64) for name in ("x", "y")))
        return messages.append_column("cell", pa.array(cells))
