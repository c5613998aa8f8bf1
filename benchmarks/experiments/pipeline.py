"""The pipeline: a stream of messages on local Spark, Parquet in and out, batch by batch; `method` says what a batch does.

All methods read the same files and write the same kind of files from `foreachBatch`. "nearcast" matches as the pipeline does;
"identity" only passes the messages through Python; the others are SQL that gives the same answer without an index. The time of
a batch is the one that Spark reports, from asking for offsets to the commit, without the first batches, which start processes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.experiments import Experiment
from benchmarks.experiments.shared.answers import sorted_answer
from benchmarks.peers.peer import with_rarest
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError
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
    from pyspark.sql import Column, DataFrame, SparkSession

METHODS = ("nearcast", "identity", "sql_plain", "sql_clever")
_WARM_BATCHES = 2
_FILES_PER_BATCH = 2
_MASTER = "local[2]"
# Columns and rows of the grid that "sql_clever" divides the unit square by.
_GRID = 64
Batch = Callable[["DataFrame", int], None]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of a series: messages in a batch, batches that are measured, and settings of the pipeline."""

    batch: int
    batches: int
    settings: Mapping[str, Any]


class Pipeline(Experiment[Parameters]):
    """The deliveries of the first batch are compared with those of one process."""

    subject = "method"
    methods = METHODS
    metrics = ("messages_per_second", "us_per_message", "p50_batch_ms")

    def read_parameters(self, series: Series) -> Parameters:
        settings = dict(series.parameters)
        batch, batches = settings.pop("batch", self.point.size.chunk), settings.pop("batches", self.point.size.repetitions)
        return Parameters(int(batch), int(batches), settings)

    def prepare(self) -> None:
        self.session = local_session("nearcast benchmarks", _MASTER)
        folder = self.resources.enter_context(tempfile.TemporaryDirectory(prefix="nearcast-bench-"))
        self.setup = _Setup(self.plan, self.point, Path(folder))

    def measure(self, series: Series) -> Record:
        setup, parameters = self.setup, self.parameters[series.label]
        size, n_batches = parameters.batch, parameters.batches
        n_warm = min(_WARM_BATCHES, n_batches)
        source = setup.files(n_batches + n_warm, size)
        work = setup.folder / f"{series.subject}-{size}"
        method, facts = _METHODS[series.subject](self.session, setup, parameters.settings, work)
        news = _run(self.session, source, method, work)
        n_rows = [batch.rows for batch in news]
        if n_rows != [size] * (n_batches + n_warm):
            raise NearcastError(f"{series.label!r} got batches of {n_rows} messages; expected {size} in each")
        facts |= {"workload": setup.workload_facts, "n_subscriptions": setup.subscriptions.num_rows, "master": _MASTER}
        if series.subject != "identity":
            facts["check"] = _check(setup, series.label, work, source, self.plan.check.messages)
        seconds = np.array([[batch.batch_seconds for batch in news[n_warm:]]])
        return Record(facts, seconds, np.full(n_batches, size, np.int64))


EXPERIMENT = Pipeline


