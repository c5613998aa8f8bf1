"""SedonaDB: a spatial join of points with boxes, and keywords compared as lists. Needs `pip install sedonadb`."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from benchmarks.peers.peer import Peer
from nearcast.columns.arrow import numbers

_SQL = (
    "SELECT m.id AS message_id, s.id AS subscription_id FROM (SELECT *, ST_Point(x, y) AS place FROM arrived) m "
    "JOIN filed s ON ST_Intersects(s.area, m.place) WHERE array_has_all(m.keywords, s.keywords)"
)


class Sedona(Peer):
    """A join is planned again each time: batches only."""

    takes_singles = False

    @classmethod
    def missing(cls) -> str | None:
        return None if importlib.util.find_spec("sedonadb") else "SedonaDB is not installed: pip install sedonadb"

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        with warnings.catch_warnings():
            # It warns of libraries for projections and images, which are not needed here.
            warnings.simplefilter("ignore")
            import sedonadb

            self._database: Any = sedonadb.connect()
        bounds = [numbers(subscriptions[name].combine_chunks(), np.float64) for name in ("x0", "y0", "x1", "y1")]
        areas = pa.array(shapely.to_wkb(shapely.box(*bounds)), pa.binary())
        self._view("loaded", subscriptions.select(["id", "keywords"]).append_column("area", areas))
        filed = self._database.sql("SELECT id, keywords, ST_GeomFromWKB(area) AS area FROM loaded").to_memtable()
        filed.to_view("filed", overwrite=True)

    def match(self, messages: pa.Table) -> pa.Table:
        self._view("arrived", messages)
        return pa.table(self._database.sql(_SQL))

    def _view(self, name: str, table: pa.Table) -> None:
        self._database.create_data_frame(table).to_view(name, overwrite=True)
