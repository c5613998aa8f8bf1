"""What shards tell each other in a batch: small tables in the store, by the shard they are for or from."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from nearcast.pipeline.keeping.arrow_bytes import table_bytes, table_of
from nearcast.pipeline.store import Store

_FLOORS = "floors"


def write_told(store: Store, folder: str, teller: int, told: Mapping[int, pa.Table]) -> None:
    """Leave what a shard tells others; a second try of a task writes the same again."""
    for target, table in told.items():
        store.write_bytes(f"{folder}/{target}/{teller}.arrow", table_bytes(table))


def read_told(store: Store, folder: str, target: int) -> list[pa.Table]:
    """What all shards told one, in the order of their numbers."""
    return _tables(store, f"{folder}/{target}")


def write_floors(store: Store, folder: str, shard: int, floors: pa.Table) -> None:
    store.write_bytes(f"{folder}/{_FLOORS}/{shard}.arrow", table_bytes(floors))


def read_floors(store: Store, folder: str) -> list[pa.Table]:
    """The new floors of a batch, of all shards."""
    return _tables(store, f"{folder}/{_FLOORS}")


def _tables(store: Store, folder: str) -> list[pa.Table]:
    names = sorted(store.names(folder), key=lambda name: int(name.split(".")[0]))
    return [table_of(store.read_bytes(f"{folder}/{name}")) for name in names]
