"""Loaders of real texts: a tiny folder made here, and the real one where it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nearcast.errors import WorkloadError
from nearcast.workloads import open_workload
from nearcast.workloads.corpus import SOURCES, analyse_texts

TEXTS = ["Fire at Main Street", "dog, dog and DOG", "...", "flood near the river", "fire near the bridge"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    columns = {"lon": [-75.0, -75.1, -75.2, -75.3, 179.9999], "lat": [40.0, 40.1, 40.2, 40.3, 40.4], "text": TEXTS}
    pq.write_table(pa.table(columns | {"id": [5, 4, 3, 2, 1]}), tmp_path / "gazetteer_places.parquet")
    for prefix in SOURCES.values():
        pq.write_table(pa.table(columns | {"ts": [500, 400, 300, 200, 100]}), tmp_path / f"{prefix}2020.parquet")
    return tmp_path


def test_texts_become_distinct_words_by_the_analysis_of_the_engines() -> None:
    lists, words = analyse_texts([*TEXTS, None])
    spelled = [words.take(pa.array(lists.keyword[a:b])).to_pylist() for a, b in zip(lists.start, lists.start[1:], strict=False)]
    assert spelled[:3] == [["fire", "at", "main", "street"], ["dog", "and"], []]
    assert spelled[5] == []
    assert len(words.unique()) == len(words)


def test_places_are_drawn_with_replacement_and_jitter(folder: Path) -> None:
    workload = open_workload("gazetteer", folder=folder, pool=1000, jitter=0.01)
    table = workload.with_words(workload.messages(300))
    assert workload.space == "lonlat"
    assert workload.describe()["rows"] == 4
    assert {words[0] for words in table["keywords"].to_pylist()} == {"fire", "dog", "flood"}
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    assert x.max() <= 180
    assert np.unique(x).size > 200
    assert np.abs(y[:, None] - np.array([40.0, 40.1, 40.3, 40.4])).min(1).max() < 0.06
    assert workload.messages(300).equals(open_workload("gazetteer", folder=folder, pool=1000).messages(300))


def test_boxes_stay_on_the_map(folder: Path) -> None:
    subscriptions = open_workload("gazetteer", folder=folder, pool=1000, range_high=5.0).subscriptions(200)
    assert subscriptions["x1"].to_numpy().max() == 180
    assert (subscriptions["x0"].to_numpy() <= subscriptions["x1"].to_numpy()).all()


@pytest.mark.parametrize("source_name", SOURCES)
def test_incidents_come_in_time_order_lap_after_lap(folder: Path, source_name: str) -> None:
    workload = open_workload("incidents", folder=folder, source_name=source_name, laps=10)
    table = workload.messages(30)
    assert (np.diff(table["time"].to_numpy()) >= 0).all()
    assert table["keywords"].type == pa.list_(pa.string())
    assert table["keywords"][0].as_py() in (
        ["fire", "near", "the", "bridge"],
        ["flood", "near", "the", "river"],
        ["dog", "and"],
    )
    assert table["id"].to_numpy().min() >= workload.history(2)["id"].to_numpy().max()


def test_incident_subscriptions_come_from_the_history(folder: Path) -> None:
    subscriptions = open_workload("incidents", folder=folder, laps=10).subscriptions(50)
    assert subscriptions["keywords"].type == pa.list_(pa.string())
    assert {word for words in subscriptions["keywords"].to_pylist() for word in words} <= {
        "fire",
        "near",
        "the",
        "bridge",
        "flood",
        "river",
    }


def test_missing_files_columns_and_sources_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"gazetteer_places.parquet"):
        open_workload("gazetteer", folder=tmp_path / "nowhere").messages(1)
    pq.write_table(pa.table({"lon": [1.0], "text": ["a"]}), folder / "gazetteer_places.parquet")
    with pytest.raises(WorkloadError, match="no column lat; it has lon, text"):
        open_workload("gazetteer", folder=folder).messages(1)
    pq.write_table(pa.table({"lon": [1.0], "lat": [1.0], "text": ["!"]}), folder / "gazetteer_places.parquet")
    with pytest.raises(WorkloadError, match="no row with a word"):
        open_workload("gazetteer", folder=folder).messages(1)
    with pytest.raises(WorkloadError, match="montco911, houston"):
        open_workload("incidents", folder=folder, source_name="paris")
    with pytest.raises(WorkloadError, match="laps"):
        open_workload("incidents", folder=folder, laps=0)
    with pytest.raises(WorkloadError, match="pool"):
        open_workload("gazetteer", folder=folder, pool=0)


def test_the_real_streams_can_be_read(data_folder: Path) -> None:
    for source_name in ("storms", "nyc311"):
        workload = open_workload("incidents", folder=data_folder, source_name=source_name)
        assert workload.messages(100).num_rows == 100
        assert workload.vocabulary_size > 1000


def test_travellers_can_meet_the_messages_of_the_gazetteer(folder: Path) -> None:
    workload = open_workload("moving", over="gazetteer", folder=folder, pool=1000, n_across=5, n_destinations=3)
    messages = workload.messages(300)
    for side in ("x", "y"):
        assert 0.0 <= pc.min(messages[side]).as_py() < pc.max(messages[side]).as_py() <= 1.0
    description = workload.describe()
    assert (description["vocabulary_size"], description["frequencies"]) == (len(workload.words), "corpus")
