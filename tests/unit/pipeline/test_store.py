"""The store on a local disk: whole files, moved folders, links, travelling addresses."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from nearcast.errors import StoredFormatError
from nearcast.pipeline.store import Store


def test_files_are_replaced_as_a_whole_and_listed_when_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_bytes("a/one", b"1")
    store.write_bytes("a/one", b"2")
    (tmp_path / "a" / ".half").write_bytes(b"")
    assert store.read_bytes("a/one") == b"2"
    assert store.names("a") == ["one"]
    assert store.names("nowhere") == []
    store.delete("a")
    store.delete("a")
    assert not store.exists("a/one")


def test_json_that_is_missing_or_damaged_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(StoredFormatError, match="does not exist"):
        store.read_json("facts.json")
    store.write_bytes("facts.json", b"{")
    with pytest.raises(StoredFormatError, match="is damaged"):
        store.read_json("facts.json")


def test_a_new_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(ZeroDivisionError), store.new_folder("shards/0"):
        _ = 1 / 0
    assert not store.exists("shards/0")
    with store.new_folder("shards/0") as folder:
        folder.mkdir()
        (folder / "data").write_text("x")
    assert store.names("shards") == ["0"]
    assert store.read_bytes("shards/0/data") == b"x"


def test_fetching_on_one_disk_links_instead_of_copying(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.write_bytes("shard/deep/data", b"x")
    store.fetch_folder("shard", tmp_path / "host")
    fetched = tmp_path / "host" / "deep" / "data"
    assert fetched.stat().st_ino == (tmp_path / "store" / "shard" / "deep" / "data").stat().st_ino


def test_a_store_travels_and_reads_file_addresses(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    store.write_table("t/a.parquet", pa.table({"a": [1]}))
    moved = pickle.loads(pickle.dumps(store))
    moved.move("t", "u/t")
    assert Store(tmp_path).read_table("u/t").to_pydict() == {"a": [1]}
    assert moved.address("u", "t") == f"file://{tmp_path}/u/t"