class _Setup:
    """The tables of a point, and files of them."""

    def __init__(self, plan: Plan, point: Point, folder: Path) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        self.space = workload.space
        self.workload_facts = workload.describe()
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self.messages = workload.messages(point.size.n_messages, plan.seed).drop_columns(["time"])
        self.history = workload.history(point.size.n_history).drop_columns(["time"])
        self.folder = folder
        self.subscriptions_file = folder / "subscriptions.parquet"
        pq.write_table(self.subscriptions, self.subscriptions_file)

    def files(self, n_batches: int, size: int) -> Path:
        """A folder with the messages of `n_batches` batches; each is a few files, for as many tasks."""
        target = self.folder / f"messages-{size}-{n_batches}"
        target.mkdir(exist_ok=True)
        step = max(1, -(-size // _FILES_PER_BATCH))
        for batch in range(n_batches):
            for part, first in enumerate(range(0, size, step)):
                rows = (np.arange(first, min(size, first + step)) + batch * size) % self.messages.num_rows
                pq.write_table(self.messages.take(pa.array(rows)), target / f"{batch:05d}-{part}.parquet")
        return target


def _run(session: SparkSession, source: Path, method: Batch, work: Path) -> list[StreamNews]:
    """Run the stream over all files, a few at a time; what Spark reports about each batch."""
    schema = session.read.parquet(str(source)).schema
    reader = session.readStream.schema(schema).option("maxFilesPerTrigger", _FILES_PER_BATCH)
    writer = reader.parquet(str(source)).writeStream.foreachBatch(method)
    stream = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True).start()
    stream.awaitTermination()
    return [read_news(progress.json) for progress in stream.recentProgress if progress.numInputRows]


# --- SQL without an index: what a data engineer writes. For comparison only -----------------------------------------------


def join_plain(messages: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Explode the keywords, join on the rarest, filter box and remaining keywords."""
    from pyspark.sql import functions as F  # noqa: N812

    exploded = messages.withColumn("keyword", F.explode(F.array_distinct("keywords")))
    joined = exploded.alias("m").join(subscriptions.alias("s"), F.col("m.keyword") == F.col("s.rarest"))
    return _matches_of(joined)


def join_clever(messages: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """The same join on the rarest keyword and a cell of a grid; boxes are filed in every cell they touch."""
    from pyspark.sql import functions as F  # noqa: N812

    def column(x: str, y: str) -> Column:
        return F.floor(F.col(x) * _GRID) * 100_000 + F.floor(F.col(y) * _GRID)

    exploded = messages.withColumn("keyword", F.explode(F.array_distinct("keywords"))).withColumn("cell", column("x", "y"))
    xs = F.sequence(F.floor(F.col("x0") * _GRID), F.floor(F.col("x1") * _GRID))
    ys = F.sequence(F.floor(F.col("y0") * _GRID), F.floor(F.col("y1") * _GRID))
    filed = subscriptions.withColumn("cx", F.explode(xs)).withColumn("cy", F.explode(ys))
    filed = filed.withColumn("cell", F.col("cx") * 100_000 + F.col("cy"))
    same = (F.col("m.keyword") == F.col("s.rarest")) & (F.col("m.cell") == F.col("s.cell"))
    return _matches_of(exploded.alias("m").join(filed.alias("s"), same))


def _matches_of(joined: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    is_inside = F.col("m.x").between(F.col("s.x0"), F.col("s.x1")) & F.col("m.y").between(F.col("s.y0"), F.col("s.y1"))
    has_all = F.size(F.array_except("s.keywords", "m.keywords")) == 0
    matches = joined.where(is_inside & has_all)
    return matches.select(F.col("m.id").alias("message_id"), F.col("s.id").alias("subscription_id"))


# --- methods -------------------------------------------------------------------------------------------------------------


def _with_nearcast(
    session: SparkSession, setup: _Setup, settings: Mapping[str, Any], work: Path
) -> tuple[Batch, dict[str, Any]]:
    pipeline = PipelineSettings(work=str(work), shared_dir=str(work / "host"), space=setup.space, **settings)
    words, counts = pc.value_counts(setup.history["keywords"].combine_chunks().flatten()).flatten()
    frequency = np.asarray(counts).astype(np.int64)
    statistics = KeywordStatistics.from_counts(words, frequency, setup.history.num_rows, pipeline.analysis)
    sample = setup.subscriptions.slice(0, pipeline.plan_rows)
    plan = plan_shards(sample, setup.history, statistics, pipeline, setup.subscriptions.num_rows)
    publish_plan(pipeline.store, plan)
    version = build_index(session, session.read.parquet(str(setup.subscriptions_file)), pipeline)
    return BatchRunner(pipeline), {"mechanism": plan.mechanism, "n_shards": plan.n_shards, "bytes": version.n_bytes}


def _with_identity(
    session: SparkSession, setup: _Setup, settings: Mapping[str, Any], work: Path
) -> tuple[Batch, dict[str, Any]]:
    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def run(messages: DataFrame, batch: int) -> None:
        messages.mapInArrow(pass_on, messages.schema).write.mode("overwrite").parquet(str(work / "out" / f"batch={batch}"))

    return run, {}


def _with_sql(
    join: Callable[[DataFrame, DataFrame], DataFrame], prepare: Callable[[_Setup], pa.Table]
) -> Callable[[Any, _Setup, Mapping[str, Any], Path], tuple[Batch, dict[str, Any]]]:
    def method(session: SparkSession, setup: _Setup, settings: Mapping[str, Any], work: Path) -> tuple[Batch, dict[str, Any]]:
        work.mkdir(parents=True)
        pq.write_table(prepare(setup), work / "filed.parquet")
        # In memory, and counted once before the first batch, as in a job that runs all day.
        filed = session.read.parquet(str(work / "filed.parquet")).repartition(2).cache()
        filed.count()

        def run(messages: DataFrame, batch: int) -> None:
            join(messages, filed).write.mode("overwrite").parquet(str(work / "streams/match/deliveries" / f"batch={batch}"))

        return run, {}

    return method


def _with_rarest(setup: _Setup) -> pa.Table:
    return with_rarest(setup.subscriptions, setup.history)


_METHODS: dict[str, Callable[[Any, _Setup, Mapping[str, Any], Path], tuple[Batch, dict[str, Any]]]] = {
    "nearcast": _with_nearcast,
    "identity": _with_identity,
    "sql_plain": _with_sql(join_plain, _with_rarest),
    "sql_clever": _with_sql(join_clever, _with_rarest),
}


def _check(setup: _Setup, label: str, work: Path, source: Path, n_checked: int) -> dict[str, Any]:
    """Compare the deliveries of some messages of the first batch with those of one process."""
    first = pq.read_table(sorted(source.glob("00000-*.parquet"))[0]).slice(0, n_checked)
    matcher = Matcher("auto", setup.space)
    matcher.subscribe_table(setup.subscriptions)
    expected = matcher.match_table(first)
    delivered = pq.read_table(work / "streams/match/deliveries/batch=0", partitioning=None)
    delivered = delivered.filter(pc.is_in(delivered["message_id"], value_set=first["id"].combine_chunks()))
    if not sorted_answer(delivered).equals(sorted_answer(expected)):
        raise NearcastError(
            f"{label!r} delivers {delivered.num_rows} pairs of {first.num_rows} messages where one process delivers "
            f"{expected.num_rows}; its times are worth nothing: correct it first"
        )
    return {"against": "Matcher", "messages": first.num_rows, "pairs": expected.num_rows, "equal": True}
