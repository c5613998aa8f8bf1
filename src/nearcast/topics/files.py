"""A topic as a folder: files of whole lines, `00000000000000000007.jsonl`, that appear in one step and never change.

A writer fills a hidden file and links it under the next number. Each number can be linked once, so any number of writers may
append, and the numbers have no gaps. There are no locks; a writer that dies leaves at most a hidden file that nobody reads. The
folder must be on a file system with hard links: a local disk or a shared one (NFS), not an object store.

A position is "number:byte": a file, and the byte at which the next line begins.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from nearcast.errors import TopicError
from nearcast.topics.records import Record
from nearcast.topics.topic import TopicPage

ENDING = ".jsonl"
_ONCE, _ASIDE = ".once", ".aside"
_DIGITS = 20
_POLL_S = 0.02


class FileTopic:
    """A topic in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._next: int | None = None
        """The next number, unless another writer took it meanwhile."""
        try:
            for path in (folder, folder / _ONCE, folder / _ASIDE):
                path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed("made", error) from None

    def close(self) -> None:
        """Nothing to do: no file stays open."""

    # --- writing -----------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record]) -> None:
        if not records:
            return
        aside = self.new_staging()
        try:
            with open(aside, "wb") as file:
                for record in records:
                    file.write(record.value + b"\n")
                file.flush()
                os.fsync(file.fileno())
            try:
                self._link(aside)
            finally:
                os.unlink(aside)
            _flush_folder(self.folder)
        except OSError as error:
            raise self._failed("written", error) from None

    def new_staging(self) -> Path:
        """A new path on the topic's disk, for a folder that `append_folder` will append."""
        return self.folder / _ASIDE / uuid.uuid4().hex

    def append_folder(self, name: str, staging: Path) -> None:
        """Append the files of a folder from `new_staging`; once, however often it is tried under this name."""
        try:
            for path in _record_files(staging):
                _flush(path)
            os.rename(staging, self.folder / _ONCE / name)
            _flush_folder(self.folder / _ONCE)
        except OSError as error:
            raise self._failed("written", error) from None
        self.has_folder(name)

    def has_folder(self, name: str) -> bool:
        """Whether a folder was appended under this name. If its writer died half way, this appends the rest first."""
        folder = self.folder / _ONCE / name
        if not folder.is_dir():
            return False
        try:
            for path in _record_files(folder):
                status = path.stat()
                # A file with two links has its number already.
                if status.st_nlink == 1 and status.st_size:
                    self._link(path)
            _flush_folder(self.folder)
        except OSError as error:
            raise self._failed("written", error) from None
        return True

    def forget_folders(self, prefix: str, keep: str) -> None:
        """Remove the appended folders whose names begin with `prefix`, except `keep`: they will not be appended again."""
        for path in (self.folder / _ONCE).glob(f"{prefix}*"):
            if path.name != keep:
                shutil.rmtree(path, ignore_errors=True)

    def remove_before(self, moment: float) -> None:
        """Remove older files, but never the newest: its number determines the next. Also removes what dead writers left."""
        for path in (self.folder / _ASIDE).iterdir():
            if path.stat().st_mtime < moment:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for number in self._numbers()[:-1]:
            path = self._path(number)
            if path.stat().st_mtime >= moment:
                return
            path.unlink()

    def _link(self, path: Path) -> None:
        """Give a file the next number."""
        number = self._first_free()
        while True:
            try:
                os.link(path, self._path(number))
            except FileExistsError:
                number += 1
            else:
                self._next = number + 1
                return

    def _first_free(self) -> int:
        if self._next is None:
            self._next = max(self._numbers(), default=-1) + 1
        return self._next

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, position: str, limit: int, wait_s: float = 0.0) -> TopicPage:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                page = self._read_now(position, limit)
            except OSError as error:
                raise self._failed("read", error) from None
            if page.values or time.monotonic() >= deadline:
                return page
            time.sleep(_POLL_S)

    def _read_now(self, position: str, limit: int) -> TopicPage:
        number, byte = self._parse_position(position)
        values: list[bytes] = []
        while len(values) < limit:
            path = self._path(number)
            if not path.exists():
                self._check_gap(number)
                break
            with open(path, "rb") as file:
                file.seek(byte)
                for line in file:
                    values.append(line.rstrip(b"\n"))
                    byte += len(line)
                    if len(values) == limit:
                        return TopicPage(values, f"{number}:{byte}")
            number, byte = number + 1, 0
        return TopicPage(values, f"{number}:{byte}")

    def _parse_position(self, position: str) -> tuple[int, int]:
        if not position:
            return min(self._numbers(), default=0), 0
        number, _, byte = position.partition(":")
        if not (number.isdigit() and byte.isdigit()):
            raise TopicError(
                f"{position!r} is not a position in {str(self.folder)!r}; expected 'file:byte', as `read` returned it"
            )
        return int(number), int(byte)

    def _check_gap(self, number: int) -> None:
        """Raise TopicError if a missing file is lost; the next one to come may be missing."""
        numbers = self._numbers()
        if number == max(numbers, default=-1) + 1 or number in numbers:
            return
        first, last = (numbers[0], numbers[-1]) if numbers else (0, -1)
        raise TopicError(
            f"the topic {str(self.folder)!r} has the files {first} to {last}, but file {number} was to be read next: records "
            "are lost to this reader, or it is another topic of the same name; keep files longer, and let the reader start over"
        )

    def _numbers(self) -> list[int]:
        return sorted(_number(name) for name in os.listdir(self.folder) if name.endswith(ENDING) and name[:_DIGITS].isdigit())

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:0{_DIGITS}d}{ENDING}"

    def _failed(self, action: str, error: OSError) -> TopicError:
        return TopicError(f"the topic {str(self.folder)!r} cannot be {action}: {error.strerror or error}")


def _number(name: str) -> int:
    return int(name[:_DIGITS])


def _record_files(folder: Path) -> Iterator[Path]:
    """The files with records. Other files of Spark begin with a dot or an underscore."""
    return (path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "_")))


def _flush(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
