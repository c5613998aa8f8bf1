"""Killed without warning, again and again: every delivery is there, once.

A process of its own runs the stream on a `local-cluster`: a driver and two executors with disks and processes of their own. Two
kills in `make test`, twenty in `make soak`, at random moments, with changed subscriptions, another plan and a deleted cache in
between.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.index.deltas import publish_changes
from nearcast.pipeline.index.version import IndexVersion
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings
from nearcast.pipeline.status import read_batches
from nearcast.pipeline.store import StreamFolders
from nearcast.testing.budget import current_budget
from support.pipelines import make_messages, make_subscriptions, plan_for, publish_here

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("kills"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

N_KILLS = 20 if current_budget().is_soak else 2
N_FILES = 5 * N_KILLS
SIZE = 300
FILE_STEP = 10_000  # message ids tell their file
MASTER = "local-cluster[2,1,1024]"
PATIENCE_S = 240


class Stream:
    """The stream as a process that starts, is killed and starts again."""

    def __init__(self, folder: Path, settings: PipelineSettings) -> None:
        self.folder = folder
        self.settings = settings
        self.file = folder / "settings.toml"
        options = "{ maxFilesPerTrigger = 1 }"
        self.file.write_text(
            f'work = "{settings.work}"\nshared_dir = "{settings.shared_dir}"\nspace = "plane"\nmaster = "{MASTER}"\n'
            f'messages = "{settings.messages}"\nmessages_options = {options}\ntrigger = "100 milliseconds"\n'
            f'messages_schema = "id long, keywords array<string>, x double, y double"\nspread = "{settings.spread}"\n'
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = Path(__file__).with_name("stream_runner.py")
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(program), str(self.file)], stdout=log, stderr=log, start_new_session=True, cwd=self.folder
            )

    def n_batches(self) -> int:
        return len(self.settings.store.names(StreamFolders("match").batches))

    def wait_for(self, n_batches: int) -> None:
        began = time.monotonic()
        while self.n_batches() < n_batches:
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() - began > PATIENCE_S:
                state = "runs" if self.process.poll() is None else f"ended with {self.process.returncode}"
                state_text = (
                    f"{self.n_batches()} of {n_batches} batches after {time.monotonic() - began:.0f} s, the stream {state}"
                )
                raise AssertionError(f"{state_text}\n{(self.folder / 'log').read_text()[-5000:]}")
            time.sleep(0.05)

    def kill_driver(self) -> None:
        """The Python process, its JVM and the executors at once, as when a machine goes."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        for pid in executors_of(str(self.folder)):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def kill_executor(self) -> None:
        running = executors_of(str(self.folder))
        if running:
            os.kill(running[0], signal.SIGKILL)


def executors_of(folder: str) -> list[int]:
    """The executors whose driver runs in this folder."""
    processes = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes()
                is_ours = os.readlink(process / "cwd").startswith(folder)
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and is_ours:
                processes.append(int(process.name))
    return sorted(processes)


def test_kills_at_random_moments_lose_and_repeat_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    draw = random.Random(7)
    (tmp_path / "raw").mkdir()
    settings = PipelineSettings(
        work=str(tmp_path / "work"),
        shared_dir=str(tmp_path / "host"),
        space="plane",
        messages=str(tmp_path / "raw"),
        mechanism="spatial_first",
        shards=3,
        spread="auto",
        keep_versions=1,
    )
    subscriptions = make_subscriptions(150, 0)
    history = make_messages(200, 1)
    version = publish_here(settings, plan_for(subscriptions, history, settings), subscriptions)
    answers = {version.number: matcher_of([subscriptions])}
    tables = [subscriptions]
    messages = [make_messages(SIZE, 100 + number, first_id=FILE_STEP * number) for number in range(N_FILES)]

    def add_files(first: int, last: int) -> None:
        for number in range(first, last):
            aside = tmp_path / f"{number:04d}.part"
            pq.write_table(messages[number], aside)
            aside.rename(tmp_path / "raw" / f"{number:04d}.parquet")

    stream = Stream(tmp_path, settings)
    try:
        stream.start()
        for kill in range(N_KILLS):
            first = kill * N_FILES // N_KILLS
            add_files(first, (kill + 1) * N_FILES // N_KILLS)
            stream.wait_for(first + 2)
            changed = make_subscriptions(40, kill + 50, first_id=100 + kill)
            answers[_publish(changed, settings).number] = matcher_of([*tables, changed])
            tables.append(changed)
            if kill % 5 == 4:
                # Another plan, as a rebalance makes one, while the stream runs.
                new_settings = replace(settings, mechanism=MECHANISMS[kill % 6], shards=2 + kill % 4)
                whole = latest(tables)
                answers[publish_here(new_settings, plan_for(whole, history, new_settings), whole).number] = matcher_of(tables)
            time.sleep(draw.random())
            if kill % 2 == 0:
                stream.kill_executor()
            else:
                stream.kill_driver()
                if kill % 4 == 1:
                    shutil.rmtree(settings.shared_dir, ignore_errors=True)
                stream.start()
        stream.wait_for(N_FILES)
    finally:
        stream.kill_driver()
    batches = read_batches(settings)
    assert [batch.batch for batch in batches] == list(range(N_FILES))
    files = []
    for batch in batches:
        # A batch is one file, in the order Spark found them; its version says which subscriptions were in force.
        delivered = pairs(
            pq.read_table(tmp_path / "work" / StreamFolders("match").deliveries / f"batch={batch.batch}", partitioning=None)
        )
        files.append(delivered[0][0] // FILE_STEP)
        assert delivered == pairs(answers[batch.version].match_table(messages[files[-1]])), batch
    assert sorted(files) == list(range(N_FILES))
    assert len({batch.version for batch in batches}) > 1


def _publish(changed: pa.Table, settings: PipelineSettings) -> IndexVersion:
    return publish_changes(changed.append_column("change", pa.array([1] * changed.num_rows, pa.int8())), settings)


def latest(tables: list[pa.Table]) -> pa.Table:
    """Every subscription as it is now: the last row of each id."""
    rows = {row["id"]: row for table in tables for row in table.to_pylist()}
    return pa.Table.from_pylist(list(rows.values()), schema=tables[0].schema)


def matcher_of(tables: list[pa.Table]) -> nc.Matcher:
    matcher = nc.Matcher(space="plane")
    for table in tables:
        matcher.subscribe_table(table)
    return matcher


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(table["message_id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))
