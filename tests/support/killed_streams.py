"""A stream of the pipeline as a process of its own that is killed without warning: all of it, its keeper, or an executor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_PATIENCE_S = 300


class KilledStream:
    """`nearcast pipeline VERB`; its log, and the folders that Spark makes, are in `folder`."""

    def __init__(self, verb: str, folder: Path, settings: Mapping[str, Any]) -> None:
        self._verb, self._folder = verb, folder
        self._shared_dir = Path(settings["shared_dir"])
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "settings.toml").write_text("".join(f"{name} = {_toml(value)}\n" for name, value in settings.items()))

    def start(self) -> None:
        command = [sys.executable, "-m", "nearcast", "pipeline", self._verb, "--settings", str(self._folder / "settings.toml")]
        with open(self._folder / "log", "ab") as log:
            # A session of its own, so that the JVM can be killed with it.
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=self._folder)

    def wait_for(self, is_there: Callable[[], bool]) -> None:
        """Return when `is_there` holds; raise with the log if the process ends or takes too long."""
        began = time.monotonic()
        while not is_there():
            if self._process is None or self._process.poll() is not None or time.monotonic() - began > _PATIENCE_S:
                raise AssertionError((self._folder / "log").read_text()[-5000:])
            time.sleep(0.05)

    def kill_all(self) -> None:
        """The Python process, its JVM and the executors at once, as when a machine goes."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            for pid in self._executors():
                _kill(pid)
            self._process.wait()
            self._process = None

    def kill_keepers(self) -> None:
        for file in self._shared_dir.glob("*/keeper-*.json"):
            _kill(json.loads(file.read_text())["process"])

    def kill_executor(self) -> None:
        for pid in self._executors()[:1]:
            _kill(pid)

    def _executors(self) -> list[int]:
        """The executors whose driver runs in this folder."""
        executors = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    command = (process / "cmdline").read_bytes()
                    is_ours = os.readlink(process / "cwd").startswith(str(self._folder))
                except OSError:
                    continue
                if b"CoarseGrainedExecutorBackend" in command and is_ours:
                    executors.append(int(process.name))
        return sorted(executors)


def files_by_batch(checkpoint: Path, names: Sequence[str]) -> list[dict[str, list[int]]]:
    """For each batch, the numbers of the files that it read from each folder, from Spark's checkpoint."""
    offsets = []
    for number in sorted(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit()):
        lines = (checkpoint / "offsets" / str(number)).read_text().splitlines()[2:]
        offsets.append([json.loads(line)["logOffset"] if line != "-" else -1 for line in lines])
    files_of: dict[str, dict[int, list[int]]] = {name: {} for name in names}
    source_of: dict[str, int] = {}
    for source in (checkpoint / "sources").iterdir():
        seen = set()
        for file in source.iterdir():
            for line in file.read_text().splitlines()[1:] if not file.name.startswith(".") else []:
                facts = json.loads(line)
                path = Path(facts["path"])
                source_of[path.parent.name] = int(source.name)
                if path.name not in seen:
                    seen.add(path.name)
                    files_of[path.parent.name].setdefault(facts["batchId"], []).append(int(path.stem))

    def files(name: str, at: int) -> list[int]:
        source = source_of[name]
        before = offsets[at - 1][source] if at else -1
        return [file for offset in range(before + 1, offsets[at][source] + 1) for file in files_of[name].get(offset, [])]

    return [{name: files(name, at) for name in names} for at in range(len(offsets))]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
    return json.dumps(value)
