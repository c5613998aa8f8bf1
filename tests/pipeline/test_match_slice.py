"""The pipeline on a real local Spark session gives the single process's deliveries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.job import match_messages
from nearcast.pipeline.match_step import match_step
from nearcast.pipeline.sample_run import run_sample
from nearcast.workloads import open_workload, sample_messages, sample_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def pairs(table: pa.Table) -> list[tuple[object, object]]:
    return sorted(zip(table["message_id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))


def test_the_sample_run_delivers_what_one_process_delivers(spark: SparkSession, tmp_path: Path) -> None:
    stages: list[str] = []
    summary = run_sample(tmp_path, stages.append, n_examples=3)
    matcher = nc.Matcher()
    matcher.subscribe_table(sample_subscriptions())
    expected = matcher.match_table(sample_messages().select(["id", "text", "x", "y"]))
    assert pairs(pq.read_table(summary.deliveries_folder)) == pairs(expected)
    assert summary.deliveries == expected.num_rows > 1000
    assert len(summary.examples) == 3
    assert len(stages) == 3


@pytest.mark.parametrize("index", ["scan", "keyword_first", "spatial_first"])
def test_numeric_ids_and_keywords_pass_through_spark(spark: SparkSession, tmp_path: Path, index: str) -> None:
    workload = open_workload("tweets", vocabulary_size=2000, frequencies="curve", pool=100_000)
    matcher = nc.Matcher(index=index, space="plane")
    matcher.subscribe_table(workload.subscriptions(2000))
    matcher.save(tmp_path / "index")
    messages = workload.messages(3000).drop_columns(["time"])
    pq.write_table(messages, tmp_path / "messages.parquet", row_group_size=500)
    frame = match_messages(spark.read.parquet(str(tmp_path / "messages.parquet")), str(tmp_path / "index"), "long")
    found = pa.Table.from_pandas(frame.toPandas(), preserve_index=False)
    expected = matcher.match_table(messages)
    assert pairs(found) == pairs(expected)
    assert expected.num_rows > 0


def test_the_step_needs_no_spark(tmp_path: Path) -> None:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe([nc.Subscription("s", keywords=["rain"], region=nc.Box(0, 0, 1, 1))])
    matcher.save(tmp_path / "index")
    batch = pa.record_batch({"id": [1, 2], "keywords": [["rain"], ["sun"]], "x": [0.5, 0.5], "y": [0.5, 0.5]})
    out = pa.Table.from_batches(match_step(str(tmp_path / "index"))([batch]))
    assert pairs(out) == [(1, "s")]
