"""Systems that somebody would use instead, each behind the same few calls; measured where they are installed.

One module per system: how it is set up, the best way we know to ask it, and why it cannot run here if it cannot.
"""

from __future__ import annotations

from benchmarks.peers.duck import DuckCells, DuckRarest
from benchmarks.peers.lucene import LuceneMonitor
from benchmarks.peers.opensearch import OpenSearch
from benchmarks.peers.ours import Ours
from benchmarks.peers.peer import Peer
from benchmarks.peers.plain_python import PlainPython
from benchmarks.peers.postgres import PostgisBoth, PostgisRarest, PostgresCells
from benchmarks.peers.sedona import Sedona
from benchmarks.peers.strtree import ShapelyTree

PEERS: dict[str, type[Peer]] = {
    "nearcast": Ours,
    "postgres_cells": PostgresCells,
    "postgis_both": PostgisBoth,
    "postgis_rarest": PostgisRarest,
    "duckdb_rarest": DuckRarest,
    "duckdb_cells": DuckCells,
    "sedonadb": Sedona,
    "lucene_monitor": LuceneMonitor,
    "opensearch": OpenSearch,
    "shapely_tree": ShapelyTree,
    "plain_python": PlainPython,
}
