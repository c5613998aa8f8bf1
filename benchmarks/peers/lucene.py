"""Lucene Monitor, the library below percolators: queries filed by their rarest word, each message a small index to ask.

Needs a JDK and a folder with Lucene's jars (core, memory, monitor, analysis-common): `NEARCAST_BENCH_LUCENE=folder`. Maven
fetches them: `mvn dependency:copy-dependencies -DoutputDirectory=folder` for a dependency on org.apache.lucene:lucene-monitor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.peers.peer import Peer, pairs_table
from nearcast.columns.arrow import numbers

_FOLDER = "NEARCAST_BENCH_LUCENE"
_PROGRAM = Path(__file__).with_name("LuceneMonitor.java")
_INT, _LONG, _DOUBLE = ">i4", ">i8", ">f8"
_ASKED_AT_ONCE = 100


class LuceneMonitor(Peer):
    """One process, spoken to through its standard input and output."""

    @classmethod
    def missing(cls) -> str | None:
        folder = os.environ.get(_FOLDER)
        if not folder:
            return f"no folder with the jars of Lucene Monitor is named: set {_FOLDER}=folder"
        if not list(Path(folder).glob("lucene-monitor-*.jar")):
            return f"{_FOLDER}={folder} holds no lucene-monitor-*.jar"
        return None if shutil.which("javac") else "there is no JDK on this machine"

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        jars = str(Path(os.environ[_FOLDER]) / "*")
        # One thread works; the collector is not to take others for it.
        command = ["java", "-Xmx8g", "-XX:+UseSerialGC", "-cp", jars, str(_PROGRAM)]
        self._complaints = TemporaryFile()  # noqa: SIM115  # closed by close()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._complaints)
        word, count = np.unique(numbers(history["keywords"].combine_chunks().flatten(), np.int64), return_counts=True)
        seen = np.stack([word, count], axis=1).astype(_INT)
        boxes = np.stack([subscriptions[name].to_numpy() for name in ("x0", "y0", "x1", "y1")], axis=1)
        ids = numbers(subscriptions["id"].combine_chunks(), np.int64).astype(_LONG)
        self._write(np.array(len(word), _INT).tobytes() + seen.tobytes() + np.array(len(ids), _INT).tobytes())
        self._write_rows(ids[:, None].view(np.uint8), boxes, subscriptions["keywords"])
        assert int(self._read(_INT, 1)[0]) == 1

    def match(self, messages: pa.Table) -> pa.Table:
        counts: list[int] = []
        ids_of: list[NDArray[Any]] = [np.empty(0, _LONG)]
        for first in range(0, messages.num_rows, _ASKED_AT_ONCE):
            # As many as fit into the pipes: writing on without reading the answers would wait forever.
            some = messages.slice(first, _ASKED_AT_ONCE)
            locations = np.stack([some["x"].to_numpy(), some["y"].to_numpy()], axis=1)
            self._write(np.array(some.num_rows, _INT).tobytes())
            self._write_rows(np.empty((some.num_rows, 0), np.uint8), locations, some["keywords"])
            for _ in range(some.num_rows):
                counts.append(int(self._read(_INT, 1)[0]))
                ids_of.append(self._read(_LONG, counts[-1]))
        ids = numbers(messages["id"].combine_chunks(), np.int64)
        return pairs_table(np.repeat(ids, counts), np.concatenate(ids_of).astype(np.int64))

    @property
    def n_bytes(self) -> int:
        """What the process holds now."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        with self._process, self._complaints:
            self._process.kill()

    def _write_rows(self, head: NDArray[np.uint8], coordinates: NDArray[np.float64], keywords: pa.ChunkedArray) -> None:
        lists = keywords.combine_chunks()
        words = numbers(lists.flatten(), np.int64).astype(_INT)
        start = np.concatenate([[0], np.cumsum(numbers(lists.value_lengths(), np.int64))])
        n = np.diff(start).astype(_INT)
        values = coordinates.astype(_DOUBLE)
        rows = (
            head[row].tobytes()
            + values[row].tobytes()
            + n[row : row + 1].tobytes()
            + words[start[row] : start[row + 1]].tobytes()
            for row in range(len(n))
        )
        self._write(b"".join(rows))

    def _write(self, what: bytes) -> None:
        to: Any = self._process.stdin
        try:
            to.write(what)
            to.flush()
        except BrokenPipeError:
            raise self._problem() from None

    def _read(self, kind: str, n: int) -> NDArray[Any]:
        output: Any = self._process.stdout
        size = n * np.dtype(kind).itemsize
        read = output.read(size)
        if len(read) < size:
            raise self._problem()
        return np.frombuffer(read, kind)

    def _problem(self) -> ChildProcessError:
        self._complaints.seek(0)
        return ChildProcessError(f"Lucene Monitor has stopped: {self._complaints.read().decode(errors='replace')[-1000:]}")
