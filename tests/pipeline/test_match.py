"""The pipeline on a real session gives the deliveries of one process, batch by batch, whatever happens to its tasks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.index.deltas import pack_deltas, publish_changes
from nearcast.pipeline.index.step import build_index
from nearcast.pipeline.index.version import current_index, leased_numbers
from nearcast.pipeline.io.sinks import ParquetSink, without_repeats
from nearcast.pipeline.io.sources import read_messages, read_subscriptions
from nearcast.pipeline.match.stream import BatchRunner, start_match
from nearcast.pipeline.plan.step import make_plan
from nearcast.pipeline.prepare.step import HISTORY, prepare
from nearcast.pipeline.rebalance import rebalance
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings
from nearcast.pipeline.status import read_batches, stream_status
from nearcast.pipeline.store import StreamFolders
from nearcast.testing.budget import current_budget
from nearcast.workloads import open_workload
from support.pipelines import make_messages, make_subscriptions, plan_for, publish_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

N_BATCHES = 3
FEW = [("spatial_first", 3, "route", 60), ("keyword", 8, "auto", 150)]
ALL = [
    (mechanism, n_shards, spread, size)
    for mechanism in MECHANISMS
    for n_shards in (1, 3, 8)
    for spread, size in (("route", 37), ("everywhere", 200), ("auto", 1000))
]
CELLS = ALL if current_budget().is_soak else FEW


def pairs(table: pa.Table) -> list[tuple[object, object]]:
    return sorted(zip(table["message_id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))


class Setup:
    """Raw messages in files, one per batch; subscriptions that change; one matcher that says what is right."""

    space = "plane"

    def __init__(self, spark: SparkSession, tmp_path: Path, size: int = 100, **overrides: object) -> None:
        self.spark = spark
        self.size = size
        self.raw = tmp_path / "raw"
        self.raw.mkdir()
        self.settings = PipelineSettings(
            work=str(tmp_path / "work"),
            shared_dir=str(tmp_path / "host"),
            space=self.space,
            messages=str(self.raw),
            messages_options={"maxFilesPerTrigger": 1},
            subscriptions=str(tmp_path / "subscriptions.parquet"),
            **overrides,  # type: ignore[arg-type]
        )
        self.subscriptions = self.make_subscriptions(150, 0)
        pq.write_table(self.subscriptions, self.settings.subscriptions)
        self.matcher = nc.Matcher(space=self.space)
        self.matcher.subscribe_table(self.subscriptions)
        self.expected: list[tuple[object, object]] = []
        self.n_files = 0

    def publish_here(self) -> None:
        """An index, without Spark."""
        self.add_messages()
        history = make_messages(200, 1)
        publish_here(self.settings, plan_for(self.subscriptions, history, self.settings), self.subscriptions)
        self.settings.store.write_table(f"{HISTORY}/0.parquet", history)

    def publish(self) -> None:
        """All steps before the stream."""
        self.add_messages()
        prepare(self.spark, read_messages(self.spark, self.settings, is_stream=False), self.settings)
        subscriptions = read_subscriptions(self.spark, self.settings)
        make_plan(subscriptions, self.settings)
        build_index(self.spark, subscriptions, self.settings)

    def add_messages(self) -> None:
        messages = self.make_messages(self.n_files)
        pq.write_table(messages, self.raw / f"{self.n_files:04d}.parquet")
        self.n_files += 1
        self.expected += pairs(self.matcher.match_table(messages))

    def make_subscriptions(self, n: int, seed: int, first_id: int = 0) -> pa.Table:
        return make_subscriptions(n, seed, first_id)

    def make_messages(self, batch: int) -> pa.Table:
        return make_messages(self.size, 100 + batch, first_id=10_000 * batch)

    def change(self) -> None:
        """Some subscriptions change, some are new, some go."""
        first = 30 * self.n_files
        changed = self.make_subscriptions(40, self.n_files, first_id=first + 120)
        gone = self.subscriptions["id"].slice(first, 20).to_pylist()
        rows = changed.append_column("change", pa.array([1] * 40, pa.int8()))
        removed = pa.table({"id": gone, "change": pa.array([-1] * len(gone), pa.int8())})
        publish_changes(pa.concat_tables([rows, removed], promote_options="default"), self.settings)
        self.matcher.unsubscribe(gone)
        self.matcher.subscribe_table(changed)

    def run(self, messages: DataFrame | None = None) -> None:
        frame = read_messages(self.spark, self.settings, is_stream=True) if messages is None else messages
        start_match(frame, self.settings).awaitTermination()

    def check(self) -> None:
        delivered = pq.read_table(Path(self.settings.work) / StreamFolders("match").deliveries)
        assert pairs(delivered) == sorted(self.expected)
        batches = read_batches(self.settings)
        assert [batch.batch for batch in batches] == list(range(self.n_files))
        assert sum(batch.deliveries for batch in batches) == len(self.expected)
        assert sum(batch.read for batch in batches) == self.size * self.n_files


class IncidentScene(Setup):
    """The same with real reports."""

    space = "lonlat"

    def __init__(self, spark: SparkSession, tmp_path: Path, size: int, **overrides: object) -> None:
        self.workload = open_workload("incidents", folder=os.environ["NEARCAST_DATA"], range_high=20.0)
        super().__init__(spark, tmp_path, size, **overrides)

    def make_subscriptions(self, n: int, seed: int, first_id: int = 0) -> pa.Table:
        table = self.workload.subscriptions(n, seed)
        return table.set_column(0, "id", pa.array(range(first_id, first_id + n)))

    def make_messages(self, batch: int) -> pa.Table:
        stream = self.workload.messages(self.size * 10).drop_columns(["time"])
        return stream.slice(self.size * batch, self.size)


@pytest.mark.skipif("NEARCAST_DATA" not in os.environ or not current_budget().is_soak, reason="real data: make soak")
@pytest.mark.parametrize(("mechanism", "n_shards", "spread", "size"), ALL if current_budget().is_soak else FEW[:1])
def test_real_reports_are_delivered_as_by_one_process(
    spark: SparkSession, tmp_path: Path, mechanism: str, n_shards: int, spread: str, size: int
) -> None:
    setup = IncidentScene(spark, tmp_path, size, mechanism=mechanism, shards=n_shards, spread=spread)
    setup.publish()
    setup.run()
    for _ in range(N_BATCHES):
        setup.change()
        setup.add_messages()
        setup.run()
    setup.check()
    assert len(setup.expected) > 0


@pytest.mark.parametrize(("mechanism", "n_shards", "spread", "size"), CELLS)
def test_the_stream_delivers_what_one_process_delivers_while_subscriptions_change(
    spark: SparkSession, tmp_path: Path, mechanism: str, n_shards: int, spread: str, size: int
) -> None:
    setup = Setup(spark, tmp_path, size, mechanism=mechanism, shards=n_shards, spread=spread, keep_versions=1)
    setup.publish()
    setup.run()
    for number in range(N_BATCHES):
        setup.change()
        if number == 1:
            pack_deltas(spark, setup.settings)
            assert current_index(setup.settings.store).deltas == ()
        setup.add_messages()
        setup.run()
    setup.check()
    # Old versions went as the stream left them behind.
    assert len(setup.settings.store.names("index")) <= 4
    assert len(leased_numbers(setup.settings.store)) == 1


def test_failed_tasks_a_deleted_cache_and_a_rebalance_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    setup = Setup(spark, tmp_path, 300, mechanism="location", shards=3, spread="route")
    setup.publish_here()
    failing = read_messages(spark, setup.settings, is_stream=True)
    failing = failing.mapInArrow(fail_first_tries(str(tmp_path / "failed")), failing.schema)
    setup.run(failing)
    assert (tmp_path / "failed").read_text() == "failed\n"
    shutil.rmtree(setup.settings.shared_dir)
    setup.add_messages()
    setup.run()
    before = stream_status(setup.settings)
    assert before.version.n_shards == 3
    assert sum(work.deliveries for work in before.work.values()) == len(setup.expected)
    rebalanced = rebalance(spark, setup.settings, n_shards=4)
    assert rebalanced.n_shards == 4
    setup.change()
    for _ in range(2):
        setup.add_messages()
        setup.run()
    assert rebalance(spark, setup.settings, n_shards=2).n_shards == 2
    setup.add_messages()
    setup.run()
    setup.check()
    assert {len(batch.work) for batch in read_batches(setup.settings)} <= {2, 3, 4}


def fail_first_tries(marker: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step that gives its first rows, then fails, until it has failed once."""

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 10)
            if not Path(marker).exists():
                Path(marker).write_text("failed\n")
                raise RuntimeError("this task must fail")
            yield batch.slice(10)

    return step


