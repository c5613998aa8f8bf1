"""Versions, pins and what is collected."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.errors import StoredFormatError
from nearcast.pipeline.index.version import (
    IndexVersion,
    ShardBase,
    collect_versions,
    current_index,
    leased_index,
    leased_numbers,
    publish_index,
    read_index,
    release_before,
)
from nearcast.pipeline.store import Store, current_version, make_current, needed_version, next_version


def put_in_force(store: Store, number: int, before: int | None) -> IndexVersion:
    store.write_bytes(f"bases/{number:06d}/0-a/data", b"x")
    store.write_bytes(f"routing/{number:06d}/words", b"x")
    version = IndexVersion(number, number, number, 1, 1, "long", (ShardBase(f"bases/{number:06d}/0-a", 1, 1),))
    publish_index(store, version, before)
    return version


def test_a_version_is_in_force_after_one_step_and_numbers_are_never_given_twice(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert current_version(store, "index") is None
    with pytest.raises(StoredFormatError, match="run: nearcast pipeline index"):
        needed_version(store, "index", "index")
    store.write_bytes("bases/000004/half", b"")
    assert next_version(store, ["index", "bases"]) == 5
    first = put_in_force(store, 5, None)
    assert current_index(store) == first == read_index(store, 5)


def test_two_writers_do_not_overwrite_each_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put_in_force(store, 1, None)
    put_in_force(store, 2, 1)
    with pytest.raises(StoredFormatError, match="made to follow 1, but 2 is current now"):
        make_current(store, "index", 3, 1)
    store.write_bytes("index/CURRENT", b"two")
    with pytest.raises(StoredFormatError, match="expected a number of six digits"):
        current_version(store, "index")


def test_a_batch_keeps_the_version_it_pinned(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put_in_force(store, 1, None)
    assert leased_index(store, "s", 7).number == 1
    put_in_force(store, 2, 1)
    assert leased_index(store, "s", 7).number == 1
    assert leased_index(store, "s", 8).number == 2
    release_before(store, "s", 8)
    assert leased_numbers(store) == {2}


def test_versions_that_nobody_pins_are_collected_with_what_only_they_used(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(1, 5):
        put_in_force(store, number, number - 1 or None)
        if number == 2:
            leased_index(store, "s", 0)
    # In the making by somebody else: newer than the one in force.
    store.write_bytes("bases/000005/0-b/data", b"x")
    assert collect_versions(store, keep=1) == [1, 3]
    assert store.names("bases") == ["000002", "000004", "000005"]
    assert store.names("routing") == ["000002", "000004"]
    assert leased_index(store, "s", 0).number == 2
    release_before(store, "s", 1)
    assert collect_versions(store, keep=1) == [2]


def test_a_pin_that_comes_while_a_version_is_collected_saves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    put_in_force(store, 1, None)
    put_in_force(store, 2, 1)
    delete = Store.delete

    def pin_then_delete(self: Store, name: str) -> None:
        delete(self, name)
        if name.endswith("000001/version.json"):
            store.write_bytes("pins/s/0", b"1")

    monkeypatch.setattr(Store, "delete", pin_then_delete)
    assert collect_versions(store, keep=1) == []
    assert leased_index(store, "s", 0).number == 1


def test_a_stream_that_pins_a_version_just_collected_takes_the_one_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    put_in_force(store, 1, None)
    write = Store.write_bytes

    def collect_then_write(self: Store, name: str, content: bytes) -> None:
        if name == "pins/s/0" and content == b"1":
            put_in_force(store, 2, 1)
            collect_versions(store, keep=1)
        write(self, name, content)

    monkeypatch.setattr(Store, "write_bytes", collect_then_write)
    assert leased_index(store, "s", 0).number == 2
    assert leased_numbers(store) == {2}
