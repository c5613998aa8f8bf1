"""Systems that people use instead of nearcast, each behind the same interface; measured where they are installed.

A module says how its system is set up, has the fastest way to ask it that we know, and says why it cannot run here.
"""

from __future__ import annotations

from benchmarks.peers.duck import DuckCells, DuckRarest
from benchmarks.peers.in_python import Ours, PlainPython, ShapelyTree
from benchmarks.peers.lucene import LuceneMonitor
from benchmarks.peers.opensearch import OpenSearch
from benchmarks.peers.peer import Peer
from benchmarks.peers.postgres import PostgisBoth, PostgisRarest, PostgresCells
from benchmarks.peers.sedona import Sedona

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