def test_a_batch_that_runs_again_leaves_no_second_trace(spark: SparkSession, tmp_path: Path) -> None:
    setup = Setup(spark, tmp_path, 200, mechanism="prefix", shards=3)
    setup.publish_here()
    frame = read_messages(spark, setup.settings, is_stream=False)
    sink = ParquetSink(setup.settings.store, StreamFolders("match").deliveries)
    # As if the process had died after the write and before the move.
    with pytest.raises(RuntimeError, match="died"):
        BatchRunner(setup.settings, DyingSink(sink.store, sink.folder))(frame, 0)
    assert not sink.has(0)
    # The subscriptions change; the batch still sees the version it pinned.
    expected = list(setup.expected)
    setup.change()
    runner = BatchRunner(setup.settings)
    runner(frame, 0)
    runner(frame, 0)
    delivered = pq.read_table(Path(setup.settings.work) / StreamFolders("match").deliveries)
    assert pairs(delivered) == sorted(expected)


class DyingSink(ParquetSink):
    def commit(self, batch: int, staging: str) -> None:
        raise RuntimeError("died")


def test_other_sinks_may_repeat_and_readers_can_tell(spark: SparkSession, tmp_path: Path) -> None:
    out = str(tmp_path / "deliveries.json")
    setup = Setup(spark, tmp_path, 200, mechanism="hashing", shards=2, sink_format="json", sink=out)
    setup.publish_here()
    frame = read_messages(spark, setup.settings, is_stream=False)
    runner = BatchRunner(setup.settings)
    runner(frame, 0)
    runner(frame, 0)
    appended = spark.read.json(out)
    assert appended.count() == 2 * len(setup.expected)
    delivered = pa.Table.from_pandas(without_repeats(appended).toPandas(), preserve_index=False)
    assert pairs(delivered) == sorted(setup.expected)


