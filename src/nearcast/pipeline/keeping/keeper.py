"""The process that keeps the shards of a host alive between the tasks of Spark.

Spark gives a task to any of its Python processes, so a shard that lived in one of them would be in the wrong one half of the
time. Here it is in the right one always. `python -m nearcast.pipeline.keeping.keeper FOLDER PROCESS` listens on a port of this
host, named in a file of `FOLDER` that only its user can read, together with the secret that a caller must know. It ends with
`PROCESS` (the executor's), when its file is gone or another's, or when nobody has called for a long time.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import sys
import threading
import time
import traceback
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path

import nearcast
from nearcast.pipeline.host_cache import is_running
from nearcast.pipeline.keeping.live_shards import LiveShards
from nearcast.pipeline.keeping.shard_calls import Call
from nearcast.pipeline.keeping.snapshots import remove_left

HOST = "127.0.0.1"
_PATIENCE_S = 1800.0
_LOOKS_EVERY_S = 0.5


def address_file(folder: Path) -> Path:
    """Where a keeper says how to call it; one of another release has another file."""
    return folder / f"keeper-{nearcast.__version__}.json"


class Keeper:
    """Answers calls, each connection in a thread of its own; kernels run beside each other."""

    def __init__(self, folder: Path, process: int) -> None:
        self._file, self._process = address_file(folder), process
        self._shards = LiveShards()
        self._last_call = time.monotonic()
        self._n_running = 0

    def serve(self) -> None:
        remove_left(self._file.parent.parent)
        secret = secrets.token_bytes(32)
        with Listener((HOST, 0), backlog=64, authkey=secret) as listener:
            self._announce(listener.address[1], secret)
            threading.Thread(target=self._watch, daemon=True).start()
            while True:
                try:
                    connection = listener.accept()
                except (OSError, EOFError, AuthenticationError):
                    # Somebody who did not know the secret, or went away.
                    continue
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _announce(self, port: int, secret: bytes) -> None:
        aside = self._file.with_name(f".keeper-{os.getpid()}")
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({"port": port, "secret": secret.hex(), "process": os.getpid()}, file)
        aside.rename(self._file)

    def _answer(self, connection: Connection) -> None:
        """Answer the calls of one task after the other, until its process closes the connection."""
        with connection:
            while True:
                try:
                    answer = self._answered(connection.recv_bytes())
                    connection.send(answer)
                except (EOFError, OSError):
                    return

    def _answered(self, message: bytes) -> tuple[bool, bytes]:
        self._n_running += 1
        try:
            call: Call = pickle.loads(message)
            return True, call.run(self._shards)
        except Exception:  # noqa: BLE001 - whatever it is, the caller is told
            return False, traceback.format_exc().encode()
        finally:
            self._n_running -= 1
            self._last_call = time.monotonic()

    def _watch(self) -> None:
        """End this process when nobody needs it."""
        while self._is_needed():
            time.sleep(_LOOKS_EVERY_S)
        os._exit(0)

    def _is_needed(self) -> bool:
        try:
            is_ours = json.loads(self._file.read_text())["process"] == os.getpid()
        except (OSError, ValueError):
            return False
        is_idle = not self._n_running and time.monotonic() - self._last_call > _PATIENCE_S
        return is_running(self._process) and is_ours and not is_idle


if __name__ == "__main__":
    # Under its own name: what callers send is of this module's classes.
    from nearcast.pipeline.keeping.keeper import Keeper as _Keeper

    _Keeper(Path(sys.argv[1]), int(sys.argv[2])).serve()
