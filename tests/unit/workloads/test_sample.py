"""The bundled sample is small, readable, and finds something."""

from __future__ import annotations

import importlib.util
import json
import os
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.model.analysis import Analysis
from nearcast.model.interest import parse_interest
from nearcast.workloads import sample_messages, sample_notes, sample_subscriptions

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "build_sample.py"


def test_the_sample_is_at_most_3_megabytes_and_names_its_sources() -> None:
    files = list(resources.files("nearcast.workloads.sample").iterdir())
    assert sum(len(file.read_bytes()) for file in files if file.is_file()) <= 3_000_000
    credits = resources.files("nearcast.workloads.sample").joinpath("CREDITS.md").read_text(encoding="utf-8")
    for source in ("NOAA", "NYC Open Data", "GeoNames.org, CC BY 4.0"):
        assert source in credits


def test_messages_are_storms_and_animals_in_time_order() -> None:
    messages = sample_messages()
    assert messages.schema.names == ["id", "time", "x", "y", "text", "category", "place"]
    assert messages.schema.types[:4] == [pa.int64(), pa.float64(), pa.float64(), pa.float64()]
    assert messages.num_rows > 8000
    assert len(messages["id"].unique()) == messages.num_rows
    assert (np.diff(messages["time"].to_numpy()) >= 0).all()
    categories = set(messages["category"].to_pylist())
    assert {"hail", "tornado", "dead animal"} <= categories
    assert not [category for category in categories if any(word in category for word in ("murder", "rape", "ems"))]


def test_subscriptions_can_be_read_by_people_and_by_engines() -> None:
    subscriptions, notes = sample_subscriptions(), sample_notes()
    assert subscriptions.schema.names == ["id", "interest", "region", "x0", "y0", "x1", "y1"]
    assert subscriptions.num_rows == 2000
    assert len(subscriptions["id"].unique()) == 2000
    assert notes["id"].equals(subscriptions["id"])
    assert all(note.startswith("Tell me about ") for note in notes["note"].to_pylist())
    for row in subscriptions.to_pylist():
        if row["region"] is None:
            assert -180 <= row["x0"] < row["x1"] <= 180
            assert -90 <= row["y0"] < row["y1"] <= 90
        else:
            ring = json.loads(row["region"])["coordinates"][0]
            assert ring[0] == ring[-1]
            assert row["x0"] is None
    interests = set(subscriptions["interest"].to_pylist())
    assert any(" OR " in interest for interest in interests)
    assert any(" NOT " in interest for interest in interests)


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="no kernel takes part")
def test_a_run_of_the_sample_gives_thousands_of_deliveries() -> None:
    messages = sample_messages()
    x, y = messages["x"].to_numpy(), messages["y"].to_numpy()
    words = [set(Analysis().words(text)) for text in messages["text"].to_pylist()]
    boxed = [row for row in sample_subscriptions().to_pylist() if row["region"] is None]
    interests = {row["interest"]: parse_interest(row["interest"]) for row in boxed}
    holding = {
        text: np.array([interest.holds(message_words) for message_words in words]) for text, interest in interests.items()
    }
    n_deliveries = [
        int((holding[row["interest"]] & (row["x0"] <= x) & (x <= row["x1"]) & (row["y0"] <= y) & (y <= row["y1"])).sum())
        for row in boxed
    ]
    assert 5_000 < sum(n_deliveries) < 50_000
    assert np.mean(np.array(n_deliveries) > 0) > 0.9


def test_the_script_writes_the_same_sample_again(data_folder: Path, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("build_sample", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    __import__("sys").modules["build_sample"] = script
    spec.loader.exec_module(script)
    script.build(data_folder, tmp_path)
    for name in ("messages", "subscriptions", "notes"):
        shipped = resources.files("nearcast.workloads.sample").joinpath(f"{name}.parquet").read_bytes()
        assert pq.read_table(tmp_path / f"{name}.parquet").equals(pq.read_table(pa.BufferReader(shipped)))
