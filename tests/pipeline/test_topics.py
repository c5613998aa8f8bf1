"""Subscriptions and messages come from topics, deliveries go to one: the answer is that of one process, exactly once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import PipelineError
from nearcast.pipeline.index.deltas import QUARANTINE, current_rows
from nearcast.pipeline.index.step import build_index
from nearcast.pipeline.index.version import current_index
from nearcast.pipeline.io.sinks import sink_of
from nearcast.pipeline.io.sources import read_messages, read_subscriptions
from nearcast.pipeline.io.topic_changes import apply_topic_changes, ensure_index
from nearcast.pipeline.match.stream import BatchRunner, start_match
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import StreamFolders
from nearcast.topics.files import FileTopic
from nearcast.topics.records import Record, ended_record, message_record, put_record, record_of
from nearcast.topics.topic import TopicAddress
from support.pipelines import make_messages, make_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def topic_settings(folder: Path) -> PipelineSettings:
    return PipelineSettings(
        work=str(folder / "work"),
        shared_dir=str(folder / "host"),
        space="plane",
        shards=2,
        messages=f"file://{folder}/messages",
        messages_format="topic",
        changes=f"file://{folder}/subscriptions",
        changes_format="topic",
        sink=f"file://{folder}/deliveries",
        sink_format="topic",
        max_deltas=1,
    )


def append_messages(folder: Path, table: pa.Table, *others: Record) -> None:
    records = [message_record("/test", {**row, "id": str(row["id"])}) for row in table.to_pylist()]
    FileTopic(folder / "messages").append([*records, *others])


def append_changes(folder: Path, put: pa.Table, ended: list[str], change: str = "1") -> None:
    records = [put_record("/test", change, row) for row in put.to_pylist()]
    FileTopic(folder / "subscriptions").append([*records, *(ended_record("/test", change, id) for id in ended)])


def delivered(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(value) for value in FileTopic(folder / "deliveries").read("", 10**6).values]


def pairs(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((event["data"]["message_id"], event["data"]["subscription"]) for event in events)


def expected(subscriptions: pa.Table, messages: pa.Table) -> list[tuple[str, str]]:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    deliveries = matcher.match_table(messages)
    return sorted(
        (str(m), s)
        for m, s in zip(deliveries["message_id"].to_pylist(), deliveries["subscription_id"].to_pylist(), strict=True)
    )


def run(spark: SparkSession, settings: PipelineSettings) -> None:
    start_match(read_messages(spark, settings, is_stream=True), settings).awaitTermination()


def test_changes_of_a_topic_are_in_force_for_messages_after_them(spark: SparkSession, tmp_path: Path) -> None:
    settings = topic_settings(tmp_path)
    first, second = make_subscriptions(60, 0), make_subscriptions(30, 1, first_id=50)
    messages = [make_messages(150, 10 + number, first_id=1000 * number) for number in range(3)]
    append_changes(tmp_path, first, [])
    append_messages(tmp_path, messages[0])
    run(spark, settings)
    answer = expected(first, messages[0])
    assert pairs(delivered(tmp_path)) == answer
    assert len(answer) > 50
    # Ten are replaced, twenty are new, twelve end; what is no change is passed over, what cannot be used is put aside.
    append_changes(tmp_path, second, [f"s{number}" for number in range(12)], "2")
    bad = {"id": "s70", "keywords": ["a"], "x0": 3, "y0": 0, "x1": 1, "y1": "wide"}
    others = [put_record("/test", "3", bad), Record("", b"nonsense"), record_of("else", "1", "/test", "s20", {"id": "s20"})]
    FileTopic(tmp_path / "subscriptions").append(others)
    append_messages(tmp_path, messages[1], Record("", b"{nonsense"), record_of("else", "1", "/test", "", {"id": "x"}))
    run(spark, settings)
    now = {row["id"]: row for table in (first, second) for row in table.to_pylist()}
    for id in [*(f"s{number}" for number in range(12)), "s70"]:
        del now[id]
    living = pa.Table.from_pylist([*now.values()], schema=first.schema)
    answer += expected(living, messages[1])
    assert pairs(delivered(tmp_path)) == sorted(answer)
    assert settings.store.read_table(QUARANTINE)["id"].to_pylist() == ["s70"]
    folders = StreamFolders("match")
    assert settings.store.read_table(folders.quarantine).num_rows == 2
    # Many small changes are packed, and the table of all of them is written anew.
    for number in range(3):
        append_changes(tmp_path, second.slice(20 + number, 1), [], f"4.{number}")
        version_before = current_index(settings.store)
        assert apply_topic_changes(spark, settings).taken != version_before.taken
    now["s70"] = make_subscriptions(30, 1, first_id=50).slice(20, 1).to_pylist()[0]
    living = pa.Table.from_pylist([*now.values()], schema=first.schema)
    version = current_index(settings.store)
    assert len(version.changes) < 4
    rows = current_rows(spark, settings, version)
    assert sorted(row["id"] for row in rows.select("id").collect()) == sorted(now)
    # An index made anew of what it has goes on in the topic where it was.
    again = replace(settings, subscriptions_format="index")
    build_index(spark, read_subscriptions(spark, again), again, topic_position=version.taken)
    append_messages(tmp_path, messages[2])
    run(spark, settings)
    answer += expected(living, messages[2])
    events = delivered(tmp_path)
    assert pairs(events) == sorted(answer)
    assert len({event["id"] for event in events}) == len(events)
    assert {(event["specversion"], event["type"], event["source"]) for event in events} == {
        ("1.0", "io.nearcast.match", "/streams/match")
    }


def test_a_batch_that_dies_on_the_way_to_a_topic_of_files_comes_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = topic_settings(tmp_path)
    subscriptions, messages = make_subscriptions(60, 0), make_messages(150, 10)
    ensure_index(settings)
    append_changes(tmp_path, subscriptions, [])
    append_messages(tmp_path, messages)
    frame = read_messages(spark, settings, is_stream=False)
    links = 0
    real = FileTopic._link

    def link_once(topic: FileTopic, path: Path) -> None:
        nonlocal links
        links += 1
        if links > 1:
            raise OSError(5, "the disk is gone")
        real(topic, path)

    with monkeypatch.context() as patched:
        patched.setattr(FileTopic, "_link", link_once)
        with pytest.raises(ValueError, match="the disk is gone"):
            BatchRunner(settings)(frame.repartition(3), 0)
    assert 0 < len(delivered(tmp_path)) < len(expected(subscriptions, messages))
    for _ in range(2):
        BatchRunner(settings)(frame, 0)
        assert pairs(delivered(tmp_path)) == expected(subscriptions, messages)


def test_without_the_connector_a_topic_of_kafka_says_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    settings = replace(topic_settings(tmp_path), messages="kafka://127.0.0.1:1/messages", sink="kafka://127.0.0.1:1/deliveries")
    with pytest.raises(PipelineError, match="no Kafka connector; give its jars with --set kafka_jars=FOLDER"):
        read_messages(spark, settings, is_stream=True)
    frame = spark.createDataFrame([("m", "s")], "message_id string, subscription_id string")
    with pytest.raises(PipelineError, match="no Kafka connector"):
        sink_of(settings).write(frame, 0, "staging")
    assert sink_of(settings).location == str(TopicAddress("127.0.0.1:1", "deliveries"))


def test_the_jars_of_the_connector_are_a_folder_or_a_package(tmp_path: Path) -> None:
    (tmp_path / "a.jar").touch()
    assert PipelineSettings(kafka_jars="a:b_2.13:4.3.0").session_settings == {"spark.jars.packages": "a:b_2.13:4.3.0"}
    spark_settings = PipelineSettings(kafka_jars=str(tmp_path), spark={"spark.x": 1}).session_settings
    assert spark_settings == {"spark.jars": str(tmp_path / "a.jar"), "spark.x": 1}
    with pytest.raises(PipelineError, match="is not a folder with jars"):
        _ = PipelineSettings(kafka_jars=str(tmp_path / "none")).session_settings
