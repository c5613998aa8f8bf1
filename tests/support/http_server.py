"""A server of its own for a test: a real process on a free port, with a store in a folder, killed and started again at will."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nearcast.service.auth.keys import make_key
from nearcast.storage.batch import Batch
from nearcast.storage.store import open_store
from nearcast.wire.api import KeyIn, Role

_READY_S = 120.0


class SmallServer:
    """`url` and `key` (all roles, of the subscriber "ann") stay the same over restarts."""

    def __init__(self, folder: Path, settings: Mapping[str, str], store: str | None = None, engine: str = "embedded") -> None:
        self.folder = folder
        self.store = store or str(folder / "store.db")
        self.engine = engine
        self.port = 0
        self.key = self.make_key("ann", "admin", "publisher", "subscriber")
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def make_key(self, name: str, *roles: Role, tenant: str = "default") -> str:
        """The secret of a new key; also while the server runs."""
        row, shown = make_key(tenant, KeyIn(name, list(roles)))
        store = open_store(self.store)
        try:
            store.write(Batch(keys=[row]))
        finally:
            store.close()
        assert shown.secret is not None
        return shown.secret

    def start(self) -> None:
        """Start on the port it had before, if it had one; return when it is ready."""
        log_path = self.folder / "server.log"
        command = [sys.executable, "-m", "nearcast", "serve", "--store", self.store, "--port", str(self.port)]
        command += ["--engine", self.engine]
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **self._settings})
        deadline = time.monotonic() + _READY_S
        while not self._is_ready(log_path):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"the server did not start: {log_path.read_text()}")
            time.sleep(0.02)

    def _is_ready(self, log_path: Path) -> bool:
        if not self.port:
            line = re.search(r"listening on http://[\d.]+:(\d+)", log_path.read_text())
            if line is None:
                return False
            self.port = int(line.group(1))
        try:
            with urllib.request.urlopen(f"{self.url}/ready", timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        """Stop it as an operator does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Stop it as a power cut does."""
        self._end(signal.SIGKILL)

    def _end(self, sent: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(sent)
            self._process.wait(30)

    def figure(self, name: str) -> float:
        """One figure of /metrics."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as response:
            text = response.read().decode()
        line = re.search(rf"^{name} ([\d.e+]+)$", text, re.MULTILINE)
        assert line is not None, f"{name} is not in {text}"
        return float(line.group(1))


@contextmanager
def small_server(folder: Path, store: str | None = None, engine: str = "embedded", **settings: str) -> Iterator[SmallServer]:
    """A server that is ready. Without `store` it has a file in the folder; `settings` are environment variables."""
    server = SmallServer(folder, settings, store, engine)
    try:
        server.start()
        yield server
    finally:
        server.kill()
