"""A ranked stream that is killed without warning, again and again: every change of a list is there, once.

In `make test` one process, whose keeper of shards is killed and which is killed itself; in `make soak` a cluster of executors,
twenty kills of all kinds at random moments, with other shards and a deleted folder in between.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.keeping.wishes import wish_layout
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.settings_table import MECHANISMS, PipelineSettings
from nearcast.pipeline.status import read_batches
from nearcast.pipeline.stream_area import StreamArea
from nearcast.testing.budget import current_budget
from nearcast.testing.ranked_streams import StreamMaker, as_changes, changes_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("kills"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

IS_LONG = current_budget().is_soak
N_KILLS = 20 if IS_LONG else 2
N_FILES = 3 * N_KILLS
MASTER = "local-cluster[2,1,1024]" if IS_LONG else "local[2]"
PATIENCE_S = 300
AREA = StreamArea("rank")


class Stream:
    """The stream as a process that starts, is killed and starts again."""

    def __init__(self, folder: Path, settings: PipelineSettings) -> None:
        self.folder, self.settings = folder, settings
        self.file = folder / "settings.toml"
        one = "{ maxFilesPerTrigger = 1 }"
        schema = "id long, keywords array<string>, x double, y double"
        self.file.write_text(
            f'work = "{settings.work}"\nshared_dir = "{settings.shared_dir}"\nspace = "plane"\nmaster = "{MASTER}"\n'
            f'messages = "{settings.messages}"\nmessages_options = {one}\nmessages_schema = "{schema}, time double"\n'
            f'changes = "{settings.changes}"\nchanges_options = {one}\n'
            f'changes_schema = "{schema}, k int, spatial_weight double, change byte"\nstream = "rank"\nmax_distance = 14.0\n'
            f'trigger = "100 milliseconds"\nmechanism = "{settings.mechanism}"\nshards = {settings.shards}\n'
            f"window_messages = {settings.window_messages}\nsnapshot_batches = {settings.snapshot_batches}\n"
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = Path(__file__).with_name("rank_runner.py")
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(program), str(self.file)], stdout=log, stderr=log, start_new_session=True, cwd=self.folder
            )

    def n_batches(self) -> int:
        return len(self.settings.store.names(AREA.batches))

    def wait_for(self, is_there: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not is_there():
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() - began > PATIENCE_S:
                raise AssertionError((self.folder / "log").read_text()[-5000:])
            time.sleep(0.05)

    def kill_all(self) -> None:
        """The Python process, its JVM and the executors at once, as when a machine goes."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        for pid in executors_of(str(self.folder)):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def kill_keeper(self) -> None:
        for file in (Path(self.settings.shared_dir) / "ranked").glob("keeper-*.json"):
            try:
                os.kill(json.loads(file.read_text())["process"], signal.SIGKILL)
            except ProcessLookupError:
                continue

    def kill_executor(self) -> None:
        for pid in executors_of(str(self.folder))[:1]:
            os.kill(pid, signal.SIGKILL)


def executors_of(folder: str) -> list[int]:
    """The executors whose driver runs in this folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes()
                is_ours = os.readlink(process / "cwd").startswith(folder)
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and is_ours:
                found.append(int(process.name))
    return sorted(found)


def test_kills_at_random_moments_lose_and_repeat_no_change(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    draw = random.Random(11)
    for name in ("messages", "changes"):
        (tmp_path / name).mkdir()
    settings = PipelineSettings(
        work=str(tmp_path / "work"),
        shared_dir=str(tmp_path / "host"),
        space="plane",
        max_distance=14.0,
        messages=str(tmp_path / "messages"),
        changes=str(tmp_path / "changes"),
        mechanism="prefix",
        shards=3,
        window_messages=25,
        snapshot_batches=3,
        stream="rank",
    )
    batches = list(StreamMaker(4).batches(N_FILES))

    def add_file(number: int) -> None:
        for name, table in (("changes", as_changes(batches[number])), ("messages", batches[number].messages)):
            aside = tmp_path / f"{number:04d}.part"
            pq.write_table(table, aside)
            aside.rename(tmp_path / name / f"{number:04d}.parquet")

    stream = Stream(tmp_path, settings)
    add_file(0)
    stream.start()
    done = 1
    for kill in range(N_KILLS):
        last = (kill + 1) * N_FILES // N_KILLS
        for number in range(done, last):
            add_file(number)
        stream.wait_for(lambda n=done: stream.n_batches() >= n)  # type: ignore[misc]
        done = last
        if kill % 3 == 1:
            wish_layout(replace(settings, mechanism=MECHANISMS[kill % 6]), 1 + kill % 4)
        time.sleep(draw.random() * 2)
        if kill % 2:
            stream.kill_all()
            if kill % 4 == 1:
                shutil.rmtree(settings.shared_dir, ignore_errors=True)
            stream.start()
        elif kill % 4 == 2:
            stream.kill_executor()
        else:
            stream.kill_keeper()
    n_rows = sum(batch.messages.num_rows + as_changes(batch).num_rows for batch in batches)
    stream.wait_for(lambda: sum(batch.read for batch in read_batches(settings)) == n_rows)
    stream.kill_all()
    ranker = nc.Ranker(**RankingRules.of(settings).engine_settings(settings.store))
    for number, (changes, messages) in enumerate(files_by_batch(tmp_path / "work" / AREA.checkpoint)):
        put = [batches[file].put for file in changes] or [batches[0].put.slice(0, 0)]
        removed = [batches[file].removed for file in changes] or [batches[0].removed]
        arrived = [batches[file].messages for file in messages] or [batches[0].messages.slice(0, 0)]
        expected = changes_of(ranker, RankedBatch.of(put[0], removed[0], arrived[0]))
        folder = tmp_path / "work" / AREA.deliveries / f"batch={number}"
        assert sorted(rows_of(pq.read_table(folder, partitioning=None))) == expected, number


def files_by_batch(checkpoint: Path) -> list[tuple[list[int], list[int]]]:
    """Which files of changes and of messages each batch read, by their numbers, from what Spark wrote down."""
    offsets = []
    for number in sorted(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit()):
        lines = (checkpoint / "offsets" / str(number)).read_text().splitlines()[2:]
        offsets.append([json.loads(line)["logOffset"] if line != "-" else -1 for line in lines])
    found: dict[str, dict[int, list[int]]] = {"changes": {}, "messages": {}}
    source_of = {}
    for source in (checkpoint / "sources").iterdir():
        seen = set()
        for file in source.iterdir():
            for line in file.read_text().splitlines()[1:] if not file.name.startswith(".") else []:
                facts = json.loads(line)
                path = Path(facts["path"])
                source_of[path.parent.name] = int(source.name)
                if path.name not in seen:
                    seen.add(path.name)
                    found[path.parent.name].setdefault(facts["batchId"], []).append(int(path.stem))

    def files(name: str, at: int) -> list[int]:
        source = source_of[name]
        before = offsets[at - 1][source] if at else -1
        return [file for offset in range(before + 1, offsets[at][source] + 1) for file in found[name].get(offset, [])]

    return [(files("changes", at), files("messages", at)) for at in range(len(offsets))]
