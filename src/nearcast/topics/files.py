"""A topic as a folder: files of whole lines, `00000000000000000007.jsonl`, that appear in one step and never change.

A writer fills a file aside and links it under the next number. A number can be taken once, so any number of writers may append,
and the numbers have no gaps. Nothing is locked, and whoever dies leaves at most a hidden file that nobody reads. The folder
must be on a disk with hard links: a local one, or one that hosts share (NFS); not an object store.

A position is "number:byte", the place in a file where the next line begins.
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
from nearcast.topics.topic import Piece

ENDING = ".jsonl"
_ONCE, _ASIDE = ".once", ".aside"
_DIGITS = 20
_POLL_S = 0.02


class FileTopic:
    """One folder; see above."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._next: int | None = None
        """No file of this number had been seen; there may be one by now."""
        try:
            for path in (folder, folder / _ONCE, folder / _ASIDE):
                path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed("made", error) from None

    def close(self) -> None:
        """Nothing is held."""

    # --- writing -----------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record]) -> None:
        if not records:
            return
        aside = self.folder / _ASIDE / uuid.uuid4().hex
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

    def new_aside(self) -> Path:
        """A place on the topic's disk for what `append_folder` will take; nothing is there yet."""
        return self.folder / _ASIDE / uuid.uuid4().hex

    def append_folder(self, name: str, filled: Path) -> None:
        """Append the files of a folder from `new_aside`, once, however often it is tried under this name."""
        try:
            for path in _visible(filled):
                _flush(path)
            os.rename(filled, self.folder / _ONCE / name)
            _flush_folder(self.folder / _ONCE)
        except OSError as error:
            raise self._failed("written", error) from None
        self.has_folder(name)

    def has_folder(self, name: str) -> bool:
        """Whether a folder was appended under this name; one whose writer died on the way is appended to its end first."""
        folder = self.folder / _ONCE / name
        if not folder.is_dir():
            return False
        try:
            for path in _visible(folder):
                status = path.stat()
                # A file with two names has its number already.
                if status.st_nlink == 1 and status.st_size:
                    self._link(path)
            _flush_folder(self.folder)
        except OSError as error:
            raise self._failed("written", error) from None
        return True

    def forget_folders(self, prefix: str, kept: str) -> None:
        """No folder whose name begins so will be appended again, but for one."""
        for path in (self.folder / _ONCE).glob(f"{prefix}*"):
            if path.name != kept:
                shutil.rmtree(path, ignore_errors=True)

    def remove_before(self, moment: float) -> None:
        """Forget files that are older, but never the newest: its number tells the next. Also what the dead left aside."""
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

    def read(self, position: str, limit: int, wait_s: float = 0.0) -> Piece:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                found = self._read_now(position, limit)
            except OSError as error:
                raise self._failed("read", error) from None
            if found.values or time.monotonic() >= deadline:
                return found
            time.sleep(_POLL_S)

    def _read_now(self, position: str, limit: int) -> Piece:
        number, byte = self._place(position)
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
                        return Piece(values, f"{number}:{byte}")
            number, byte = number + 1, 0
        return Piece(values, f"{number}:{byte}")

    def _place(self, position: str) -> tuple[int, int]:
        if not position:
            return min(self._numbers(), default=0), 0
        number, _, byte = position.partition(":")
        if not (number.isdigit() and byte.isdigit()):
            raise TopicError(f"{position!r} is no position in {str(self.folder)!r}; expected 'file:byte', as `read` gave it")
        return int(number), int(byte)

    def _check_gap(self, number: int) -> None:
        """The file of a number is not there: fine if it is the next to come."""
        numbers = self._numbers()
        if number == max(numbers, default=-1) + 1 or number in numbers:
            return
        first, last = (numbers[0], numbers[-1]) if numbers else (0, -1)
        raise TopicError(
            f"the topic {str(self.folder)!r} has the files {first} to {last}, but file {number} was to be read next: records "
            "are lost to this reader, or it is another topic of the same name; keep files longer, and let the reader begin anew"
        )

    def _numbers(self) -> list[int]:
        return sorted(_number(name) for name in os.listdir(self.folder) if name.endswith(ENDING) and name[:_DIGITS].isdigit())

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:0{_DIGITS}d}{ENDING}"

    def _failed(self, done: str, error: OSError) -> TopicError:
        return TopicError(f"the topic {str(self.folder)!r} cannot be {done}: {error.strerror or error}")


def _number(name: str) -> int:
    return int(name[:_DIGITS])


def _visible(folder: Path) -> Iterator[Path]:
    """Files of records; what Spark leaves beside them begins with a dot or an underscore."""
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
