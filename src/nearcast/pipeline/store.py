"""The store: a folder on any file system that driver and executors reach (a path, `hdfs://`, `s3://`, `gs://`).

Everything except the pointers (`CURRENT`, leases) is written once and never changes, so copies stay correct. A numbered version
is written under its number first; then `CURRENT` is replaced in one step.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from nearcast.errors import StoredFormatError

_IDENTITY = "IDENTITY"
FILLING_PREFIX = ".nearcast-new-"
"""Prefix of temporary folders that a process is filling; the number of the process follows."""


class Store:
    """Reads and writes below `root`. Paths are relative, with slashes. Pickled as its address."""

    def __init__(self, root: str | Path) -> None:
        address = str(root)
        self.root = address if "://" in address else str(Path(address).resolve())
        self._opened: tuple[pafs.FileSystem, str] | None = None
        self._identity = ""

    def __getstate__(self) -> str:
        return self.root

    def __setstate__(self, state: str) -> None:
        self.root, self._opened, self._identity = state, None, ""

    @property
    def identity(self) -> str:
        """A unique name of this store. A new store at the same address has another, so old copies are not mistaken for its."""
        if not self._identity:
            if not self.exists(_IDENTITY):
                self.write_bytes(_IDENTITY, uuid.uuid4().hex.encode())
            self._identity = self.read_bytes(_IDENTITY).decode()
        return self._identity

    def __repr__(self) -> str:
        return f"Store({self.root!r})"

    @property
    def _files(self) -> tuple[pafs.FileSystem, str]:
        if self._opened is None:
            self._opened = pafs.FileSystem.from_uri(self.root)
        return self._opened

    @property
    def is_local(self) -> bool:
        return isinstance(self._files[0], pafs.LocalFileSystem)

    def path(self, *names: str) -> str:
        """The full path on the file system of the address."""
        return posixpath.join(self._files[1], *names)

    def address(self, *names: str) -> str:
        """The full path as Spark reads it."""
        return posixpath.join(self.root, *names)

    # --- small files -------------------------------------------------------------------------------------------------

    def exists(self, name: str) -> bool:
        return bool(self._files[0].get_file_info(self.path(name)).type != pafs.FileType.NotFound)

    def size(self, name: str) -> int:
        """The size of a file in bytes."""
        return int(self._files[0].get_file_info(self.path(name)).size)

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted, without files that are being written; empty if there is no such folder."""
        selector = pafs.FileSelector(self.path(folder), allow_not_found=True)
        names = [info.base_name for info in self._files[0].get_file_info(selector)]
        return sorted(name for name in names if not name.startswith("."))

    def read_bytes(self, name: str) -> bytes:
        with self._files[0].open_input_stream(self.path(name)) as stream:
            return bytes(stream.read())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Replace a file. Readers see the old one or the new one, as far as the file system allows."""
        files, target = self._files[0], self.path(name)
        files.create_dir(posixpath.dirname(target), recursive=True)
        # An object store shows only complete files, and has no cheap move.
        partial = f"{posixpath.dirname(target)}/.{uuid.uuid4().hex}" if self.is_local else target
        with files.open_output_stream(partial) as stream:
            stream.write(content)
        if partial != target:
            os.replace(partial, target)

    def read_json(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self.read_bytes(name))
        except FileNotFoundError:
            raise StoredFormatError(f"{self.address(name)!r} does not exist; run the step that writes it first") from None
        except ValueError as error:
            raise StoredFormatError(f"{self.address(name)!r} is damaged ({error}); run the step that writes it again") from None
        return content

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        self.write_bytes(name, (json.dumps(content, indent=1) + "\n").encode())

    def read_table(self, name: str) -> pa.Table:
        """A Parquet file, or all Parquet files of a folder."""
        return pq.read_table(self.path(name), filesystem=self._files[0])

    def write_table(self, name: str, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        self.write_bytes(name, sink.getvalue().to_pybytes())

    # --- folders -----------------------------------------------------------------------------------------------------

    def delete(self, name: str) -> None:
        """Remove a file or a folder, if it exists."""
        files, target = self._files[0], self.path(name)
        kind = files.get_file_info(target).type
        try:
            if kind == pafs.FileType.Directory:
                files.delete_dir(target)
            elif kind != pafs.FileType.NotFound:
                files.delete_file(target)
        except FileNotFoundError:
            pass

    def move(self, source: str, target: str) -> None:
        """Move a folder to an unused name; in one step on local disks and HDFS."""
        self._files[0].create_dir(posixpath.dirname(self.path(target)), recursive=True)
        self._files[0].move(self.path(source), self.path(target))

    @contextmanager
    def new_folder(self, name: str, last: str = "") -> Iterator[Path]:
        """A local folder to fill. When the block ends without an error, it becomes the folder `name` of the store.

        If a folder cannot appear in one step, its file `last` is written after all others: it marks a complete folder.
        """
        with tempfile.TemporaryDirectory(prefix=f"{FILLING_PREFIX}{os.getpid()}-") as parent:
            local = Path(parent) / "new"
            yield local
            if self.is_local:
                # First copied to the disk of the target: a move inside one disk is one step, a copy is not.
                target = Path(self.path(name))
                target.parent.mkdir(parents=True, exist_ok=True)
                partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
                shutil.copytree(local, partial)
                os.rename(partial, target)
            else:
                last_file = (local / last).rename(Path(parent) / "last") if last else None
                pafs.copy_files(str(local), self.path(name), destination_filesystem=self._files[0])
                if last_file is not None:
                    self.write_bytes(f"{name}/{last}", last_file.read_bytes())

    def fetch_folder(self, name: str, target: Path) -> None:
        """Copy a folder of the store to a new local one; on the same disk, with hard links."""
        if self.is_local:
            shutil.copytree(self.path(name), target, copy_function=_link_or_copy)
        else:
            target.mkdir(parents=True)
            pafs.copy_files(self.path(name), str(target), source_filesystem=self._files[0])


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


POINTER = "CURRENT"
_NUMBER = re.compile(r"^\d{6}$")


def version_name(number: int) -> str:
    return f"{number:06d}"


def current_version(store: Store, folder: str) -> int | None:
    """The current version of a folder, or None before the first."""
    name = f"{folder}/{POINTER}"
    if not store.exists(name):
        return None
    text = store.read_bytes(name).decode().strip()
    if not _NUMBER.match(text):
        raise StoredFormatError(f"{store.address(name)!r} contains {text!r}; expected a number of six digits")
    return int(text)


def needed_version(store: Store, folder: str, step: str) -> int:
    """The current version of a folder; StoredFormatError with the step that makes one if there is none."""
    version = current_version(store, folder)
    if version is None:
        raise StoredFormatError(f"{store.address(folder)!r} has no version yet; run: nearcast pipeline {step}")
    return version


def stored_versions(store: Store, folder: str) -> list[int]:
    """Every version of a folder, complete or not, in order."""
    return [int(name) for name in store.names(folder) if _NUMBER.match(name)]


def next_version(store: Store, folders: Iterable[str]) -> int:
    """A number that no version of the folders has, complete or not."""
    return max((version for folder in folders for version in stored_versions(store, folder)), default=0) + 1


def make_current(store: Store, folder: str, version: int, replaced: int | None) -> None:
    """Make a version the current one; StoredFormatError if the current one is no longer `replaced`."""
    current = current_version(store, folder)
    if current != replaced:
        raise StoredFormatError(
            f"version {version} of {store.address(folder)!r} was made to follow {replaced}, but {current} is current now; "
            "two writers ran at the same time: run the step again"
        )
    store.write_bytes(f"{folder}/{POINTER}", f"{version_name(version)}\n".encode())


@dataclass(frozen=True, slots=True)
class StreamFolders:
    """The folders of the stream called `name`: deliveries, quarantine, counts of its batches, checkpoint."""

    name: str

    @property
    def deliveries(self) -> str:
        return f"streams/{self.name}/deliveries"

    @property
    def quarantine(self) -> str:
        return f"streams/{self.name}/quarantine"

    @property
    def batches(self) -> str:
        return f"streams/{self.name}/batches"

    @property
    def staging(self) -> str:
        return f"streams/{self.name}/_staging"

    @property
    def checkpoint(self) -> str:
        return f"streams/{self.name}/checkpoint"

    def batch_file(self, batch: int) -> str:
        """The counts of one batch."""
        return f"{self.batches}/{batch:08d}.json"
