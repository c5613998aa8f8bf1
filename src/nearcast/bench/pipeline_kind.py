"""Kind "pipeline": a stream of messages on local Spark, Parquet in and out, batch by batch; `method` says what a batch does.

All methods read the same files and write the same kind of files from `foreachBatch`. "nearcast" matches as the pipeline does;
"identity" only takes the messages through Python; the others are the SQL that the same answer takes without an index. Timed is
a whole batch as Spark reports it, from asking for offsets to the commit; the first batches, which start processes, aside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.bench.peers.peer import with_rarest
from nearcast.bench.pipeline_sql import join_clever, join_plain
from nearcast.bench.plan import Plan, Point, Series
from nearcast.bench.record import Record
from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError, PlanError
from nearcast.pipeline.index.step import build_index
from nearcast.pipeline.match.stream import BatchRunner
from nearcast.pipeline.plan.shard_plan import publish_plan
from nearcast.pipeline.plan.step import plan_shards
from nearcast.pipeline.prepare.keyword_statistics import KeywordStatistics
from nearcast.pipeline.progress import StreamNews, read_news
from nearcast.pipeline.session import local_session
from nearcast.pipeline.settings import PipelineSettings
from nearcast.workloads import open_workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

METHODS = ("nearcast", "identity", "sql_plain", "sql_clever")
_WARM_BATCHES = 2
_FILES_PER_BATCH = 2
_MASTER = "local[2]"
Batch = Callable[["DataFrame", int], None]


class _Scene:
    """The tables of a point, and files of them."""

    def __init__(self, plan: Plan, point: Point, folder: Path) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        self.space = workload.space
        self.described = workload.describe()
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self.messages = workload.messages(point.size.n_messages, plan.seed).drop_columns(["time"])
        self.history = workload.history(point.size.n_history).drop_columns(["time"])
        self.folder = folder
        self.subscriptions_file = folder / "subscriptions.parquet"
        pq.write_table(self.subscriptions, self.subscriptions_file)

    def files(self, n_batches: int, size: int) -> Path:
        """A folder with the messages of so many batches; each is a few files, for as many tasks."""
        target = self.folder / f"messages-{size}-{n_batches}"
        target.mkdir(exist_ok=True)
        step = max(1, -(-size // _FILES_PER_BATCH))
        for batch in range(n_batches):
            for part, first in enumerate(range(0, size, step)):
                rows = (np.arange(first, min(size, first + step)) + batch * size) % self.messages.num_rows
                pq.write_table(self.messages.take(pa.array(rows)), target / f"{batch:05d}-{part}.parquet")
        return target


def measure_pipeline(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series; `batch` messages at a time, `batches` of them measured."""
    for series in point.series:
        if series.subject not in METHODS:
            raise PlanError(f"method {series.subject!r} of {plan.name!r}: expected one of {', '.join(METHODS)}")
    say("generating")
    session = local_session("nearcast bench", _MASTER)
    records = []
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as folder:
        scene = _Scene(plan, point, Path(folder))
        for series in point.series:
            say(series.label)
            records.append(_measure_series(session, scene, series, point, plan.check.messages))
    return records


def _measure_series(session: SparkSession, scene: _Scene, series: Series, point: Point, n_checked: int) -> Record:
    size = int(series.parameters.get("batch", point.size.chunk))
    n_batches = int(series.parameters.get("batches", point.size.repetitions))
    n_warm = min(_WARM_BATCHES, n_batches)
    source = scene.files(n_batches + n_warm, size)
    work = scene.folder / f"{series.subject}-{size}"
    method, facts = _METHODS[series.subject](session, scene, series.parameters, work)
    news = _run(session, source, method, work)
    if [one.rows for one in news] != [size] * (n_batches + n_warm):
        raise NearcastError(f"{series.label!r} got batches of {[one.rows for one in news]} messages; expected {size} in each")
    facts |= {"workload": scene.described, "n_subscriptions": scene.subscriptions.num_rows, "master": _MASTER}
    if series.subject != "identity":
        facts["check"] = _check(scene, series.label, work, source, n_checked)
    seconds = np.array([[one.batch_seconds for one in news[n_warm:]]])
    return Record(facts, seconds, np.full(n_batches, size, np.int64))