def test_bad_rows_of_a_stream_are_quarantined_and_the_stream_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"id": 1, "text": "w1 w2 w3", "x": 0.0, "y": 0.0}', '{"id": 2, "text": "w1"', '{"id": 3, "text": "w1", "x": 1.0}']
    lines.append(f'{{"id": 4, "text": "{"w" * 1_100_000}", "x": 1.0, "y": 1.0}}')
    setup = Setup(spark, tmp_path, 50, mechanism="keyword", shards=2)
    setup.publish_here()
    shutil.rmtree(setup.raw)
    setup.raw.mkdir()
    json_settings = replace(
        setup.settings, messages_format="json", messages_schema="id long, text string, x double, y double", stream="json"
    )
    for number in range(2):
        (setup.raw / f"{number}.json").write_text("\n".join(lines) + "\n")
    start_match(read_messages(spark, json_settings, is_stream=True), json_settings).awaitTermination()
    batches = read_batches(json_settings)
    assert [(batch.read, batch.quarantined) for batch in batches] == [(4, 3), (4, 3)]
    quarantine = pq.read_table(Path(json_settings.work) / StreamFolders("json").quarantine)
    assert quarantine.num_rows == 6
    delivered = pq.read_table(Path(json_settings.work) / StreamFolders("json").deliveries)
    expected = setup.matcher.publish([nc.Message(1, text="w1 w2 w3", location=(0.0, 0.0))])
    assert sorted(delivered["subscription_id"].to_pylist()) == sorted([one.subscription_id for one in expected] * 2)
    assert len(expected) > 0


def test_a_stream_without_an_index_or_batches_is_told(spark: SparkSession, tmp_path: Path) -> None:
    setup = Setup(spark, tmp_path, 10)
    setup.add_messages()
    with pytest.raises(nc.NearcastError, match="run: nearcast pipeline index"):
        setup.run()
    setup.publish_here()
    with pytest.raises(nc.NearcastError, match="run first: nearcast pipeline match"):
        stream_status(setup.settings)
    setup.run()
    setup.settings.store.delete(StreamFolders("match").checkpoint)
    with pytest.raises(nc.NearcastError, match="give the stream another name"):
        setup.run()
