"""Step "prepare" on a real session: what comes in is kept, quarantined or repeated, and the counts add up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from nearcast.columns.folder import read_folder
from nearcast.errors import PipelineError
from nearcast.pipeline.io.sources import read_messages, read_subscriptions
from nearcast.pipeline.plan.step import make_plan
from nearcast.pipeline.prepare.keyword_statistics import current_statistics
from nearcast.pipeline.prepare.step import HISTORY, MESSAGES, QUARANTINE, prepare
from nearcast.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def write_raw(folder: Path) -> int:
    """Reports as JSON lines, good and bad; returns how many there are."""
    good = [
        {"number": n, "said": f"Rain in Town{n % 7} today", "lon": n / 10, "y": 1.0, "time": 1000.0 - n} for n in range(100)
    ]
    bad = [
        {"number": None, "said": "no id", "lon": 1.0, "y": 1.0},
        {"number": 201, "lon": 1.0, "y": 1.0},
        {"number": 202, "said": "no place", "y": 1.0},
        {"number": 203, "said": "off the map", "lon": 999.0, "y": 1.0},
        {"number": 204, "said": "x" * 1_200_000, "lon": 1.0, "y": 1.0},
        {"number": 205, "said": "a word for a number", "lon": "east", "y": 1.0},
    ]
    repeated = [{"number": 5, "said": "the same id, earlier", "lon": 3.0, "y": 2.0, "time": 1.0}]
    lines = [json.dumps(row) for row in [*good, *bad, *repeated]] + ['{"number": 300, "said": "cut off']
    folder.mkdir(parents=True)
    (folder / "a.json").write_text("\n".join(lines[::2]) + "\n")
    (folder / "b.json").write_text("\n".join(lines[1::2]) + "\n")
    return len(lines)


def settings_for(tmp_path: Path) -> PipelineSettings:
    return PipelineSettings(
        work=str(tmp_path / "work"),
        shared_dir=str(tmp_path / "host"),
        messages=str(tmp_path / "raw"),
        messages_format="json",
        messages_schema="number long, said string, lon double, y double, time double",
        columns={"id": "number", "text": "said", "x": "lon"},
        stop_words="english",
        history_rows=30,
    )


def test_bad_rows_are_quarantined_with_reasons_and_the_counts_add_up(spark: SparkSession, tmp_path: Path) -> None:
    n_raw = write_raw(tmp_path / "raw")
    settings = settings_for(tmp_path)
    prepared = prepare(spark, read_messages(spark, settings, is_stream=False), settings)
    assert prepared.read == n_raw == prepared.kept + prepared.quarantined + prepared.repeated
    assert (prepared.kept, prepared.quarantined, prepared.repeated) == (100, 7, 1)
    quarantine = settings.store.read_table(QUARANTINE).to_pylist()
    reasons = {row["id"]: row["reason"] for row in quarantine if row["id"] is not None}
    assert "neither a text" in reasons["201"]
    assert "coordinate is null" in reasons["202"]
    assert "outside lonlat" in reasons["203"]
    assert "1200000 characters" in reasons["204"]
    assert sum("cannot be parsed" in row["reason"] for row in quarantine) == 2
    assert sum(prepared.reasons.values()) == 7
    # Of two rows with one id the earlier is kept.
    clean = {row["id"]: row for row in settings.store.read_table(MESSAGES).to_pylist()}
    assert clean[5]["keywords"] == ["id", "earlier"]
    history = settings.store.read_table(HISTORY)
    assert history.num_rows == 30
    statistics = current_statistics(settings.store, settings.analysis)
    rain = statistics.keywords.find(["rain"])[0]
    assert statistics.frequency[rain] == 99
    assert statistics.frequency.tolist() == sorted(statistics.frequency.tolist(), reverse=True)
    # Again: a new version of the counts, the same sample.
    again = prepare(spark, read_messages(spark, settings, is_stream=False), settings)
    assert again.keyword_version == prepared.keyword_version + 1
    assert settings.store.read_table(HISTORY).sort_by("id").equals(history.sort_by("id"))
    facts, arrays = read_folder(Path(settings.work) / "prepared" / "keywords" / "000002", "keyword_statistics")
    assert facts["n_messages"] == 100
    assert arrays["frequency"].dtype == np.int64


def test_a_source_that_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    write_raw(tmp_path / "raw")
    settings = settings_for(tmp_path)
    with pytest.raises(PipelineError, match="needs messages_schema"):
        read_messages(spark, replace(settings, messages_schema=""), is_stream=False)
    with pytest.raises(PipelineError, match="have no columns"):
        read_messages(spark, replace(settings, columns={"id": "name"}), is_stream=False)
    with pytest.raises(PipelineError, match="no column 'id'"):
        read_messages(spark, replace(settings, columns={}), is_stream=False)
    with pytest.raises(PipelineError, match="no subscriptions were named"):
        read_subscriptions(spark, settings)
    pq.write_table(pq.read_table(_sample_subscriptions(tmp_path)), tmp_path / "s.parquet")
    named = replace(settings, subscriptions=str(tmp_path / "s.parquet"))
    with pytest.raises(PipelineError, match="run first: nearcast pipeline prepare"):
        make_plan(read_subscriptions(spark, named), named)


def _sample_subscriptions(tmp_path: Path) -> Path:
    from nearcast.workloads import sample_subscriptions

    pq.write_table(sample_subscriptions(), tmp_path / "sample.parquet")
    return tmp_path / "sample.parquet"
