"""Systems that somebody would use instead, each behind the same few calls; measured where they are installed.

One module per system: how it is set up, the best way we know to ask it, and why it cannot run here if it cannot.
"""

from __future__ import annotations

from nearcast.bench.peers.duck import DuckCells, DuckRarest
from nearcast.bench.peers.lucene import LuceneMonitor
from nearcast.bench.peers.opensearch import OpenSearch
from nearcast.bench.peers.ours import Ours
from nearcast.bench.peers.peer import Peer
from nearcast.bench.peers.plain_python import PlainPython
from nearcast.bench.peers.postgres import PostgisBoth, PostgisRarest, PostgresCells
from nearcast.bench.peers.sedona import Sedona
from nearcast.bench.peers.strtree import ShapelyTree

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
