"""Kinds "service" and "prototype": what is measured, and what is left out with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearcast.bench import make_report, run_plan
from nearcast.bench.metrics import METRICS
from nearcast.bench.record import Record
from nearcast.bench.results import read_results
from nearcast.errors import PlanError
from nearcast.machine import peak_bytes, reset_peak

PROTOTYPE = """
title = "Beside"
paper = "Nobody 2020"
figure = "Figure 1"
claim = "As fast."
kind = "prototype"
[workload]
name = "tweets"
vocabulary_size = 500
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_messages = 60
repetitions = 2
chunk = 25
n_history = 50
[vary]
parameter = "n_subscriptions"
tiny = [300]
[[series]]
method = "prototype"
parameters = { folder = "FOLDER" }
[[series]]
method = "match_runs"
[[series]]
method = "match_encoded"
[check]
against = "other"
messages = 10
[[expect]]
text = "Within a factor."
stays_within = ["match_runs", 1.15, "prototype", "prototype"]
"""

# As the prototype looks from outside; it matches one pair after the other.
STAND_IN = """
import numpy as np

class FK3:
    def __init__(self, keywords, box, size, history, lam):
        self._arguments = keywords, box
    def total(self):
        return 300 * 100
    def args(self):
        return self._arguments

def match3(keywords, box, words, n_words, place, out, offsets, out2, offsets2, counters, batch):
    for m in range(len(n_words)):
        known = set(words[m, : n_words[m]].tolist())
        is_in = ((box[:, :2] <= place[m]) & (place[m] <= box[:, 2:])).all(axis=1)
        found = [s for s in np.flatnonzero(is_in) if known.issuperset(k for k in keywords[s].tolist() if k >= 0)]
        offsets[m + 1] = offsets[m] + len(found[DROPPED:])
        out[offsets[m] : offsets[m + 1]] = found[DROPPED:]
        offsets2[m + 1] = 0
"""


def plan_in(folder: Path, prototype: str, name: str) -> str:
    path = folder / f"{name}.toml"
    path.write_text(PROTOTYPE.replace("FOLDER", prototype), encoding="utf-8")
    return str(path)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, n_dropped: int) -> str:
    monkeypatch.delitem(__import__("sys").modules, "fk3", raising=False)
    folder.mkdir()
    (folder / "fk3.py").write_text(STAND_IN.replace("DROPPED", str(n_dropped)), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("folder", "reason"), [("$NEARCAST_DATA/x", "NEARCAST_DATA is not set"), ("nowhere", "there is no prototype in 'nowhere'")]
)
def test_a_prototype_that_is_not_there_is_left_out_with_the_reason(
    folder: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEARCAST_DATA", raising=False)
    results = read_results(run_plan(plan_in(tmp_path, folder, "absent"), "tiny", tmp_path))
    assert [reason in text for text in results.left_out] == [True]
    assert set(results.curves("us_per_message")) == {"match_runs", "match_encoded"}
    assert [judgement.verdict for _, judgement in results.judged()] == ["not judged"]
    make_report(tmp_path, tmp_path / "pages")
    assert reason in (tmp_path / "pages" / "own.md").read_text(encoding="utf-8").replace("\\_", "_")


def test_a_prototype_is_timed_and_its_answers_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stand_in(tmp_path / "good", monkeypatch, 0)
    results = read_results(run_plan(plan_in(tmp_path, folder, "good_plan"), "tiny", tmp_path))
    assert results.left_out == []
    assert set(results.curves("us_per_message")) == {"prototype", "match_runs", "match_encoded"}
    assert results.curves("bytes_per_subscription")["prototype"] == {300: 100.0}
    assert results.records[0].matches.sum() > 0
    folder = stand_in(tmp_path / "bad", monkeypatch, 1)
    with pytest.raises(Exception, match="give different matches in chunk"):
        run_plan(plan_in(tmp_path, folder, "bad_plan"), "tiny", tmp_path)


def test_unknown_methods_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PROTOTYPE.replace('method = "match_runs"', 'method = "guess"').replace('"match_runs", 1', '"guess", 1'))
    with pytest.raises(PlanError, match=r"method 'guess'.*expected one of prototype"):
        run_plan(str(path), "tiny", tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("two_thread_share", 0.5),
        ("publish_p50_us", 200.0),
        ("publish_p99_us", pytest.approx(298.0)),
        ("merge_p99_ms", 7.0),
        ("late_ratio", 1.2),
        ("late_bytes", 150.0),
        ("open_ms", 4.0),
        ("first_match_seconds", 0.7),
        ("peak_gib", 2.0),
    ],
)
def test_metrics_of_a_service_on_known_numbers(name: str, value: float) -> None:
    facts = {
        "table_seconds": 4.0,
        "two_thread_seconds": 2.0,
        "publish_us": [100.0, 200.0, 300.0],
        "merge_batch_ms": [7.0],
        "late_ratio": 1.2,
        "late_bytes": 150,
        "open_seconds": 0.004,
        "first_match_seconds": 0.7,
        "peak_bytes": 2 << 30,
    }
    assert METRICS[name].of(Record(facts, np.ones((1, 1)), np.ones(1, np.int64))) == value


def test_nothing_measured_gives_no_numbers() -> None:
    nothing = Record({}, np.empty((0, 0)), np.empty(0, np.int64))
    assert [name for name, metric in METRICS.items() if metric.of(nothing) is not None] == []


def test_a_peak_of_memory_is_seen_until_it_is_reset() -> None:
    before = peak_bytes()
    if before is None:
        pytest.skip("this system does not tell")
    held = np.ones(1 << 24)
    assert (peak_bytes() or 0) >= held.nbytes
    reset_peak()
    assert peak_bytes()


def test_a_service_is_checked_against_an_index(tmp_path: Path) -> None:
    text = PROTOTYPE.replace('kind = "prototype"', 'kind = "service"').split("[[series]]")[0]
    path = tmp_path / "plan.toml"
    path.write_text(text + '[[series]]\nindex = "scan"\n[check]\nagainst = "other"\nmessages = 10\n', encoding="utf-8")
    with pytest.raises(PlanError, match="checked against an index"):
        run_plan(str(path), "tiny", tmp_path)
