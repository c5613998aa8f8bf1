"""Raw messages: what is kept, what is put aside and why."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearcast.errors import SchemaError
from nearcast.model.analysis import Analysis
from nearcast.pipeline.prepare.cleaning import CORRUPT, Cleaner

ANALYSIS = Analysis(stop_words="english")


def cleaner(space: str = "lonlat") -> Cleaner:
    return Cleaner(space, ANALYSIS.to_dict())


def test_texts_become_the_words_of_the_analysis() -> None:
    text = "The Ipad of ZÜRICH, #sale at 5"
    cleaned = cleaner().clean(pa.table({"id": [1], "text": [text], "x": [1.0], "y": [2.0]}))
    assert cleaned.messages.to_pylist() == [{"id": 1, "keywords": ANALYSIS.words(text), "x": 1.0, "y": 2.0}]
    assert cleaned.quarantine.num_rows == 0


def test_every_bad_row_is_put_aside_with_its_reason_and_the_counts_add_up() -> None:
    rows: list[tuple[dict[str, object], str | None]] = [
        ({}, None),
        ({"id": None}, "the id is null"),
        ({"text": None}, "neither a text nor keywords"),
        ({"text": "a" * 1_000_001}, "1000001 characters"),
        ({"x": None}, "a coordinate is null"),
        ({"x": 181.0}, "outside lonlat"),
        ({"y": float("nan")}, "not finite"),
        ({CORRUPT: '{"id": 3, '}, "cannot be parsed"),
    ]
    good = {"id": "a", "text": "rain", "x": 1.0, "y": 2.0, CORRUPT: None}
    schema = pa.schema({"id": pa.string(), "text": pa.string(), "x": pa.float64(), "y": pa.float64(), CORRUPT: pa.string()})
    table = pa.Table.from_pylist([{**good, **row} for row, _ in rows], schema=schema)
    cleaned = cleaner().clean(table)
    assert cleaned.messages.num_rows + cleaned.quarantine.num_rows == len(rows)
    assert cleaned.messages["id"].to_pylist() == ["a"]
    for quarantined, (_, reason) in zip(cleaned.quarantine.to_pylist(), rows[1:], strict=True):
        assert reason is not None
        assert reason in quarantined["reason"]
        assert len(quarantined["row"]) <= 4096


def test_keywords_get_their_normal_form_and_win_over_a_text() -> None:
    lists = pa.array([["IPad", "Straße", "ipad"], None, [], [""]], pa.list_(pa.string()))
    table = pa.table(
        {"id": [1, 2, 3, 4], "keywords": lists, "text": ["no", "so be it", "no", "no"], "x": [0.0] * 4, "y": [0.0] * 4}
    )
    cleaned = cleaner().clean(table)
    assert cleaned.messages["keywords"].to_pylist() == [["ipad", "strasse", "ipad"], [], []]
    assert cleaned.quarantine["reason"].to_pylist() == ["the keyword '' is empty"]


def test_numbers_as_keywords_stay_as_they_are() -> None:
    lists = pa.array([[5, 7], None], pa.list_(pa.int32()))
    cleaned = cleaner("plane").clean(pa.table({"id": [1, 2], "keywords": lists, "x": [1e6, 0.0], "y": [0.0, 0.0]}))
    assert cleaned.messages["keywords"].to_pylist() == [[5, 7]]
    assert "the keywords are null" in cleaned.quarantine["reason"][0].as_py()


def test_points_and_boxes_of_one_source_become_boxes() -> None:
    table = pa.table(
        {
            "id": [1, 2],
            "text": ["a1", "b2"],
            "x": pa.array([5.0, None]),
            "y": pa.array([6.0, None]),
            "x0": pa.array([None, 1.0]),
            "y0": pa.array([None, 2.0]),
            "x1": pa.array([None, 3.0]),
            "y1": pa.array([None, 4.0]),
        }
    )
    cleaned = cleaner().clean(table).messages
    assert [list(row.values())[2:] for row in cleaned.to_pylist()] == [[5.0, 6.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0]]


@pytest.mark.parametrize(
    ("columns", "expected"), [({"x": [1.0], "y": [1.0]}, "'keywords' or 'text'"), ({"text": ["a"]}, "x, y or")]
)
def test_a_source_without_words_or_places_is_refused(columns: dict[str, list[object]], expected: str) -> None:
    with pytest.raises(SchemaError, match=expected):
        cleaner().clean(pa.table({"id": [1], **columns}))
