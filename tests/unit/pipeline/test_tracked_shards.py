"""The shards of a tracked stream, without Spark: they tell what one process tells, whatever happens to them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.pipeline.keeping.areas import TrackedArea
from nearcast.pipeline.keeping.arrow_bytes import table_of
from nearcast.pipeline.keeping.batch_log import write_log
from nearcast.pipeline.keeping.layouts import Layout, layout_of, publish_layout, reserve_layout
from nearcast.pipeline.keeping.live_shards import LiveShards, Step
from nearcast.pipeline.keeping.retention import last_complete, remove_old
from nearcast.pipeline.keeping.row_blocks import in_blocks, rows_in
from nearcast.pipeline.keeping.row_frames import CHANGE, MESSAGE
from nearcast.pipeline.keeping.shard_calls import Call, IdKinds, TakeCall
from nearcast.pipeline.keeping.wishes import Wish
from nearcast.pipeline.store import Store
from nearcast.pipeline.tracked.batches import Clock, Tick, TrackedBatch
from nearcast.pipeline.tracked.cleaning_rows import MOVE, RowCleaner
from nearcast.pipeline.tracked.layouts import MECHANISM, TrackedPlace
from nearcast.pipeline.tracked.rebalancing import move_to
from nearcast.pipeline.tracked.rules import TrackingRules
from nearcast.pipeline.tracked.sequencing import sequenced
from nearcast.pipeline.tracked.shard import TrackedShard
from nearcast.testing.budget import current_budget
from nearcast.testing.oracles.moving import MovingOracle
from support.tracked_input import Change, OneProcess, RawBatch, TrackMaker, rows_of

N_WORLDS = 400 if current_budget().is_soak else 4
N_BATCHES = 7


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In memory where there is such a place: a snapshot is many small files, each of which waits for the disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as made:
        monkeypatch.setattr(tempfile, "tempdir", made)
        yield Path(made)


class StreamWorld:
    """A stream with its store, whose shards are called as tasks call them."""

    place_class: type[TrackedPlace] = TrackedPlace

    def __init__(self, folder: Path, n_shards: int, rules: TrackingRules) -> None:
        self.store, self.area, self.rules = Store(folder / "work"), TrackedArea("track"), rules
        self.shards, self.number, self.clock, self.mark = LiveShards(), 0, Clock(), ""
        layout = Layout(reserve_layout(self.store, self.area), 0, MECHANISM, n_shards)
        publish_layout(self.store, self.area, layout)
        self.place = self.place_class(self.store, str(folder / "host"), "track", rules, layout)

    def write(self, raw: RawBatch, draw: np.random.Generator) -> TrackedBatch:
        """Clean the rows in pieces and in any order, as tasks do, and write them down."""
        rows = in_blocks({MESSAGE: raw.messages, CHANGE: raw.changes, MOVE: raw.moves})
        rows = rows.take(pa.array(draw.permutation(rows.num_rows)))
        cleaner, half = RowCleaner(self.rules.space, DEFAULT_ANALYSIS.to_dict()), rows.num_rows // 2
        cleaned = pa.concat_tables([cleaner.clean(rows.slice(0, half)), cleaner.clean(rows.slice(half))])
        changes, moves, messages = (rows_in(cleaned, name) for name in (CHANGE, MOVE, MESSAGE))
        assert rows_in(cleaned, "bad").num_rows == 0
        return write_log(self.store, self.area, self.number, sequenced(changes, moves, messages, self.clock, self.rules))

    def calls(self, batch: TrackedBatch, is_saved: bool = False) -> list[TakeCall]:
        step, kinds = Step(self.number, batch.mark, self.mark), self.kinds(batch)
        return [
            TakeCall(self.place, shard, step, "told", "notes", kinds, is_saved) for shard in range(self.place.layout.n_shards)
        ]

    def kinds(self, batch: TrackedBatch) -> IdKinds:
        def kind(ids: pa.ChunkedArray) -> str:
            return "string" if pa.types.is_string(ids.type) else "bigint"

        return IdKinds(kind(batch.moves["id"]), kind(batch.messages["id"]))

    def done(self, batch: TrackedBatch) -> None:
        remove_old(self.place, self.number)
        self.number, self.clock, self.mark = self.number + 1, batch.ended, batch.mark

    def take(self, raw: RawBatch, draw: np.random.Generator) -> list[Change]:
        batch = self.write(raw, draw)
        found = [row for call in self.calls(batch) for row in told(call, self.shards)]
        self.done(batch)
        return sorted(found)

    def rebalance(self, n_shards: int) -> None:
        def ask(calls: Sequence[Call]) -> None:
            for call in calls:
                call.run(self.shards)

        layout = move_to(self.place, Wish(MECHANISM, n_shards, "wish"), self.number, ask)
        publish_layout(self.store, self.area, layout)
        assert layout_of(self.store, self.area, self.number) == layout
        self.place = replace(self.place, layout=layout)


def told(call: TakeCall, shards: LiveShards) -> list[Change]:
    return rows_of(table_of(call.run(shards)))


def rules_of(seed: int, space: str) -> TrackingRules:
    return TrackingRules(space, tick_seconds=(0.0, 1.0, 2.5)[seed % 3], lifetime_seconds=(0.0, 3.0)[seed % 2])


def oracle_of(rules: TrackingRules) -> OneProcess:
    return OneProcess(MovingOracle(rules.space), rules.space, rules.tick_seconds, rules.lifetime_seconds)


def test_shards_tell_what_one_process_tells_whatever_happens_to_them(folder: Path) -> None:
    """Batches that run again, lost processes, snapshots and other shards at random moments; hundreds of worlds in soak."""
    n_changes = 0
    for seed in range(N_WORLDS):
        draw, maker = np.random.default_rng([7, seed]), TrackMaker(seed)
        rules = rules_of(seed, maker.space)
        world = StreamWorld(folder / str(seed), int(draw.integers(1, 5)), rules)
        expected_of = oracle_of(rules)
        matcher_says = OneProcess(nc.MovingMatcher(space=rules.space), rules.space, rules.tick_seconds, rules.lifetime_seconds)
        for number in range(N_BATCHES):
            raw = maker.batch()
            expected = expected_of.take(raw)
            assert matcher_says.take(raw) == expected, (seed, number)
            if number and draw.random() < 0.25:
                world.rebalance(int(draw.integers(1, 6)))
            if draw.random() < 0.25:
                world.shards = LiveShards()
            batch = world.write(raw, draw)
            # A second try writes other words, but those of the first count.
            assert world.write(raw, draw).mark == batch.mark
            found = []
            for call in world.calls(batch, is_saved=bool(draw.random() < 0.3)):
                found += told(call, world.shards)
                if draw.random() < 0.3:
                    again = LiveShards() if draw.random() < 0.5 else world.shards
                    assert sorted(told(call, again)) == sorted(told(call, world.shards))
            assert sorted(found) == expected, (seed, number)
            n_changes += len(found)
            world.done(batch)
    assert n_changes > 50 * N_WORLDS


# --- what must go wrong, or the test above shows nothing -------------------------------------------------------------------


class WithoutClock(TrackedShard):
    """Goes by the times of what concerns it alone."""

    def _move(self, tick: Tick, moves: pa.Table, aside: list[pa.Table]) -> list[pa.Table]:
        return super()._move(tick, moves, aside) if moves.num_rows else []


class WithoutMessages(TrackedShard):
    """Is saved with its subscriptions and its clock, but without what is alive."""

    def save(self, folder: Path) -> None:
        bare = self._matcher.__class__(space=self._matcher._state.subscriptions.space.value)
        bare.take_over([(self._matcher, self._matcher.subscription_ids())])
        if self._matcher.now is not None:
            bare.advance(self._matcher.now)
        self._matcher, held = bare, self._matcher
        super().save(folder)
        self._matcher = held


class WithoutTimes(TrackedShard):
    """Takes every position, however old."""

    def _move(self, tick: Tick, moves: pa.Table, aside: list[pa.Table]) -> list[pa.Table]:
        self._times.forget(moves["id"].to_pylist())
        return super()._move(tick, moves, aside)


@pytest.mark.parametrize("kind", [TrackedShard, WithoutClock, WithoutMessages, WithoutTimes])
def test_without_what_makes_it_exact_it_is_not(folder: Path, kind: type[TrackedShard]) -> None:
    class Place(TrackedPlace):
        def new_engine(self, shard: int) -> TrackedShard:
            return kind(shard, self.layout.n_shards, self.rules.matcher())

        def open_engine(self, shard: int, folder: Path) -> TrackedShard:
            return kind.open(shard, self.layout.n_shards, folder)

    n_wrong = 0
    for seed in range(2, 3):
        draw, maker = np.random.default_rng(seed), TrackMaker(seed)
        rules = rules_of(seed, maker.space)
        world, expected_of = StreamWorld(folder / str(seed), 3, rules), oracle_of(rules)
        world.place = Place(world.store, str(folder / "host"), "track", rules, world.place.layout)
        for number in range(N_BATCHES):
            raw = maker.batch()
            batch = world.write(raw, draw)
            calls = world.calls(batch, is_saved=number % 3 == 0)
            n_wrong += sorted(row for call in calls for row in told(call, world.shards)) != expected_of.take(raw)
            world.done(batch)
            # From the snapshot and the log, always.
            world.shards = LiveShards()
    assert (n_wrong == 0) == (kind is TrackedShard)


def test_old_logs_and_snapshots_are_removed_and_a_layout_that_failed_is_not_taken_up(folder: Path) -> None:
    maker, draw = TrackMaker(2), np.random.default_rng(2)
    rules = rules_of(2, maker.space)
    world, expected_of = StreamWorld(folder, 2, rules), oracle_of(rules)
    for number in range(4):
        raw = maker.batch()
        batch = world.write(raw, draw)
        found = [row for call in world.calls(batch, is_saved=number == 1) for row in told(call, world.shards)]
        assert sorted(found) == expected_of.take(raw)
        world.done(batch)
    assert last_complete(world.place, 3) == 1
    assert world.store.names(f"{world.area.root}/log") == [f"{number:08d}.arrow" for number in (1, 2, 3)]

    def ask_and_die(calls: Sequence[Call]) -> None:
        for call in calls[:2]:
            call.run(world.shards)
        if len(calls) == 3:
            raise RuntimeError("died")

    with pytest.raises(RuntimeError, match="died"):
        move_to(world.place, Wish(MECHANISM, 3, "first"), world.number, ask_and_die)
    assert layout_of(world.store, world.area, world.number) == world.place.layout
    # Another wish must not find the shards of the first, which are cut otherwise.
    world.rebalance(5)
    assert world.place.layout.number == 3
    raw = maker.batch()
    assert world.take(raw, draw) == expected_of.take(raw)
    assert world.store.names(f"{world.area.root}/snapshots") == ["000003"]
