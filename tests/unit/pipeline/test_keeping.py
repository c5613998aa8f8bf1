"""What keeps shards: keepers that died or are somebody else's, snapshots that are not whole, layouts that follow each other."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import nearcast as nc
from nearcast.errors import PipelineError
from nearcast.pipeline.keeping.areas import RankedArea, TrackedArea
from nearcast.pipeline.keeping.arrow_bytes import table_of
from nearcast.pipeline.keeping.batch_log import write_log
from nearcast.pipeline.keeping.calling import _connected
from nearcast.pipeline.keeping.keeper import HOST, address_file
from nearcast.pipeline.keeping.layouts import Layout, publish_layout
from nearcast.pipeline.keeping.live_shards import LiveShards, Step
from nearcast.pipeline.keeping.retention import last_complete
from nearcast.pipeline.keeping.runner import start_sharded
from nearcast.pipeline.keeping.sequencing import ordered_rows
from nearcast.pipeline.keeping.shard_calls import Call, IdKinds, TakeCall, TellCall
from nearcast.pipeline.keeping.snapshots import fetched_snapshot, last_snapshot, remove_left, save_snapshot
from nearcast.pipeline.keeping.wishes import Wish, layout_for, wish_layout
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.homes import homes
from nearcast.pipeline.ranked.layouts import RankedPlace, store_plan
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.rebalancing import move_to
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store
from nearcast.pipeline.tracked.layouts import MECHANISM, TrackedPlace
from nearcast.pipeline.tracked.rules import TrackingRules
from nearcast.pipeline.tracked.stream import TrackedRunner, start_track
from support.ranked_input import Change, StreamMaker, changes_of, rows_of

# --- keepers --------------------------------------------------------------------------------------------------------------


def announce(folder: Path, port: int, process: int) -> None:
    facts = {"port": port, "secret": "00", "process": process}
    address_file(folder).write_text(json.dumps(facts))


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def test_a_port_that_belongs_to_somebody_else_by_now_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as silent:
        announce(tmp_path, silent.getsockname()[1], ended_process())
        assert _connected(tmp_path) is None


def test_a_keeper_with_another_secret_is_not_ours(tmp_path: Path) -> None:
    with Listener((HOST, 0), authkey=b"another") as listener:
        refused: list[Exception] = []

        def accept() -> None:
            try:
                listener.accept()
            except AuthenticationError as error:
                refused.append(error)

        thread = threading.Thread(target=accept)
        thread.start()
        announce(tmp_path, listener.address[1], os.getpid())
        assert _connected(tmp_path) is None
        thread.join()
    assert refused


# --- snapshots ------------------------------------------------------------------------------------------------------------


def tracked_place(folder: Path, n_shards: int = 1) -> TrackedPlace:
    layout = Layout(1, 0, MECHANISM, n_shards)
    return TrackedPlace(Store(folder / "work"), str(folder / "host"), "track", TrackingRules("plane"), layout)


def remote(place: TrackedPlace) -> TrackedPlace:
    """The same store as a file system that cannot show a folder in one step."""
    root = Path(place.store.root)
    root.mkdir(parents=True, exist_ok=True)
    place.store._opened = pafs.SubTreeFileSystem(str(root), pafs.LocalFileSystem()), ""
    assert not place.store.is_local
    return place


def test_a_snapshot_that_was_not_copied_to_its_end_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = remote(tracked_place(tmp_path))
    save_snapshot(place, 0, place.new_engine(0), 3, "third")
    copy_files = pafs.copy_files

    def copy_and_die(*given: Any, **options: Any) -> None:
        copy_files(*given, **options)
        raise OSError("died")

    with monkeypatch.context() as dying:
        dying.setattr(pafs, "copy_files", copy_and_die)
        with pytest.raises(OSError, match="died"):
            save_snapshot(place, 0, place.new_engine(0), 5, "fifth")
    assert place.store.exists(place.area.snapshot(1, 5, 0))
    assert last_complete(place, 9) == 3
    assert last_snapshot(place, 0, 9)[1:] == (3, "third")
    # The next try is not taken in by what is there.
    save_snapshot(place, 0, place.new_engine(0), 5, "fifth")
    assert last_complete(place, 9) == 5
    assert last_snapshot(place, 0, 9)[1:] == (5, "fifth")


def test_what_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = tracked_place(tmp_path)
    save_snapshot(place, 0, place.new_engine(0), 0, "mark")
    with fetched_snapshot(place, 0, 0) as own, place.store.new_folder("new") as filled:
        filled.mkdir()
        ended = ended_process()
        left = [with_process(path.parent, ended) for path in (own, filled)]
        remove_left(tmp_path / "host")
        assert own.exists()
        assert filled.exists()
        assert not any(path.exists() for path in left)


def with_process(mine: Path, process: int) -> Path:
    """A folder as one of this process, but of another one."""
    made = mine.with_name(mine.name.replace(str(os.getpid()), str(process)))
    made.mkdir()
    return made


# --- layouts --------------------------------------------------------------------------------------------------------------


class TightRules(RankingRules):
    """Little room in lists: floors rise and fall often."""

    def engine_settings(self, store: Store) -> dict[str, Any]:
        return {**super().engine_settings(store), "buffer_parameters": {"spare": 0.5}}


RULES = TightRules(20, 0.0, "plane", 14.0, 0)


class RankedWorld:
    """A ranked stream with its store, whose shards are called as tasks call them."""

    def __init__(self, folder: Path, mechanism: str, first: RankedBatch) -> None:
        store, area = Store(folder / "work"), RankedArea("rank")
        plan = plan_ranked(mechanism, 2, "plane", first.put, first.messages)
        layout = Layout(store_plan(store, area, plan), 0, mechanism, 2)
        publish_layout(store, area, layout)
        self.place = RankedPlace(store, str(folder / "host"), "rank", RULES, layout)
        self.shards, self.number, self.mark = LiveShards(), 0, ""

    def ask(self, calls: Sequence[Call]) -> None:
        for call in calls:
            call.run(self.shards)

    def take(self, batch: RankedBatch) -> list[Change]:
        place, shards = self.place, range(self.place.layout.n_shards)
        write_log(place.store, place.area, self.number, batch)
        step, told = Step(self.number, batch.mark, self.mark), place.area.told(self.number)
        self.ask([TellCall(place, shard, step, told) for shard in shards])
        kinds = IdKinds("bigint", "bigint")
        calls = [TakeCall(place, shard, step, told, "notes", kinds, False) for shard in shards]
        self.number, self.mark = self.number + 1, batch.mark
        return sorted(row for call in calls for row in rows_of(table_of(call.run(self.shards))))

    def move(self, mechanism: str, n_shards: int, plan_rows: int = 1000) -> None:
        layout = move_to(self.place, Wish(mechanism, n_shards, "wish"), self.number, plan_rows, self.ask)
        publish_layout(self.place.store, self.place.area, layout)
        self.place = replace(self.place, layout=layout)


@pytest.mark.parametrize("is_lost", [False, True])
def test_floors_of_owners_that_are_no_more_do_not_count(tmp_path: Path, is_lost: bool) -> None:
    """Lists that were made anew reach further down: who goes by the old floors reports too little."""
    batches = list(StreamMaker(2).batches(7))
    world = RankedWorld(tmp_path, "prefix", batches[0])
    ranker = nc.Ranker(**RULES.engine_settings(world.place.store))
    for number, batch in enumerate(batches):
        if number == 4:
            world.move("keyword_first", 3)
        if number == 6 and is_lost:
            world.shards = LiveShards()
        assert world.take(batch) == changes_of(ranker, batch), number


def test_a_plan_of_a_few_is_made_of_all_shards(tmp_path: Path) -> None:
    """By location the subscriptions of the first shard all live in one part of the world."""
    maker = StreamMaker(1, 400)
    first = maker.batch(is_first=True)
    world = RankedWorld(tmp_path, "location", first)
    world.take(first)
    world.move("location", 4, plan_rows=80)
    home = homes(world.place.plan, first.put)
    assert np.bincount(home, minlength=4).max() < 130


def test_a_wish_that_comes_while_another_is_fulfilled_is_not_lost(tmp_path: Path) -> None:
    place = tracked_place(tmp_path)
    settings = PipelineSettings(work=str(tmp_path / "work"), stream="track")
    publish_layout(place.store, place.area, place.layout)
    wish_layout(settings, 2)

    def move(wish: Wish) -> Layout:
        if wish.n_shards == 2:
            wish_layout(settings, 3)
        return Layout(wish.n_shards, 4 + wish.n_shards, MECHANISM, wish.n_shards, wish.name)

    second = layout_for(place, 6, move)
    assert second.n_shards == 2
    third = layout_for(replace(place, layout=second), 7, move)
    assert third.n_shards == 3
    assert not place.store.exists(place.area.wish)


def test_a_stream_that_wrote_a_batch_down_does_not_begin_anew(tmp_path: Path) -> None:
    """Else the rows of its next first batch would be lost: what was written down counts."""
    settings = PipelineSettings(work=str(tmp_path / "work"), stream="track")
    runner = TrackedRunner(settings, TrackingRules("plane"))
    assert not runner.has_begun
    settings.store.write_bytes(TrackedArea("track").log(0), b"")
    rows: Any = None
    with pytest.raises(PipelineError, match="has begun, but its checkpoint"):
        start_sharded(rows, settings, runner)


def test_an_index_that_cannot_be_is_not_what_a_stream_begins_with(tmp_path: Path) -> None:
    settings = PipelineSettings(work=str(tmp_path / "work"), stream="track", index="no such index")
    rows: Any = None
    with pytest.raises(nc.NearcastError, match="no such index"):
        start_track(rows, settings)
    assert not settings.store.exists(TrackedArea("track").rules)


def test_rows_that_are_alike_in_all_keys_have_one_order() -> None:
    rows = pa.table({"id": ["b", "a", "b", "b", "a"], "time": [1.0, None, 1.0, 0.5, None], "x": [3.0, 2.0, 1.0, 9.0, 1.0]})
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        assert ordered_rows(rows.take(order), ("time", "id"))["x"].to_pylist() == [9.0, 1.0, 3.0, 1.0, 2.0]
