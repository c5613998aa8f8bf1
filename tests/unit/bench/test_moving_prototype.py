"""Kind "moving_prototype": both are timed on the same journey, and their changes compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nearcast.bench import run_plan
from nearcast.bench.results import read_results
from nearcast.errors import NearcastError, PlanError

PLAN = """
title = "Beside"
paper = "Nobody 2020"
figure = "Figure 1"
claim = "As fast."
kind = "moving_prototype"
[workload]
name = "tweets"
range_low = 20.0
range_high = 20.0
vocabulary_size = 40
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_messages = 40
life = 2
repetitions = 3
chunk = 30
n_history = 50
[vary]
parameter = "n_subscriptions"
tiny = [200]
[[series]]
method = "prototype"
parameters = { folder = "FOLDER", shared_folder = "FOLDER" }
[[series]]
method = "index"
[[series]]
method = "tables"
label = "grid"
[check]
against = "other"
messages = 10
[[expect]]
text = "Within a factor."
stays_within = ["grid", 1.25, "prototype", "prototype"]
metric = "us_per_move"
"""

# As the prototype looks from outside; it tests one pair after the other, in float32.
STAND_IN = """
import numpy as np

class Eng:
    keep = False

    def __init__(self, words, x, y, side, history, scale, bits, clause_levels, message_levels, V0):
        self.words = [frozenset(row[row >= 0].tolist()) for row in words]
        self.at = np.stack([x, y], axis=1)
        self.half, self.rmask, self.nid, self.living = np.float32(side / 2), (1 << bits) - 1, 0, []

    def _holds(self, centre, place):
        return bool(((centre - self.half <= place) & (place <= centre + self.half)).all())

    def msgs(self, words, n_words, place, expires, now, match=True):
        out, runs = [], np.zeros((len(n_words), 4), np.int64)
        for m, n in enumerate(n_words):
            own = frozenset(words[m, :n].tolist())
            self.living.append(((self.nid + m) & self.rmask, own, place[m], expires[m]))
            runs[m, 0] = len(out)
            out += [s for s in range(len(self.words)) if self.words[s] <= own and self._holds(self.at[s], place[m])]
            runs[m, 1] = len(out) - runs[m, 0]
        self.nid += len(n_words)
        return 0.001, 0.002, [(np.array(out, np.int32) * FACTOR, runs)]

    def moves(self, ids, x, y, now):
        entered, left, runs = [], [], np.zeros((len(ids), 4), np.int64)
        for i, s in enumerate(ids):
            to = np.array([x[i], y[i]], np.float32)
            runs[i, 0], runs[i, 2] = len(entered), len(left)
            for slot, own, place, expires in self.living:
                if expires > now and self.words[s] <= own:
                    was, is_now = self._holds(self.at[s], place), self._holds(to, place)
                    entered += [slot] if is_now and not was else []
                    left += [slot] if was and not is_now else []
            runs[i, 1], runs[i, 3] = len(entered) - runs[i, 0], len(left) - runs[i, 2]
            self.at[s] = to
        return 0.001, [(np.array(entered, np.int32), np.array(left, np.int32), runs)]
"""


def plan_in(folder: Path, prototype: str) -> str:
    path = folder / "plan.toml"
    path.write_text(PLAN.replace("FOLDER", prototype), encoding="utf-8")
    return str(path)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, factor: int) -> str:
    monkeypatch.delitem(sys.modules, "eng", raising=False)
    folder.mkdir()
    (folder / "eng.py").write_text(STAND_IN.replace("FACTOR", str(factor)), encoding="utf-8")
    (folder / "common.py").write_text("", encoding="utf-8")
    return str(folder)


def test_the_same_changes_are_timed_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stand_in(tmp_path / "good", monkeypatch, 1)
    results = read_results(run_plan(plan_in(tmp_path, folder), "tiny", tmp_path))
    assert results.left_out == []
    for metric in ("us_per_move", "us_per_message", "updates_per_move", "matches_per_message"):
        assert set(results.curves(metric)) == {"prototype", "index", "grid"}
    updates, matches = results.curves("updates_per_move"), results.curves("matches_per_message")
    assert updates["prototype"] == updates["grid"]
    assert updates["grid"][200] > 0
    assert matches["prototype"] == matches["grid"]
    assert matches["grid"][200] > 0
    assert set(results.curves("us_per_expiry")) == {"index", "grid"}


def test_the_index_alone_has_times_of_its_own(tmp_path: Path) -> None:
    results = read_results(run_plan(plan_in(tmp_path, "nowhere"), "tiny", tmp_path))
    for metric in ("us_per_move", "us_per_message"):
        times = results.curves(metric)
        assert times["index"][200] > 0
        assert times["index"][200] != times["grid"][200]


def test_different_changes_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stand_in(tmp_path / "bad", monkeypatch, 0)
    with pytest.raises(NearcastError, match="tell different changes in step 0"):
        run_plan(plan_in(tmp_path, folder), "tiny", tmp_path)


def test_a_prototype_that_is_not_there_is_left_out_with_the_reason(tmp_path: Path) -> None:
    results = read_results(run_plan(plan_in(tmp_path, "nowhere"), "tiny", tmp_path))
    assert ["there is no prototype in 'nowhere'" in text for text in results.left_out] == [True]
    assert set(results.curves("us_per_move")) == {"index", "grid"}
    assert [judgement.verdict for _, judgement in results.judged()] == ["not judged"]


def test_unknown_methods_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace('method = "tables"', 'method = "guess"'), encoding="utf-8")
    with pytest.raises(PlanError, match=r"method 'guess'.*expected one of prototype"):
        run_plan(str(path), "tiny", tmp_path)