def _run(session: SparkSession, source: Path, method: Batch, work: Path) -> list[StreamNews]:
    """The stream over all files, a few at a time; what Spark says about each batch."""
    schema = session.read.parquet(str(source)).schema
    reader = session.readStream.schema(schema).option("maxFilesPerTrigger", _FILES_PER_BATCH)
    writer = reader.parquet(str(source)).writeStream.foreachBatch(method)
    stream = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True).start()
    stream.awaitTermination()
    return [read_news(progress.json) for progress in stream.recentProgress if progress.numInputRows]


# --- methods -------------------------------------------------------------------------------------------------------------


def _with_nearcast(
    session: SparkSession, scene: _Scene, parameters: Mapping[str, Any], work: Path
) -> tuple[Batch, dict[str, Any]]:
    given = {name: value for name, value in parameters.items() if name not in ("batch", "batches")}
    settings = PipelineSettings(work=str(work), shared_dir=str(work / "host"), space=scene.space, **given)
    counted = pc.value_counts(scene.history["keywords"].combine_chunks().flatten()).flatten()
    frequency = np.asarray(counted[1]).astype(np.int64)
    statistics = KeywordStatistics.from_counts(counted[0], frequency, scene.history.num_rows, settings.analysis)
    sample = scene.subscriptions.slice(0, settings.plan_rows)
    plan = plan_shards(sample, scene.history, statistics, settings, scene.subscriptions.num_rows)
    publish_plan(settings.store, plan)
    version = build_index(session, session.read.parquet(str(scene.subscriptions_file)), settings)
    return BatchRunner(settings), {"mechanism": plan.mechanism, "n_shards": plan.n_shards, "bytes": version.n_bytes}


def _with_identity(
    session: SparkSession, scene: _Scene, parameters: Mapping[str, Any], work: Path
) -> tuple[Batch, dict[str, Any]]:
    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def run(messages: DataFrame, batch: int) -> None:
        messages.mapInArrow(pass_on, messages.schema).write.mode("overwrite").parquet(str(work / "out" / f"batch={batch}"))

    return run, {}


def _with_sql(
    join: Callable[[DataFrame, DataFrame], DataFrame], prepare: Callable[[_Scene], pa.Table]
) -> Callable[[Any, _Scene, Mapping[str, Any], Path], tuple[Batch, dict[str, Any]]]:
    def method(session: SparkSession, scene: _Scene, parameters: Mapping[str, Any], work: Path) -> tuple[Batch, dict[str, Any]]:
        work.mkdir(parents=True)
        pq.write_table(prepare(scene), work / "filed.parquet")
        # As a job that runs all day would have them: in memory, counted once before the first batch.
        filed = session.read.parquet(str(work / "filed.parquet")).repartition(2).cache()
        filed.count()

        def run(messages: DataFrame, batch: int) -> None:
            join(messages, filed).write.mode("overwrite").parquet(str(work / "streams/match/deliveries" / f"batch={batch}"))

        return run, {}

    return method


def _with_rarest(scene: _Scene) -> pa.Table:
    return with_rarest(scene.subscriptions, scene.history)


_METHODS: dict[str, Callable[[Any, _Scene, Mapping[str, Any], Path], tuple[Batch, dict[str, Any]]]] = {
    "nearcast": _with_nearcast,
    "identity": _with_identity,
    "sql_plain": _with_sql(join_plain, _with_rarest),
    "sql_clever": _with_sql(join_clever, _with_rarest),
}


def _check(scene: _Scene, label: str, work: Path, source: Path, n_checked: int) -> dict[str, Any]:
    """The deliveries of some messages of the first batch, against one process."""
    first = pq.read_table(sorted(source.glob("00000-*.parquet"))[0]).slice(0, n_checked)
    matcher = Matcher("auto", scene.space)
    matcher.subscribe_table(scene.subscriptions)
    expected = matcher.match_table(first)
    found = pq.read_table(work / "streams/match/deliveries/batch=0", partitioning=None)
    found = found.filter(pc.is_in(found["message_id"], value_set=first["id"].combine_chunks()))
    order = [("message_id", "ascending"), ("subscription_id", "ascending")]
    if not found.sort_by(order).combine_chunks().equals(expected.sort_by(order).combine_chunks()):
        raise NearcastError(
            f"{label!r} delivers {found.num_rows} pairs of {first.num_rows} messages where one process delivers "
            f"{expected.num_rows}; its times are worth nothing: correct it first"
        )
    return {"against": "Matcher", "messages": first.num_rows, "pairs": expected.num_rows, "equal": True}
