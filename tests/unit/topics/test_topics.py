"""Topics, in files and in Kafka: what was appended is read once, in order, from any position; what is lost is said."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearcast.errors import TopicError
from nearcast.topics.files import FileTopic
from nearcast.topics.records import (
    ENDED,
    MESSAGE,
    PUT,
    Record,
    TopicEvent,
    ended_record,
    in_groups,
    message_record,
    put_record,
    read_record,
)
from nearcast.topics.topic import Topic, TopicAddress, open_topic, read_address
from support.kafka_broker import VARIABLE, kafka_folder, small_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    jars = kafka_folder()
    if jars is None:
        pytest.skip(f"no Kafka here: {VARIABLE} names no folder with its jars")
    with small_broker(tmp_path_factory.mktemp("broker"), jars / "broker") as address:
        yield address


@pytest.fixture(params=["files", "kafka"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> TopicAddress:
    if request.param == "files":
        return read_address(f"file://{tmp_path}/topic")
    return read_address(f"kafka://{request.getfixturevalue('broker')}/t{uuid.uuid4().hex}")


def records(first: int, n: int) -> list[Record]:
    return [Record("same", f"record {number} ü".encode()) for number in range(first, first + n)]


def values(first: int, n: int) -> list[bytes]:
    return [record.value for record in records(first, n)]


def test_records_come_in_order_from_any_position(address: TopicAddress) -> None:
    writer, reader = open_topic(address), open_topic(address)
    start = reader.read("", 10)
    assert start.values == []
    writer.append(records(0, 5))
    writer.append([])
    writer.append(records(5, 5))
    positions = [start.position]
    found: list[bytes] = []
    while len(found) < 10:
        page = reader.read(positions[-1], 3, wait_s=10)
        assert 0 < len(page.values) <= 3
        found += page.values
        positions.append(page.position)
    assert found == values(0, 10)
    assert reader.read(positions[-1], 10) == ([], positions[-1])
    # Back to where it was before; another reader does the same.
    for one in (reader, open_topic(address)):
        assert one.read(positions[1], 100).values == values(3, 7)
        assert one.read("", 100).values == values(0, 10)
        one.close()


def test_a_reader_waits_for_the_first_record(address: TopicAddress) -> None:
    reader, writer = open_topic(address), open_topic(address)
    position = reader.read("", 1).position
    late = threading.Timer(0.3, writer.append, [records(0, 1)])
    late.start()
    assert reader.read(position, 10, wait_s=30).values == values(0, 1)
    late.join()
    reader.close()


def test_positions_of_another_topic_are_an_error(address: TopicAddress) -> None:
    topic = open_topic(address)
    topic.append(records(0, 3))
    after = '{"0": 1000, "1": 1000}' if address.is_kafka else "7:0"
    with pytest.raises(TopicError, match="records are lost to this reader"):
        topic.read(after, 10)
    with pytest.raises(TopicError, match=r"'nonsense' is not a position in"):
        topic.read("nonsense", 10)
    topic.close()


def test_a_broker_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("nearcast.topics.kafka._TIMEOUT_S", 0.5)
    topic: Topic = open_topic(read_address("kafka://127.0.0.1:1/none"))
    with pytest.raises(TopicError, match=r"'kafka://127\.0\.0\.1:1/none' cannot be read"):
        topic.read("", 1)
    with pytest.raises(TopicError, match=r"'kafka://127\.0\.0\.1:1/none' cannot be written"):
        topic.append(records(0, 1))


def test_several_writers_of_files_lose_nothing(tmp_path: Path) -> None:
    def write(name: int) -> None:
        topic = FileTopic(tmp_path)
        for number in range(25):
            topic.append([Record("", f"{name} {number} {part}".encode()) for part in range(3)])

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = FileTopic(tmp_path).read("", 1000).values
    assert len(found) == len({*found}) == 300
    for name in range(4):
        lines = [value for value in found if value.startswith(b"%d " % name)]
        assert lines == [f"{name} {number} {part}".encode() for number in range(25) for part in range(3)]
    # What is appended together stays together.
    assert all(found[at].rsplit(b" ", 1)[0] == found[at + 2].rsplit(b" ", 1)[0] for at in range(0, 300, 3))


def test_a_folder_is_appended_once_under_its_name(tmp_path: Path) -> None:
    topic = FileTopic(tmp_path)
    for batch, word in (("match-0", "a"), ("match-1", "b")):
        assert not topic.has_folder(batch)
        aside = topic.new_staging()
        aside.mkdir()
        for name, text in (("part-1", f"{word}1\n{word}2\n"), ("part-2", ""), ("_SUCCESS", "x"), (".part-1.crc", "x")):
            (aside / name).write_text(text)
        topic.append_folder(batch, aside)
        assert topic.has_folder(batch)
    topic.forget_folders("match-", "match-1")
    assert topic.has_folder("match-1")
    assert not topic.has_folder("match-0")
    assert FileTopic(tmp_path).read("", 10).values == [b"a1", b"a2", b"b1", b"b2"]


def test_old_files_go_and_whoever_needed_them_is_told(tmp_path: Path) -> None:
    topic = FileTopic(tmp_path)
    for first in range(3):
        topic.append(records(first, 1))
    for number, age in ((0, 100.0), (1, 200.0)):
        os.utime(topic._path(number), (age, age))
    topic.new_staging().touch()
    topic.new_staging().mkdir()
    topic.remove_before(150.0)
    aside = [*(tmp_path / ".aside").iterdir()]
    assert len(aside) == 2
    assert topic.read("", 10).values == values(1, 2)
    with pytest.raises(TopicError, match="has the files 1 to 2, but file 0 was to be read next: records are lost"):
        topic.read("0:0", 10)
    topic.remove_before(2e9 * 10)
    assert not any(path.exists() for path in aside)
    # The newest stays, so that numbers go on.
    assert FileTopic(tmp_path).read("", 10).values == values(2, 1)
    topic.append(records(3, 1))
    assert FileTopic(tmp_path).read("", 10).values == values(2, 2)


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TopicError, match="cannot be made: Not a directory"):
        FileTopic(tmp_path / "file" / "topic")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("file:///data/topics/", TopicAddress("", "/data/topics")),
        ("file:///with%20space", TopicAddress("", "/with space")),
        ("kafka://a/near", TopicAddress("a:9092", "near")),
        ("kafka://a:1,b/near/", TopicAddress("a:1,b:9092", "near")),
    ],
)
def test_addresses_are_read(text: str, expected: TopicAddress) -> None:
    found = read_address(text)
    assert found == expected
    assert read_address(str(found).replace(" ", "%20")) == found


def test_a_topic_has_its_place_below_an_address() -> None:
    assert str(read_address("kafka://a:1/near").part("messages")) == "kafka://a:1/near.messages"
    assert str(read_address("file:///a/b").part("messages")) == "file:///a/b/messages"


@pytest.mark.parametrize(
    "text", ["", "file://", "file:///", "file://host/a", "kafka://a", "kafka:///a", "kafka://a/b/c", "/a", "http://a/b"]
)
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(TopicError, match="is not the address of a topic; expected file:///FOLDER or kafka://HOST:PORT/NAME"):
        read_address(text)


def test_records_are_cloud_events() -> None:
    row = {"id": "7", "keywords": ["zoë"], "x": 1.5, "y": 2.0}
    assert read_record(message_record("/tenants/a", row).value) == TopicEvent(MESSAGE, row)
    assert read_record(put_record("/tenants/a", "12", row).value) == TopicEvent(PUT, row)
    ended = ended_record("/tenants/a", "13", "7")
    assert read_record(ended.value) == TopicEvent(ENDED, {"id": "7"})
    assert ended.key == "7"
    text = ended.value.decode()
    assert text.startswith('{"specversion":"1.0","id":"7-13","source":"/tenants/a","type":"io.nearcast.subscription.ended"')


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"7", b'{"type":"a"}', b'{"data":{}}', b'{"type":1,"data":{}}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_record_says_nothing(value: bytes) -> None:
    assert read_record(value) == TopicEvent("", {})


def test_records_are_grouped_by_size() -> None:
    all_records = records(0, 7)
    groups = [*in_groups(all_records, 2 * len(all_records[0].value))]
    assert [record for group in groups for record in group] == all_records
    assert [len(group) for group in groups] == [2, 2, 2, 1]
    assert [*in_groups([], 10)] == []
