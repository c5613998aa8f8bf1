"""Steps "rank" and "track" between topics: everything in comes as records, every change goes out as one, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.pipeline.ranked import sources as ranked_sources
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.ranked.stream import start_rank
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.status import read_batches
from nearcast.pipeline.tracked import sources as tracked_sources
from nearcast.pipeline.tracked.stream import start_track
from nearcast.topics.files import FileTopic
from nearcast.topics.records import Record, ended_record, message_record, move_record, put_record
from support.ranked_input import StreamMaker, changes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark_lists"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def topic_settings(folder: Path, stream: str, **overrides: Any) -> PipelineSettings:
    one_file = {"maxFilesPerTrigger": 1}
    return PipelineSettings(
        work=str(folder / "work"),
        shared_dir=str(folder / "host"),
        space="plane",
        shards=2,
        stream=stream,
        messages=f"file://{folder}/messages",
        messages_format="topic",
        messages_options=one_file,
        changes=f"file://{folder}/subscriptions",
        changes_format="topic",
        changes_options=one_file,
        moves=f"file://{folder}/moves",
        moves_format="topic",
        moves_options=one_file,
        sink=f"file://{folder}/changes",
        sink_format="topic",
        **overrides,
    )


def read_delivered(folder: Path) -> list[dict[str, Any]]:
    events = [json.loads(value) for value in FileTopic(folder / "changes").read("", 10**6).values]
    assert len({event["id"] for event in events}) == len(events)
    assert {event["type"] for event in events} <= {"io.nearcast.change"}
    assert all(event["subject"] == event["data"]["subscription"] for event in events)
    return [event["data"] for event in events]


def with_text_ids(table: pa.Table, letter: str) -> pa.Table:
    """Ids of topics are texts; these are in the order of the numbers."""
    ids = pa.array([f"{letter}{number:06d}" for number in table["id"].to_pylist()], pa.string())
    return table.set_column(table.schema.get_field_index("id"), "id", ids)


def test_lists_change_from_topic_to_topic(spark: SparkSession, tmp_path: Path) -> None:
    settings = topic_settings(tmp_path, "rank", max_distance=14.0, mechanism="prefix", window_messages=25)
    ranker = nc.Ranker(**RankingRules.of(settings).engine_settings(settings.store))
    expected = []
    for number, batch in enumerate(StreamMaker(5).batches(3)):
        put, messages = with_text_ids(batch.put, "s"), with_text_ids(batch.messages, "m")
        gone = [f"s{id:06d}" for id in batch.removed.to_pylist()]
        records = [put_record("/test", str(number), row) for row in put.to_pylist()]
        records += [ended_record("/test", str(number), id) for id in gone]
        FileTopic(tmp_path / "subscriptions").append([*records, Record("", b"nonsense")])
        FileTopic(tmp_path / "messages").append([message_record("/test", row) for row in messages.to_pylist()])
        expected += changes_of(ranker, RankedBatch.of(put, pa.array(gone, pa.string()), messages))
    start_rank(ranked_sources.read_rows(spark, settings), settings).awaitTermination()
    names = ("tick", "subscription", "message_id", "change", "score")
    assert sorted(tuple(data[name] for name in names) for data in read_delivered(tmp_path)) == sorted(expected)
    assert len(expected) > 50
    # What is no record at all is put aside.
    assert sum(batch.quarantined for batch in read_batches(settings)) == 3


def test_results_change_from_topic_to_topic(spark: SparkSession, tmp_path: Path) -> None:
    settings = topic_settings(tmp_path, "track")
    here, there = {"x0": 0.0, "y0": 0.0, "x1": 2.0, "y1": 2.0}, {"x0": 5.0, "y0": 5.0, "x1": 7.0, "y1": 7.0}
    FileTopic(tmp_path / "subscriptions").append(
        [put_record("/test", "1", {"id": "a", "keywords": ["rain"], **here, "time": 0.0})]
    )
    FileTopic(tmp_path / "moves").append(
        [move_record("/test", "1", {"id": "a", **there, "time": 2.0}), Record("", b"{nonsense")]
    )
    rain = {"keywords": ["rain"], "time": 1.0, "expires": 100.0}
    FileTopic(tmp_path / "messages").append(
        [
            message_record("/test", {"id": "m1", "x": 1.0, "y": 1.0, **rain}),
            message_record("/test", {"id": "m2", "x": 6.0, "y": 6.0, **rain}),
        ]
    )
    start_track(tracked_sources.read_rows(spark, settings), settings).awaitTermination()
    changes = sorted(
        (data["tick"], data["subscription"], data["message_id"], data["change"]) for data in read_delivered(tmp_path)
    )
    assert [change[1:] for change in changes] == [("a", "m1", 1), ("a", "m1", -1), ("a", "m2", 1)]
    assert changes[0][0] < changes[1][0] == changes[2][0]
    assert sum(batch.quarantined for batch in read_batches(settings)) == 1
