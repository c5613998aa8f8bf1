"""Saved folders: whole or not at all, and clear about what is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.columns import folder as folders
from nearcast.errors import StoredFormatError

ARRAYS: dict[str, NDArray[Any]] = {"numbers": np.arange(5), "nothing": np.empty(0, np.int32)}


def test_what_was_written_is_read_by_memory_map(tmp_path: Path) -> None:
    folders.write_folder(tmp_path / "a" / "b", "thing", {"x": 1}, ARRAYS)
    facts, arrays = folders.read_folder(tmp_path / "a" / "b", "thing")
    assert facts == {"x": 1}
    assert {name: array.tolist() for name, array in arrays.items()} == {"numbers": [0, 1, 2, 3, 4], "nothing": []}
    assert type(arrays["numbers"]) is np.ndarray
    # Writable for us, unchanged on disk.
    arrays["numbers"][0] = 9
    assert folders.read_folder(tmp_path / "a" / "b", "thing")[1]["numbers"][0] == 0


def test_saving_again_replaces_the_whole_folder(tmp_path: Path) -> None:
    folders.write_folder(tmp_path / "s", "thing", {"x": 1}, ARRAYS)
    opened = folders.read_folder(tmp_path / "s", "thing")[1]
    folders.write_folder(tmp_path / "s", "thing", {"x": 2}, {"other": np.arange(2)})
    assert folders.read_folder(tmp_path / "s", "thing")[0] == {"x": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    # Whoever opened the old one keeps reading it.
    assert opened["numbers"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("libc", [object(), type("Refusing", (), {"renameat2": staticmethod(lambda *given: -1)})()])
def test_folders_are_replaced_where_they_cannot_trade_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libc: object
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: libc)
    folders.write_folder(tmp_path / "s", "thing", {"x": 1}, ARRAYS)
    folders.write_folder(tmp_path / "s", "thing", {"x": 2}, ARRAYS)
    assert folders.read_folder(tmp_path / "s", "thing")[0] == {"x": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_failed_save_leaves_the_old_folder_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.write_folder(tmp_path / "s", "thing", {"x": 1}, ARRAYS)

    def fail(path: Path, text: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(folders, "_write_text", fail)
    with pytest.raises(OSError, match="disk full"):
        folders.write_folder(tmp_path / "s", "thing", {"x": 2}, ARRAYS)
    assert folders.read_folder(tmp_path / "s", "thing")[0] == {"x": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_folder_may_be_there_if_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    folders.write_folder(tmp_path / "s", "thing", {"x": 1}, ARRAYS)
    assert folders.read_folder(tmp_path / "s", "thing")[0] == {"x": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_folder_that_is_not_ours_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(StoredFormatError, match="not a saved nearcast folder"):
        folders.write_folder(tmp_path / "photos", "thing", {}, ARRAYS)


def test_damaged_folders_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StoredFormatError, match=r"has no manifest\.json"):
        folders.read_folder(tmp_path, "thing")
    place = tmp_path / "s"
    folders.write_folder(place, "thing", {}, ARRAYS)
    with pytest.raises(StoredFormatError, match=f"holds 'thing' of format {folders.FORMAT}; expected 'other'"):
        folders.read_folder(place, "other")
    (place / "numbers.npy").write_bytes((place / "numbers.npy").read_bytes()[:-8])
    with pytest.raises(StoredFormatError, match="cannot be read"):
        folders.read_folder(place, "thing")
    np.save(place / "numbers.npy", np.arange(4))
    with pytest.raises(StoredFormatError, match="does not agree with the manifest"):
        folders.read_folder(place, "thing")
    (place / "manifest.json").write_text("{")
    with pytest.raises(StoredFormatError, match="is damaged"):
        folders.read_folder(place, "thing")
    (place / "manifest.json").write_text(json.dumps({"format": 99, "kind": "thing"}))
    with pytest.raises(StoredFormatError, match="of format 99"):
        folders.read_folder(place, "thing")
