"""The experiment `ranked`: states are made once for methods with equal buffers; all methods must report the same changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import run_plan
from benchmarks.experiments import ranked
from benchmarks.experiments.ranked import Ranked, method_of
from benchmarks.metrics import METRICS
from benchmarks.plan import Series
from benchmarks.record import read_records
from nearcast.errors import IndexParameterError, NearcastError, PlanError
from nearcast.ranked.engine import Ranker

PLAN = """
title = "Best messages"
paper = "Nobody"
figure = "Figure 1"
claim = "All the same."
kind = "ranked"
[workload]
name = "tweets"
vocabulary_size = 500
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_subscriptions = 40
n_messages = 25
life = 3
warm_steps = 2
repetitions = 3
chunk = 10
[vary]
parameter = "series.factor"
tiny = [1.0]
[[series]]
index = "ranked_scan"
label = "kmax"
parameters = { buffer = "kmax", k = 3 }
[[series]]
index = "ranked_scan"
label = "kmax, IR-tree"
parameters = { buffer = "kmax", k = 3, window_index = "window_ir_tree" }
[[series]]
index = "ranked_scan"
label = "cSkyband"
parameters = { buffer = "cost_skyband", k = 3 }
[check]
against = "ranked_scan"
messages = 10
"""


def run(folder: Path, plan: str = PLAN) -> Path:
    (folder / "best.toml").write_text(plan)
    return run_plan(str(folder / "best.toml"), "tiny", folder / "results")


def test_a_ranked_run_keeps_every_chunk_and_makes_a_state_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_BENCH_STATES", str(tmp_path / "states"))
    records = read_records(run(tmp_path))
    # Two kinds of buffers, and another index of the window.
    assert len(list((tmp_path / "states").glob("*.json"))) == 3
    assert [record.series for record in records] == ["kmax", "kmax, IR-tree", "cSkyband"]
    for record in records:
        assert record.chunk_seconds.shape == (1, 9)
        assert record.chunk_messages.tolist() == [10, 10, 5] * 3
        assert record.facts["n_living_messages"] == 75
        assert record.facts["check"]["equal"]
        assert record.facts["check"]["pairs"] > 0
        assert all(METRICS[name].of(record) is not None for name in Ranked.metrics)
    # A buffer of just k messages is refilled often.
    assert METRICS["refills_per_message"].of(records[0]) > METRICS["refills_per_message"].of(records[2])  # type: ignore[operator]
    assert METRICS["scored_per_refill"].of(records[0]) is not None
    assert [record.facts["stats"]["window_index"] for record in records] == ["window_grid", "window_ir_tree", "window_grid"]


class Forgetful(Ranker):
    """Does not report the first message that ends."""

    def advance_table(self, now: Any) -> pa.Table:
        changes = super().advance_table(now)
        return changes.slice(1) if self.stats()["buffer"] == "cost_skyband" else changes


def test_a_method_with_wrong_changes_has_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "Ranker", Forgetful)
    with pytest.raises(NearcastError, match="'kmax, IR-tree' differs from 'cSkyband' in the changes of call 0"):
        run(tmp_path)


class Idle(Ranker):
    """Has other lists than its changes lead to."""

    def top_table(self, ids: Any = None) -> pa.Table:
        lists = super().top_table(ids)
        return lists.slice(1) if self.stats()["buffer"] == "cost_skyband" else lists


def test_a_method_with_wrong_lists_has_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "Ranker", Idle)
    with pytest.raises(NearcastError, match="ends with other lists than"):
        run(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('against = "ranked_scan"', 'against = "scan"', "checks against 'scan'"),
        ("k = 3, window_index", "n = 3, window_index", "has no parameter 'n'"),
        ("n_messages = 25", "n_messages = 0", "at least 1"),
    ],
)
def test_a_ranked_plan_that_cannot_run_says_why(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    with pytest.raises((PlanError, IndexParameterError), match=complaint):
        run(tmp_path, PLAN.replace(old, new))


def test_one_series_is_not_checked_against_itself(tmp_path: Path) -> None:
    first, *_ = PLAN.split('[[series]]\nindex = "ranked_scan"\nlabel = "kmax, IR-tree"')
    with pytest.raises(PlanError, match="has one series; check against 'ranked_scan'"):
        run(tmp_path, first + '[check]\nagainst = "other"\nmessages = 10\n')


def test_options_of_other_buffers_are_left_out() -> None:
    method = method_of(Series("a", "ranked_scan", {"buffer": "skyband", "ratio": 0.9, "factor": 2.0, "k": 7}))
    assert (method.buffer_parameters, method.index_parameters, method.k) == ({"ratio": 0.9}, {}, 7)
    with pytest.raises(IndexParameterError, match="has no parameter 'colour'"):
        method_of(Series("a", "ranked_scan", {"colour": 1}))
