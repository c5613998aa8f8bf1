"""The experiment `ranked_stream` on a real session: lists are those of one process, and what shards send is counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import run_plan
from benchmarks.experiments import ranked_stream
from benchmarks.experiments.shared.answers import ranked_checksum
from benchmarks.metrics import METRICS
from benchmarks.record import read_records
from nearcast.errors import NearcastError
from nearcast.pipeline.store import StreamFolders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark_lists"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
PLAN = """
title = "Streams"
paper = "Nobody"
figure = "Figure 1"
claim = "All the same."
kind = "ranked_stream"
[workload]
name = "tweets"
vocabulary_size = 300
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_subscriptions = 40
n_messages = 20
life = 3
repetitions = 1
shards = 2
[vary]
parameter = "series.k"
tiny = [3]
[[series]]
method = "one_process"
label = "one process"
[[series]]
method = "prefix"
[check]
against = "one_process"
messages = 10
"""


def test_a_stream_is_measured_beside_one_process(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "streams.toml").write_text(PLAN)
    single, stream = read_records(run_plan(str(tmp_path / "streams.toml"), "tiny", tmp_path))
    assert single.facts["n_shards"] == 1
    assert stream.chunk_messages.tolist() == single.chunk_messages.tolist() == [20]
    assert stream.facts["check"]["pairs"] > 0
    assert all(METRICS[name].of(stream) is not None for name in ranked_stream.RankedStream.metrics)
    assert 1 <= stream.facts["copies_per_subscription"] <= 2
    assert 20 <= stream.facts["n_tuples"] <= 40
    assert stream.facts["n_reports"] > 0


def test_a_stream_with_other_changes_has_no_times(tmp_path: Path) -> None:
    columns = {"tick": [1, 1], "subscription_id": [5, 6], "message_id": [7, 7], "change": [1, 1], "score": [0.5, 0.25]}
    changes = pa.table(columns)
    expected = (ranked_checksum(changes), 2)
    for number, rows in enumerate(([0], [1])):
        folder = tmp_path / StreamFolders("rank").deliveries / "batch=0"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(changes.take(rows), folder / f"part-{number}.parquet")
    ranked_stream.compare_deliveries("mine", tmp_path, [expected])
    with pytest.raises(NearcastError, match=r"'mine' reports 2 changes of batch 0 .* its times are worth nothing"):
        ranked_stream.compare_deliveries("mine", tmp_path, [(expected[0] + 1, 2)])
