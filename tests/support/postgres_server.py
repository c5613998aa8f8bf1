"""A PostgreSQL server of its own for a test, where one is installed: made in a folder, killed at will, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HOMES = ("/usr/lib/postgresql", "/opt/homebrew/opt/postgresql", "/usr/local/pgsql")
_READY_S = 60.0


def postgres_programs() -> Path | None:
    """The folder of `initdb` and `postgres`; None if they are not installed."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += [path.parent for home in _HOMES for path in sorted(Path(home).glob("**/bin/initdb"), reverse=True)]
    return folders[0] if folders else None


class SmallDatabase:
    """`url` stays the same over restarts."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder, self._programs = folder, programs
        # PostgreSQL does not run as root.
        self._as_user = ["runuser", "-u", _other_user(), "--"] if os.getuid() == 0 else []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"postgresql://nearcast@127.0.0.1:{self._port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        if self._as_user:
            shutil.chown(self._folder, _other_user())
        options = ["-D", str(self._folder / "data"), "-U", "nearcast", "--auth=trust", "--no-sync", "--locale=C", "-E", "UTF8"]
        command = [*self._as_user, str(self._programs / "initdb"), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder)

    def start(self) -> None:
        """Returns when it takes connections."""
        options = ["-D", str(self._folder / "data"), "-p", str(self._port), "-h", "127.0.0.1", "-k", str(self._folder)]
        with (self._folder / "postgres.log").open("ab") as log:
            command = [*self._as_user, str(self._programs / "postgres"), *options]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        deadline = time.monotonic() + _READY_S
        ready = [str(self._programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self._port), "-q"]
        while subprocess.run(ready, check=False).returncode:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'postgres.log').read_text()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it at once; what was committed stays."""
        if self._process is not None and self._process.poll() is None and (self._folder / "data" / "postmaster.pid").exists():
            leader = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
            os.kill(leader, signal.SIGQUIT)
            self._process.wait(30)


def _other_user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextmanager
def small_database(folder: Path) -> Iterator[SmallDatabase]:
    """A database that takes connections; raises RuntimeError where PostgreSQL is not installed."""
    programs = postgres_programs()
    if programs is None:
        raise RuntimeError("PostgreSQL is not installed here")
    database = SmallDatabase(folder, programs)
    database.make()
    try:
        database.start()
        yield database
    finally:
        database.stop()
