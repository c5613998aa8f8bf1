"""The store: a folder on any file system that driver and executors reach (a path, `hdfs://`, `s3://`, `gs://`).

Everything but the pointers (`CURRENT`, pins) is written once and never changed, so that copies stay true.
"""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from nearcast.errors import StoredFormatError

_IDENTITY = "IDENTITY"
FILLED = ".nearcast-new-"
"""Folders for temporary files that begin so, and go on with the number of a process, are being filled by it."""


class Store:
    """Reads and writes below `root`; paths are relative, with slashes. Travels to executors as its address."""

    def __init__(self, root: str | Path) -> None:
        given = str(root)
        self.root = given if "://" in given else str(Path(given).resolve())
        self._opened: tuple[pafs.FileSystem, str] | None = None
        self._identity = ""

    def __getstate__(self) -> str:
        return self.root

    def __setstate__(self, state: str) -> None:
        self.root, self._opened, self._identity = state, None, ""

    @property
    def identity(self) -> str:
        """A name for this very store: one made anew at the same address has another, and copies of the old one are not its."""
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
        """The full path on the file system behind the address."""
        return posixpath.join(self._files[1], *names)

    def address(self, *names: str) -> str:
        """The same as Spark reads it."""
        return posixpath.join(self.root, *names)

    # --- small files -------------------------------------------------------------------------------------------------

    def exists(self, name: str) -> bool:
        return bool(self._files[0].get_file_info(self.path(name)).type != pafs.FileType.NotFound)

    def size(self, name: str) -> int:
        """Of a file, in bytes."""
        return int(self._files[0].get_file_info(self.path(name)).size)

    def names(self, folder: str) -> list[str]:
        """What a folder holds, sorted, without files that are still being written; empty if there is no such folder."""
        selector = pafs.FileSelector(self.path(folder), allow_not_found=True)
        found = [info.base_name for info in self._files[0].get_file_info(selector)]
        return sorted(name for name in found if not name.startswith("."))

    def read_bytes(self, name: str) -> bytes:
        with self._files[0].open_input_stream(self.path(name)) as stream:
            return bytes(stream.read())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Readers see the old file or the new one: written aside and moved, as far as the file system allows."""
        files, target = self._files[0], self.path(name)
        files.create_dir(posixpath.dirname(target), recursive=True)
        # An object store shows a file when it is whole, and has no move that costs nothing.
        aside = f"{posixpath.dirname(target)}/.{uuid.uuid4().hex}" if self.is_local else target
        with files.open_output_stream(aside) as stream:
            stream.write(content)
        if aside != target:
            os.replace(aside, target)

    def read_json(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.read_bytes(name))
        except FileNotFoundError:
            raise StoredFormatError(f"{self.address(name)!r} is not there; run the step that writes it first") from None
        except ValueError as error:
            raise StoredFormatError(f"{self.address(name)!r} is damaged ({error}); run the step that writes it again") from None
        return found

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        self.write_bytes(name, (json.dumps(content, indent=1) + "\n").encode())

    def read_table(self, name: str) -> pa.Table:
        """A Parquet file, or all those of a folder."""
        return pq.read_table(self.path(name), filesystem=self._files[0])

    def write_table(self, name: str, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        self.write_bytes(name, sink.getvalue().to_pybytes())

    # --- folders -----------------------------------------------------------------------------------------------------

    def delete(self, name: str) -> None:
        """Remove a file or a folder; nothing happens if it is gone already."""
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
        """Move a folder to a name that is free: in one step where the file system can (local disks, HDFS)."""
        self._files[0].create_dir(posixpath.dirname(self.path(target)), recursive=True)
        self._files[0].move(self.path(source), self.path(target))

    @contextmanager
    def new_folder(self, name: str, last: str = "") -> Iterator[Path]:
        """A local folder to fill; it becomes the folder `name` of the store when the block ends without an error.

        Where a folder cannot appear in one step, its file `last` is written after all others: who sees it sees all.
        """
        with tempfile.TemporaryDirectory(prefix=f"{FILLED}{os.getpid()}-") as parent:
            local = Path(parent) / "new"
            yield local
            if self.is_local:
                # Beside the target first: a move inside one disk is one step, a copy is not.
                target = Path(self.path(name))
                target.parent.mkdir(parents=True, exist_ok=True)
                aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
                shutil.copytree(local, aside)
                os.rename(aside, target)
            else:
                kept_back = (local / last).rename(Path(parent) / "last") if last else None
                pafs.copy_files(str(local), self.path(name), destination_filesystem=self._files[0])
                if kept_back is not None:
                    self.write_bytes(f"{name}/{last}", kept_back.read_bytes())

    def fetch_folder(self, name: str, target: Path) -> None:
        """Copy a folder of the store to a local one that does not exist yet; on the same disk, by hard links."""
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
