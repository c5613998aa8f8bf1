"""A folder of arrays: one `.npy` file each and a manifest, opened by memory map. It is written to a temporary folder, then
moved."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import StoredFormatError

MANIFEST = "manifest.json"
FORMAT = 12
# From <fcntl.h> and <linux/fs.h>.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def write_folder(folder: str | Path, kind: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Save arrays and facts; replaces a saved folder or an empty one. Readers see either the old folder or the new one."""
    target = Path(folder)
    if target.exists() and not (target / MANIFEST).is_file() and not _is_empty(target):
        raise StoredFormatError(f"{str(target)!r} exists and is not a saved nearcast folder; choose another folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    temporary.mkdir()
    try:
        lengths = {}
        for name, array in arrays.items():
            _write_array(temporary / f"{name}.npy", array)
            lengths[name] = [str(array.dtype), len(array)]
        manifest = {"format": FORMAT, "kind": kind, "facts": dict(facts), "arrays": lengths}
        _write_text(temporary / MANIFEST, json.dumps(manifest, indent=1))
        _sync(temporary)
        _replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_folder(folder: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts and the arrays (memory-mapped, copy on write) of a saved folder."""
    source = Path(folder)
    try:
        manifest = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoredFormatError(f"{str(source)!r} is not a saved nearcast folder: it has no {MANIFEST}") from None
    except ValueError as error:
        raise StoredFormatError(f"{str(source / MANIFEST)!r} is damaged ({error}); build the folder again") from None
    if manifest.get("format") != FORMAT or manifest.get("kind") != kind:
        content = f"{manifest.get('kind')!r} of format {manifest.get('format')!r}"
        raise StoredFormatError(f"{str(source)!r} holds {content}; expected {kind!r} of format {FORMAT}; build it again")
    arrays = {name: _open_array(source / f"{name}.npy", *shape) for name, shape in manifest["arrays"].items()}
    return manifest["facts"], arrays


def _open_array(path: Path, dtype: str, length: int) -> NDArray[Any]:
    try:
        if length == 0:
            return np.empty(0, dtype)
        # "c": a private writable map, so that kernels see the type they were compiled for. A plain array, not np.memmap.
        array: NDArray[Any] = np.load(path, mmap_mode="c").view(np.ndarray)
    except (OSError, ValueError) as error:
        raise StoredFormatError(f"{str(path)!r} cannot be read ({error}); build the folder again") from None
    if str(array.dtype) != dtype or len(array) != length:
        raise StoredFormatError(f"{str(path)!r} does not agree with the manifest; build the folder again")
    return array


def _write_array(path: Path, array: NDArray[Any]) -> None:
    with open(path, "wb") as file:
        np.save(file, np.ascontiguousarray(array))
        file.flush()
        os.fsync(file.fileno())


def _write_text(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(temporary: Path, target: Path) -> None:
    if not target.exists():
        os.rename(temporary, target)
    elif not _exchange(temporary, target):
        # Without an exchange in one step, the old folder moves away before the new one moves in: for a moment there is none.
        old = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        os.rename(target, old)
        os.rename(temporary, target)
        shutil.rmtree(old, ignore_errors=True)
    _sync(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step (Linux): after a crash there is either the old one or the new one."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def joined_parts(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The arrays of several parts in one folder, as `part.name`."""
    return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}


def split_parts(arrays: Mapping[str, NDArray[Any]], names: Iterable[str]) -> dict[str, dict[str, NDArray[Any]]]:
    """The parts with these names, from arrays that `joined_parts` joined."""
    return {
        part: {key[len(part) + 1 :]: array for key, array in arrays.items() if key.startswith(f"{part}.")} for part in names
    }
