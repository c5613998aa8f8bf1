"""match and explain: files of all forms in, the same deliveries out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from nearcast.cli.main import app
from nearcast.engine.registry import indexes

SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": 1, "keywords": ["coffee"], "x0": 0, "y0": 0, "x1": 10, "y1": 10},
    {"id": 2, "keywords": ["coffee", "sale"], "x0": 0, "y0": 0, "x1": 10, "y1": 10},
    {"id": 3, "keywords": [], "x0": 5, "y0": 5, "x1": 6, "y1": 6},
]
MESSAGES: list[dict[str, Any]] = [
    {"id": 10, "keywords": ["coffee", "sale", "today"], "x": 1, "y": 1},
    {"id": 11, "keywords": ["Coffee"], "x": 5, "y": 5},
    {"id": 12, "keywords": ["tea"], "x": 1, "y": 1},
]
EXPECTED = {(10, 1), (10, 2), (11, 1), (11, 3)}


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows({**row, "keywords": " ".join(row["keywords"])} if "keywords" in row else row for row in rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def read_pairs(path: Path) -> list[tuple[Any, Any]]:
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(newline="") as stream:
            rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(stream)]
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [(row["message_id"], row["subscription_id"]) for row in rows]


def run(*arguments: str, expected: int = 0, stdin: str | None = None) -> Any:
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    assert result.exit_code == expected, result.output
    return result


@pytest.mark.parametrize("source_format", ["parquet", "ndjson", "jsonl", "csv"])
@pytest.mark.parametrize("target_format", ["parquet", "ndjson", "csv"])
def test_every_form_of_file_gives_the_same_deliveries(tmp_path: Path, source_format: str, target_format: str) -> None:
    subscriptions = write(tmp_path / f"s.{source_format}", SUBSCRIPTIONS)
    messages = write(tmp_path / f"m.{source_format}", MESSAGES)
    out = tmp_path / f"d.{target_format}"
    result = run("match", "--subscriptions", subscriptions, "--messages", messages, "--out", str(out), "--batch", "2")
    pairs = read_pairs(out)
    assert set(pairs) == EXPECTED
    assert len(pairs) == len(EXPECTED)
    assert result.stdout == ""
    assert "3 messages, 4 deliveries" in result.stderr
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("index", list(indexes()))
def test_every_index_can_be_chosen(tmp_path: Path, index: str) -> None:
    subscriptions, messages = write(tmp_path / "s.ndjson", SUBSCRIPTIONS), write(tmp_path / "m.csv", MESSAGES)
    result = run("match", "--subscriptions", subscriptions, "--messages", messages, "--index", index, "--space", "plane")
    assert len(result.stdout.splitlines()) == 4
    assert f"({index}: " in result.stderr


def test_lines_go_in_and_come_out(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in MESSAGES)
    subscriptions = write(tmp_path / "s.parquet", SUBSCRIPTIONS)
    result = run("match", "--subscriptions", subscriptions, "--messages", "-", "--out", "-", "--batch", "1", stdin=lines)
    assert {(row["message_id"], row["subscription_id"]) for row in map(json.loads, result.stdout.splitlines())} == EXPECTED


def test_the_sample_is_at_hand(tmp_path: Path) -> None:
    out = tmp_path / "d.parquet"
    result = run("match", "--subscriptions", "sample", "--messages", "sample", "--out", str(out))
    assert pq.read_table(out).num_rows > 1000
    assert "rejected" not in result.stderr


def test_points_and_areas_texts_and_keywords_may_be_mixed(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"id": "a", "text": "Coffee, on sale!", "x": 1, "y": 1},
        {"id": "b", "keywords": ["coffee"], "x0": 9, "y0": 9, "x1": 20, "y1": 20},
        {"id": "c", "keywords": "coffee tea", "x": 11, "y": 11},
    ]
    subscriptions = write(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    result = run("match", "--subscriptions", subscriptions, "--messages", write(tmp_path / "m.ndjson", lines))
    pairs = {(row["message_id"], row["subscription_id"]) for row in map(json.loads, result.stdout.splitlines())}
    assert pairs == {("a", 1), ("a", 2), ("b", 1)}


def test_interests_and_geojson_regions_are_read(tmp_path: Path) -> None:
    triangle = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 4], [0, 0]]]}
    filed: list[dict[str, Any]] = [
        {"id": "near", "interest": "coffee AND NOT sale", "region": triangle},
        {"id": "anywhere", "keywords": ["coffee"]},
    ]
    subscriptions = write(tmp_path / "s.ndjson", filed)
    result = run("match", "--subscriptions", subscriptions, "--messages", write(tmp_path / "m.ndjson", MESSAGES))
    pairs = {(row["message_id"], row["subscription_id"]) for row in map(json.loads, result.stdout.splitlines())}
    assert pairs == {(10, "anywhere"), (11, "anywhere")}


def test_number_keywords_stay_numbers(tmp_path: Path) -> None:
    filed = [{"id": 1, "keywords": [7], "x0": 0, "y0": 0, "x1": 1, "y1": 1}]
    sent = [{"id": 1, "keywords": [3, 7], "x": 0, "y": 0}, {"id": 2, "keywords": [3], "x": 0, "y": 0}]
    arguments = ("--subscriptions", write(tmp_path / "s.ndjson", filed), "--messages", write(tmp_path / "m.ndjson", sent))
    assert json.loads(run("match", *arguments).stdout) == {"message_id": 1, "subscription_id": 1}


BAD_LINES = [
    '{"id": 10, "keywords": ["coffee"], "x": 1, "y": 1}',
    "not json",
    "[1, 2]",
    '{"keywords": ["coffee"], "x": 1, "y": 1}',
    '{"id": "eleven", "keywords": ["coffee"], "x": 1, "y": 1}',
    '{"id": 12, "keywords": [1], "x": 1, "y": 1}',
    '{"id": 13, "keywords": ["coffee"], "x": "east", "y": 1}',
    '{"id": 14, "keywords": ["coffee"], "x": 1}',
    '{"id": 15, "keywords": ["coffee"], "x": 999, "y": 1}',
    '{"id": 16, "keywords": [""], "x": 1, "y": 1}',
    '{"id": 17, "keywords": ["a"], "text": "b", "x": 1, "y": 1}',
    '{"id": 18, "keywords": 5, "x": 1, "y": 1}',
    '{"id": true, "keywords": ["coffee"], "x": 1, "y": 1}',
    '{"id": 19, "text": 5, "x": 1, "y": 1}',
    '{"id": 20, "keywords": [[]], "x": 1, "y": 1}',
    "",
    '{"id": 21, "keywords": ["coffee"], "x": 2, "y": 2, "colour": "red"}',
]


@pytest.mark.parametrize("batch", ["1", "4", "100"])
def test_bad_rows_are_rejected_by_number_and_the_others_used(tmp_path: Path, batch: str) -> None:
    messages = tmp_path / "m.ndjson"
    messages.write_text("\n".join(BAD_LINES) + "\n")
    subscriptions, refused = write(tmp_path / "s.ndjson", SUBSCRIPTIONS[:1]), tmp_path / "rejected.ndjson"
    arguments = ("--subscriptions", subscriptions, "--messages", str(messages), "--batch", batch, "--rejected", str(refused))
    result = run("match", *arguments)
    assert [json.loads(line)["message_id"] for line in result.stdout.splitlines()] == [10, 21]
    rows = [json.loads(line) for line in refused.read_text().splitlines()]
    assert [row["row"] for row in rows] == list(range(1, 15))
    assert {row["file"] for row in rows} == {"messages"}
    assert result.stderr.count("rejected: messages row") == 5
    assert f"14 rows were rejected (all in {refused})" in result.stderr


def test_rejected_subscriptions_are_told_too(tmp_path: Path) -> None:
    filed = [
        *SUBSCRIPTIONS,
        {"id": 4, "keywords": ["a"], "x0": 5, "y0": 0, "x1": 1, "y1": 1},
        {"id": 5, "keywords": ["a"], "x0": 5},
    ]
    subscriptions = write(tmp_path / "s.ndjson", filed)
    refused = tmp_path / "r.csv"
    arguments = (
        "--subscriptions",
        subscriptions,
        "--messages",
        write(tmp_path / "m.csv", MESSAGES),
        "--rejected",
        str(refused),
    )
    assert "rejected: subscriptions row 3: the box" in run("match", *arguments).stderr
    with refused.open(newline="") as stream:
        assert [row["row"] for row in csv.DictReader(stream)] == ["3", "4"]


def test_a_csv_may_have_text_ids_and_rows_that_are_too_long(tmp_path: Path) -> None:
    messages = tmp_path / "m.csv"
    messages.write_text("id,keywords,x,y\na1,coffee,1,1\n2,coffee,1,1,9\n3,coffee sale,1,1\n")
    result = run("match", "--subscriptions", write(tmp_path / "s.csv", SUBSCRIPTIONS), "--messages", str(messages))
    pairs = {(row["message_id"], row["subscription_id"]) for row in map(json.loads, result.stdout.splitlines())}
    assert pairs == {("a1", 1), ("3", 1), ("3", 2)}
    assert "row 1: more values than the header" in result.stderr


def test_no_messages_give_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "m.ndjson").touch()
    out = tmp_path / "d.parquet"
    subscriptions = write(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    run("match", "--subscriptions", subscriptions, "--messages", str(tmp_path / "m.ndjson"), "--out", str(out))
    assert pq.read_table(out).column_names == ["message_id", "subscription_id"]


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"--messages": "nowhere.parquet"}, "there is no file 'nowhere.parquet'"),
        ({"--subscriptions": "nowhere.csv"}, "there is no file 'nowhere.csv'"),
        ({"--out": "d.xlsx"}, "the suffix '.xlsx' is unknown"),
        ({"--out": "/no/such/folder/d.csv"}, "does not exist"),
        ({"--index": "magic"}, "there is no index 'magic'"),
        ({"--space": "round"}, "round"),
        ({"--set": "colour=1"}, "has no parameter 'colour'"),
    ],
)
def test_wrong_options_are_told_in_one_line(tmp_path: Path, changed: dict[str, str], complaint: str) -> None:
    options = {
        "--subscriptions": write(tmp_path / "s.ndjson", SUBSCRIPTIONS),
        "--messages": write(tmp_path / "m.ndjson", MESSAGES),
        **changed,
    }
    result = run("match", *(part for option in options.items() for part in option), expected=2)
    assert complaint in result.stderr
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("m.parquet", b"not parquet", "cannot be read as messages"),
        ("m.csv", b"a,b\n1,2\n", "expected a header with id"),
        ("m.ndjson", b"\xff\xfe", "cannot be read as messages"),
        ("m.txt", b"", "the suffix '.txt' is unknown"),
    ],
)
def test_files_that_are_something_else_are_told(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    subscriptions = write(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    out = tmp_path / "d.csv"
    arguments = ("--subscriptions", subscriptions, "--messages", str(tmp_path / name), "--out", str(out))
    assert complaint in run("match", *arguments, expected=2).stderr
    assert not out.exists()


def test_an_empty_file_of_subscriptions_is_told(tmp_path: Path) -> None:
    (tmp_path / "s.ndjson").touch()
    result = run("match", "--subscriptions", str(tmp_path / "s.ndjson"), "--messages", "sample", expected=2)
    assert "is empty; expected subscriptions" in result.stderr


# --- explain -----------------------------------------------------------------------------------------------------


def explained(tmp_path: Path, *arguments: str, expected: int = 0) -> str:
    filed = [*SUBSCRIPTIONS, {"id": 4, "keywords": ["a"], "x0": 5, "y0": 0, "x1": 1, "y1": 1}]
    subscriptions = write(tmp_path / "s.ndjson", filed)
    output: str = run("explain", "--subscriptions", subscriptions, *arguments, expected=expected).output
    return output


def test_explain_tells_why(tmp_path: Path) -> None:
    assert explained(tmp_path, "--id", "2", "--keywords", "coffee sale", "--at", "1,1").startswith("delivered")
    output = explained(tmp_path, "--id", "2", "--text", "Coffee here!", "--at", "1,1", "--index", "spatial_first")
    assert output.startswith("not delivered")
    assert "sale" in output
    assert explained(tmp_path, "--id", "1", "--keywords", "coffee", "--at", "-1,-1,0,0").startswith("delivered")


def test_explain_takes_number_keywords_and_text_ids(tmp_path: Path) -> None:
    subscriptions = write(tmp_path / "n.ndjson", [{"id": "a", "keywords": [7], "x0": 0, "y0": 0, "x1": 1, "y1": 1}])
    start = ("explain", "--subscriptions", subscriptions, "--id", "a", "--at", "0,0", "--keywords")
    assert run(*start, "3 7").stdout.startswith("delivered")
    assert "give numbers" in run(*start, "seven", expected=2).stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--id", "99", "--keywords", "a", "--at", "1,1"), "there is no subscription '99'"),
        (("--id", "x", "--keywords", "a", "--at", "1,1"), "there is no subscription 'x'"),
        (("--id", "4", "--keywords", "a", "--at", "1,1"), "subscription '4' was rejected: the box"),
        (("--id", "1", "--at", "1,1"), "either --keywords or --text"),
        (("--id", "1", "--keywords", "a", "--text", "a", "--at", "1,1"), "either --keywords or --text"),
        (("--id", "1", "--keywords", "a", "--at", "here"), "is not a location"),
    ],
)
def test_explain_refuses_what_it_cannot_explain(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in explained(tmp_path, *arguments, expected=2)
