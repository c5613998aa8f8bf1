"""Calls to the process that keeps the shards of this host; it is started when there is none."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path

from nearcast.errors import PipelineError
from nearcast.pipeline.host_cache import host_folder, is_running
from nearcast.pipeline.keeping.keeper import HOST, address_file
from nearcast.pipeline.keeping.shard_calls import Call

_STARTS_WITHIN_S = 120.0
_TRIES = 3

_connections: dict[Path, Connection] = {}
# Those that this process started: their ends are taken note of when they are replaced.
_processes: dict[Path, subprocess.Popen[bytes]] = {}


def call_keeper(shared_dir: str, call: Call) -> bytes:
    """The answer to a call. A keeper that died is replaced; a call is the same however often it is made."""
    folder = host_folder(shared_dir) / call.place.area.kind
    for attempt in range(_TRIES):
        try:
            connection = _connection(folder)
            connection.send(call)
            is_answered, answer = connection.recv()
            break
        except (EOFError, OSError) as error:
            _connections.pop(folder, None)
            if attempt == _TRIES - 1:
                raise PipelineError(
                    f"the process that keeps shards died {_TRIES} times ({error!r}); see {folder / 'log'}"
                ) from error
    if not is_answered:
        raise PipelineError(f"a shard could not do its work: {answer.decode()}")
    return bytes(answer)


def _connection(folder: Path) -> Connection:
    """A connection of this process, which does one thing at a time."""
    if folder not in _connections:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise PipelineError(f"{str(folder)!r} is of another user; give a folder of your own: --set shared_dir=FOLDER")
        with open(folder / "keeper.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = _connected(folder)
            _connections[folder] = found if found is not None else _started(folder)
    return _connections[folder]


def _connected(folder: Path) -> Connection | None:
    try:
        with open(address_file(folder)) as file:
            is_ours, facts = os.fstat(file.fileno()).st_uid == os.getuid(), json.load(file)
        # The port of a keeper that died may be somebody else's by now, who waits for something else to be said.
        if not is_ours or not is_running(facts["process"]):
            return None
        return Client((HOST, facts["port"]), authkey=bytes.fromhex(facts["secret"]))
    except (OSError, EOFError, ValueError, AuthenticationError):
        return None


def _started(folder: Path) -> Connection:
    address_file(folder).unlink(missing_ok=True)
    if folder in _processes:
        _processes[folder].kill()
        _processes.pop(folder).wait()
    # The parent of this process is of the executor and lives as long.
    command = [sys.executable, "-m", "nearcast.pipeline.keeping.keeper", str(folder), str(os.getppid())]
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    _processes[folder] = process
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < _STARTS_WITHIN_S:
        found = _connected(folder)
        if found is not None:
            return found
        time.sleep(0.02)
    raise PipelineError(f"the process that keeps shards did not start; see {folder / 'log'}")
