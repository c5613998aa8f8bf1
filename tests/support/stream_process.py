"""A pipeline of its own for a test: `nearcast pipeline match` as a real process on topics, killed and started again at will."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SmallStream:
    """Matches the topics below an address; what it writes is in its folder."""

    def __init__(self, folder: Path, topics: str, mark: str, **settings: str) -> None:
        """`mark` stands between the address and the name of a topic."""
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        values = {
            "work": f"{folder}/work",
            "shared_dir": f"{folder}/host",
            "master": "local[1]",
            "trigger": "100 milliseconds",
            "messages": f"{topics}{mark}messages",
            "changes": f"{topics}{mark}subscriptions",
            "sink": f"{topics}{mark}deliveries",
            **dict.fromkeys(("messages_format", "changes_format", "sink_format"), "topic"),
            **settings,
        }
        (folder / "settings.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))

    def start(self) -> None:
        command = [sys.executable, "-m", "nearcast", "pipeline", "match", "--settings", f"{self.folder}/settings.toml"]
        with open(self.folder / "stream.log", "ab") as log:
            # A session of its own, so that the JVM can be killed with it.
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def check(self) -> None:
        """Raise with the log if the process has ended."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"the stream has ended: {(self.folder / 'stream.log').read_text()[-5000:]}")

    def kill(self) -> None:
        """Kill Python and the JVM at once, as when a machine fails."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def small_stream(folder: Path, topics: str, mark: str = "/", **settings: str) -> Iterator[SmallStream]:
    """A stream that has been started; it need not be ready yet."""
    stream = SmallStream(folder, topics, mark, **settings)
    try:
        stream.start()
        yield stream
    finally:
        stream.kill()
