"""Kind "ranked_prototype": both are timed on the same stream, and their lists compared."""

from __future__ import annotations

import os
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
kind = "ranked_prototype"
[workload]
name = "tweets"
vocabulary_size = 40
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_messages = 30
life = 4
warm_steps = 10
repetitions = 3
chunk = 30
[vary]
parameter = "n_subscriptions"
tiny = [60]
[[series]]
method = "prototype"
parameters = { folder = "FOLDER" }
[[series]]
method = "ranker"
label = "grid"
[[series]]
method = "lists"
label = "its lists"
[check]
against = "other"
messages = 60
[[expect]]
text = "Within a factor."
stays_within = ["grid", 1.3, "prototype", "prototype"]
metric = "tick_us"
"""

# As the prototype looks from outside; it scores everything, in float32.
STAND_IN = """
import os
import numpy as np

assert os.environ["BASE"] == "4"
PLACES = 64

class Sys:
    def __init__(self, W, T, S, k, n0, lam, log, wl):
        open("left_behind", "w").close()
        self.W, self.n_built, self.told_from = W, 0, None
        words, n_words, self.at = wl.msgs(W + T, 1)
        own, box = wl.subs(S, 99)
        df = np.bincount(words[:W][words[:W] >= 0], minlength=words.max() + 1)
        idf = np.log((W + 1) / (df + 1)) + 1
        self.messages = [set(row[:n].tolist()) for row, n in zip(words, n_words)]
        self.own = [set(row[row >= 0].tolist()) for row in own]
        self.idf, self.place = idf, box[:, :2]
        self.weight = np.random.default_rng(5).random(S).astype(np.float32)
        self.ring, self.fring = np.zeros(S * 2 * PLACES, np.int32), np.zeros(S * 2 * PLACES, np.float32)

    def build(self, lam, shortest, log):
        self.n_built += 1

    def set_eager(self, newest):
        self.told_from = newest + 1

    def _length(self, words):
        return np.sqrt(sum(self.idf[w] ** 2 for w in words))

    def run(self, first, last, mode, counted, is_told):
        assert is_told == (self.told_from is not None)
        counted[19] = 7
        for s, own in enumerate(self.own):
            scored = []
            for q in range(last - self.W, last):
                common = own & self.messages[q]
                if common:
                    text = sum(self.idf[w] ** 2 for w in common) / self._length(own) / self._length(self.messages[q])
                    away = np.hypot(*(self.place[s].astype(float) - self.at[q])) / np.sqrt(2.0)
                    w = float(self.weight[s])
                    scored.append((w * (1 - away) + (1 - w) * text, q))
            scored = sorted(scored, reverse=True)[:PLACES]
            at = s * 2 * PLACES
            self.ring[at + 1 : at + 2 * PLACES : 2] = -1
            for i, (score, q) in enumerate(scored):
                self.fring[at + 2 * i], self.ring[at + 2 * i + 1] = score * FACTOR, q
"""


def plan_in(folder: Path, prototype: str, plan: str = PLAN) -> str:
    path = folder / "plan.toml"
    path.write_text(plan.replace("FOLDER", prototype), encoding="utf-8")
    return str(path)


def stand_in(folder: Path, factor: float) -> str:
    folder.mkdir()
    (folder / "topk6.py").write_text(STAND_IN.replace("FACTOR", str(factor)), encoding="utf-8")
    return str(folder)


def test_both_are_timed_on_the_same_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = stand_in(tmp_path / "prototype", 1.0)
    results = read_results(run_plan(plan_in(tmp_path, folder), "tiny", tmp_path))
    assert results.left_out == []
    for metric in ("tick_us", "longest_call_ms", "fill_seconds"):
        assert set(results.curves(metric)) == {"prototype", "grid", "its lists"}
    curves = results.curves("tick_us")
    assert 0 < curves["its lists"][60] < curves["grid"][60]
    assert set(results.curves("refills_per_message")) == {"grid", "its lists"}
    assert sys.modules["topk6"].Sys.__module__ == "topk6"
    # What it leaves where it runs is gone, and so is what it was told by the environment.
    assert Path.cwd() == tmp_path
    assert not (tmp_path / "left_behind").exists()
    assert "BASE" not in os.environ


def test_what_the_environment_said_before_is_said_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", "2")
    run_plan(plan_in(tmp_path, stand_in(tmp_path / "prototype", 1.0)), "tiny", tmp_path)
    assert os.environ["BASE"] == "2"


def test_different_lists_are_an_error(tmp_path: Path) -> None:
    folder = stand_in(tmp_path / "prototype", 1.001)
    with pytest.raises(NearcastError, match=r"the list of subscription \d+ has the scores .* correct the index first"):
        run_plan(plan_in(tmp_path, folder), "tiny", tmp_path)


def test_a_prototype_that_is_not_there_is_left_out_with_the_reason(tmp_path: Path) -> None:
    results = read_results(run_plan(plan_in(tmp_path, "nowhere"), "tiny", tmp_path))
    assert ["there is no prototype in 'nowhere'" in text for text in results.left_out] == [True]
    assert set(results.curves("tick_us")) == {"grid", "its lists"}
    assert [judgement.verdict for _, judgement in results.judged()] == ["not judged"]


def test_an_unknown_method_is_refused(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, "nowhere", PLAN.replace('method = "ranker"', 'method = "guess"'))
    with pytest.raises(PlanError, match=r"'guess' of .*expected one of prototype, ranker"):
        run_plan(plan, "tiny", tmp_path)


def test_lists_are_those_of_a_ranker(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, "nowhere", PLAN.replace('method = "ranker"', 'method = "lists"'))
    with pytest.raises(PlanError, match="has not one series with method 'ranker'"):
        run_plan(plan, "tiny", tmp_path)
