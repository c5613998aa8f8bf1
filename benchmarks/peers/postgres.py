"""PostgreSQL, with and without PostGIS: subscriptions as rows, each message a query, or a batch of them in one.

Needs a server: `NEARCAST_BENCH_POSTGRES=postgresql://user@host/database`; a schema `nearcast_bench` is made and dropped.
With Debian's packages: `apt install postgresql postgis`, then `pg_ctlcluster 15 main start`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers.peer import N_COLUMNS, Peer, pairs_table, with_cells, with_rarest

_URL = "NEARCAST_BENCH_POSTGRES"
_ROWS = ("id", "keywords", "x0", "y0", "x1", "y1", "rarest")
_ARRIVED = (
    "(SELECT id, x, y, words::int[] AS keywords, "
    f"least(greatest(floor(x * {N_COLUMNS})::int, 0), {N_COLUMNS - 1}) * {N_COLUMNS} "
    f"+ least(greatest(floor(y * {N_COLUMNS})::int, 0), {N_COLUMNS - 1}) AS cell "
    "FROM unnest(%s::int8[], %s::float8[], %s::float8[], %s::text[]) AS given (id, x, y, words))"
)
_IS_MATCH = "m.x BETWEEN s.x0 AND s.x1 AND m.y BETWEEN s.y0 AND s.y1 AND s.keywords <@ m.keywords"


class PostgresCells(Peer):
    """A covering B-tree by rarest keyword and cell, one row for each cell: the fastest way we found, without any extension."""

    columns: tuple[str, ...] = (*_ROWS, "cell")
    extensions: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ("CREATE INDEX ON filed (rarest, cell) INCLUDE (x0, y0, x1, y1, id)",)
    join = "CROSS JOIN LATERAL unnest(m.keywords) w JOIN filed s ON s.rarest = w AND s.cell = m.cell"

    @classmethod
    def missing(cls) -> str | None:
        if not os.environ.get(_URL):
            return f"no PostgreSQL is named: set {_URL}=postgresql://..."
        try:
            import psycopg
        except ImportError:
            return "psycopg is not installed: pip install 'nearcast[postgres]'"
        try:
            with psycopg.connect(os.environ[_URL]) as connection:
                available = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
        except psycopg.Error as error:
            return f"PostgreSQL does not answer: {error}"
        lacking = [name for name in cls.extensions if (name,) not in available]
        return f"this PostgreSQL has no extension {', '.join(lacking)}" if lacking else None

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        import psycopg

        self._database: Any = psycopg.connect(os.environ[_URL], autocommit=True)
        for statement in (
            "DROP SCHEMA IF EXISTS nearcast_bench CASCADE",
            "CREATE SCHEMA nearcast_bench",
            *(f"CREATE EXTENSION IF NOT EXISTS {name}" for name in self.extensions),
            "SET search_path = nearcast_bench, public",
            # One thread, as the others.
            "SET max_parallel_workers_per_gather = 0",
            "CREATE UNLOGGED TABLE filed (id int8, keywords int[], x0 float8, y0 float8, x1 float8, y1 float8, rarest int"
            + (", cell int)" if "cell" in self.columns else ")"),
        ):
            self._database.execute(statement)
        filed = self.filed(with_rarest(subscriptions, history))
        with self._database.cursor().copy(f"COPY filed ({', '.join(self.columns)}) FROM STDIN") as copy:
            for row in zip(*(filed[name].to_pylist() for name in self.columns), strict=True):
                copy.write_row(row)
        for statement in (*self.indexes, "VACUUM ANALYZE filed"):
            self._database.execute(statement)

    def filed(self, subscriptions: pa.Table) -> pa.Table:
        return with_cells(subscriptions)

    def match(self, messages: pa.Table) -> pa.Table:
        words = ["{" + ",".join(map(str, sorted(set(one)))) + "}" for one in messages["keywords"].to_pylist()]
        columns = [messages[name].to_pylist() for name in ("id", "x", "y")]
        sql = f"SELECT m.id, s.id FROM {_ARRIVED} m {self.join} WHERE {_IS_MATCH}"
        rows = self._database.execute(sql, (*columns, words), binary=True).fetchall()
        both = np.array(rows, np.int64).reshape(len(rows), 2)
        return pairs_table(both[:, 0], both[:, 1])

    @property
    def n_bytes(self) -> int:
        return int(self._database.execute("SELECT pg_total_relation_size('filed')").fetchone()[0])

    def close(self) -> None:
        self._database.execute("DROP SCHEMA nearcast_bench CASCADE")
        self._database.close()


class PostgisBoth(PostgresCells):
    """What the manual suggests: GiST on the boxes, GIN on the keywords, and the planner's choice."""

    columns = _ROWS
    extensions: tuple[str, ...] = ("postgis",)
    indexes: tuple[str, ...] = (
        "ALTER TABLE filed ADD COLUMN area geometry",
        "UPDATE filed SET area = ST_MakeEnvelope(x0, y0, x1, y1)",
        "CREATE INDEX ON filed USING gist (area)",
        "CREATE INDEX ON filed USING gin (keywords)",
    )
    join = "JOIN filed s ON s.area && ST_MakePoint(m.x, m.y)"

    def filed(self, subscriptions: pa.Table) -> pa.Table:
        return subscriptions


class PostgisRarest(PostgisBoth):
    """GiST on the rarest keyword and the box together."""

    extensions = ("postgis", "btree_gist")
    indexes = (*PostgisBoth.indexes[:2], "CREATE INDEX ON filed USING gist (rarest, area)")
    join = "CROSS JOIN LATERAL unnest(m.keywords) w JOIN filed s ON s.rarest = w AND s.area && ST_MakePoint(m.x, m.y)"
