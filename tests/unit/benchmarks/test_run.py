"""A plan runs from file to page: raw records, checked answers, plots, verdicts."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import list_plans, run_plan
from benchmarks.experiments import encode, match, moving, safe_regions
from benchmarks.metrics import METRICS
from benchmarks.metrics.shards import SHARDS, SIMULATION
from benchmarks.plan import read_plan
from benchmarks.record import read_records
from benchmarks.report.plot import draw_figures
from benchmarks.report.values import write_values
from benchmarks.results import find_results, read_results
from nearcast import timing
from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError, PlanError
from nearcast.machine import cached_kernels, commit, cpu_model, n_cached_kernels
from nearcast.moving.engine import MovingMatcher
from nearcast.testing.budget import current_budget

MATCH = """
title = "Two indexes"
paper = "Nobody <b>2020</b>"
figure = "Figure 1"
claim = "Spatial & textual."
kind = "match"
metrics = ["us_per_message", "candidates_per_message"]
[workload]
name = "tweets"
vocabulary_size = 500
pool = 20_000
frequencies = "curve"
range_high = 50.0
[sizes.tiny]
n_messages = 120
repetitions = 3
built_percent = 50
chunk = 50
[vary]
parameter = "n_subscriptions"
label = "subscriptions"
tiny = [100, 1000]
[[series]]
index = "keyword_first"
label = "keywords"
[[series]]
index = "spatial_first"
label = "space"
[check]
against = "scan"
messages = 30
[[expect]]
text = "Both verify less than everything."
at_most = ["keywords", 1000]
metric = "candidates_per_message"
"""
MOVING = """
title = "Travelling"
paper = "Nobody"
figure = "Figure 3"
claim = "Quick."
kind = "moving"
[workload]
name = "moving"
vocabulary_size = 200
pool = 20_000
frequencies = "curve"
range_high = 10.0
n_across = 10
n_destinations = 5
mobility = 0.5
[sizes.tiny]
n_messages = 120
repetitions = 4
life = 2
chunk = 50
[vary]
parameter = "n_subscriptions"
tiny = [300]
[[series]]
index = "grid_space_first"
label = "space"
[[series]]
index = "grid_keyword_first"
label = "keywords"
[check]
against = "moving_scan"
messages = 30
"""
SAFE_REGIONS = (
    MOVING.replace('kind = "moving"', 'kind = "safe_regions"')
    .replace("mobility = 0.5", "mobility = 1.0\nspeed = 0.3")
    .replace('index = "grid_space_first"\nlabel = "space"', 'method = "plain"')
    .replace('index = "grid_keyword_first"\nlabel = "keywords"', 'method = "safe_regions"')
)
OF_MOVES = (
    "us_per_move",
    "us_per_expiry",
    "us_per_move_and_message",
    "updates_per_move",
    "candidates_per_move",
    "growth_percent",
)
OF_SAFE_REGIONS = ("ms_per_step", "traffic_per_step", "reports_per_step", "contacts_per_step")
OF_PEERS = ("single_us_per_message", "singles_per_second", "stream_us_per_message")
OF_SHARDS = tuple(metric.name for metric in (*SHARDS, *SIMULATION))
OF_RANKS = (
    "arrival_us",
    "expiry_us",
    "tick_us",
    "longest_call_ms",
    "refills_per_message",
    "scored_per_refill",
    "held_per_subscription",
    "fill_seconds",
)
OF_SERVICES = (
    "two_thread_share",
    "publish_p50_us",
    "publish_p99_us",
    "late_ratio",
    "late_bytes",
    "merge_p99_ms",
    "open_ms",
    "first_match_seconds",
    "peak_gib",
)
ENCODE = """
title = "Words"
paper = "Nobody"
figure = "Figure 2"
claim = "Fast."
kind = "encode"
[workload]
name = "tweets"
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_messages = 300
repetitions = 2
chunk = 100
[vary]
parameter = "workload.vocabulary_size"
tiny = [500]
[[series]]
method = "vocabulary"
[[series]]
method = "python_dict"
[check]
against = "other"
messages = 100
"""


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans")
    (folder / "two.toml").write_text(MATCH)
    (folder / "words.toml").write_text(ENCODE)
    (folder / "travel.toml").write_text(MOVING)
    (folder / "safe.toml").write_text(SAFE_REGIONS)
    return folder


@pytest.fixture(scope="module")
def out(plans: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for name in ("two", "words", "travel", "safe"):
        assert run_plan(str(plans / f"{name}.toml"), "tiny", folder) == folder / name / "tiny"
    return folder


def test_a_match_run_keeps_every_chunk_of_every_pass(out: Path) -> None:
    records = read_records(out / "two" / "tiny")
    assert [(record.value, record.series) for record in records] == [
        (100, "keywords"),
        (100, "space"),
        (1000, "keywords"),
        (1000, "space"),
    ]
    for record in records:
        assert record.chunk_seconds.shape == (3, 3)
        assert record.chunk_messages.tolist() == [50, 50, 20]
        assert (record.chunk_seconds > 0).all()
        assert record.matches.shape == (120,)
        assert record.counters["matches"].sum() == record.matches.sum()
        assert record.facts["n_subscriptions"] == record.value
        assert all(
            (METRICS[name].of(record) is None)
            == (name in (*OF_MOVES, *OF_SAFE_REGIONS, *OF_SERVICES, *OF_PEERS, *OF_RANKS, *OF_SHARDS))
            for name in METRICS
        )
    assert np.array_equal(records[2].matches, records[3].matches)
    assert records[2].matches.sum() > 0


def test_a_moving_run_keeps_every_chunk_of_every_step(out: Path) -> None:
    records = read_records(out / "travel" / "tiny")
    assert [record.series for record in records] == ["space", "keywords"]
    for record in records:
        assert record.chunk_seconds.shape == (4, 3)
        assert record.chunk_messages.tolist() == [50, 50, 20]
        assert record.matches.sum() > 0
        assert record.facts["n_living_messages"] == 2 * 120
        assert record.facts["check"]["pairs"] > 0
        moved = record.facts["step_moves"]
        assert len(moved) == 4
        assert all(0 < n < 300 for n in moved)
        assert all(METRICS[name].of(record) is not None for name in (*OF_MOVES, "us_per_message", "candidates_per_message"))
    assert records[0].facts["check"]["against"] == "keywords"
    assert records[1].facts["check"]["against"] == "moving_scan"
    assert np.array_equal(records[0].matches, records[1].matches)


def test_a_run_with_safe_regions_counts_what_is_sent(out: Path) -> None:
    plain, safe = read_records(out / "safe" / "tiny")
    assert plain.facts["traffic"]["reports"] == 300
    assert METRICS["traffic_per_step"].of(plain) == 1.0
    assert 0 < METRICS["reports_per_step"].of(safe) < 1.0  # type: ignore[operator]
    assert safe.facts["traffic"]["safe_regions"] > 0
    assert safe.facts["check"]["pairs"] > 0
    assert all(METRICS[name].of(safe) is not None for name in OF_SAFE_REGIONS)


class Deaf(MovingMatcher):
    """Asks nobody where they are, whatever arrives."""

    def publish_table(self, table: pa.Table) -> pa.Table:
        protocol, self._protocol = self._protocol, None
        changes = super().publish_table(table)
        self._protocol = protocol
        return changes


def test_a_method_with_other_results_has_no_figures(plans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_regions, "MovingMatcher", Deaf)
    with pytest.raises(NearcastError, match="'safe_regions' gives other results than 'plain'"):
        run_plan(str(plans / "safe.toml"), "tiny", tmp_path)


def test_an_unknown_method_of_safe_regions_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "bad.toml"
    plan.write_text(SAFE_REGIONS.replace('method = "safe_regions"', 'method = "magic"'))
    with pytest.raises(PlanError, match="method 'magic'"):
        run_plan(str(plan), "tiny", tmp_path)


def test_series_that_take_turns_on_a_journey_are_checked_against_each_other(tmp_path: Path) -> None:
    plan = tmp_path / "turns.toml"
    plan.write_text(
        MOVING.replace('against = "moving_scan"', 'against = "other"').replace("life = 2", "life = 2\ntakes_turns = true")
    )
    records = read_records(run_plan(str(plan), "tiny", tmp_path))
    assert [record.facts["check"]["against"] for record in records] == ["keywords", "space"]


class Sluggish(MovingMatcher):
    """Does not hear of moves; the reference does."""

    def move_table(self, table: pa.Table) -> pa.Table:
        return super().move_table(table if self.stats()["index"] == "moving_scan" else table.slice(0, 1))


class Secretive(MovingMatcher):
    """Reports all changes, but forgets the results of one subscription; the reference does not."""

    def current_table(self, ids: Any = None) -> pa.Table:
        found = super().current_table(ids)
        return found if self.stats()["index"] == "moving_scan" else found.slice(1)


@pytest.mark.parametrize(
    ("matcher", "complaint"), [(Sluggish, "in the changes of step 0"), (Secretive, "in the results at the end")]
)
def test_a_moving_index_with_wrong_changes_has_no_times(
    matcher: type, complaint: str, plans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "MovingMatcher", matcher)
    with pytest.raises(NearcastError, match=f"'keywords' differs from 'moving_scan' {complaint}"):
        run_plan(str(plans / "travel.toml"), "tiny", tmp_path)
    assert not (tmp_path / "travel" / "tiny").exists()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('against = "moving_scan"', 'against = "scan"', "checks against 'scan'"),
        ('name = "moving"', 'name = "tweets"', "expected 'moving'"),
        ('[[series]]\nindex = "grid_keyword_first"\nlabel = "keywords"\n', "", "has one series"),
    ],
)
def test_a_moving_plan_that_cannot_run_says_why(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = MOVING.replace(old, new)
    if new == "":
        text = text.replace('against = "moving_scan"', 'against = "other"')
    if "tweets" in new:
        text = text.replace("n_across = 10\nn_destinations = 5\nmobility = 0.5\n", "")
    plan = tmp_path / "bad.toml"
    plan.write_text(text)
    with pytest.raises(PlanError, match=complaint):
        run_plan(str(plan), "tiny", tmp_path)


def test_a_record_has_the_circumstances_of_its_measurement(out: Path) -> None:
    facts = json.loads(next(iter(sorted((out / "two" / "tiny").glob("*.json")))).read_text())
    assert facts["check"] == {"against": "scan", "messages": 30, "pairs": facts["check"]["pairs"], "equal": True}
    assert {"python", "numpy", "numba", "pyarrow", "nearcast"} <= facts["versions"].keys()
    assert facts["machine"]["cpu"] == cpu_model()
    assert facts["workload"]["range_high"] == 50.0
    assert {"commit", "date", "seed", "build_seconds", "bytes"} <= facts.keys()


def test_encoding_gives_the_same_ids_with_both_methods(out: Path) -> None:
    records = read_records(out / "words" / "tiny")
    assert [record.series for record in records] == ["vocabulary", "python_dict"]
    assert all(record.facts["check"]["equal"] for record in records)
    assert METRICS["candidates_per_message"].of(records[0]) is None


def test_only_metrics_with_values_are_drawn(out: Path, tmp_path: Path) -> None:
    words = read_results(out / "words" / "tiny")
    plan = replace(words.plan, metrics=("candidates_per_message", "us_per_message"))
    write_values(tmp_path / "measured.csv", [words])
    assert [path.name for path in draw_figures(tmp_path, {"words": plan})] == ["words-us_per_message.svg"]


class PulledPlugError(Exception):
    pass


def test_an_interrupted_run_goes_on_after_its_last_whole_point(
    plans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = str(plans / "two.toml")

    def steps_of(stop_at: int, resume: bool) -> list[str]:
        seen: list[str] = []

        def note(step: int, n_steps: int, what: str) -> None:
            seen.append(what)
            if step == stop_at:
                raise PulledPlugError

        with contextlib.suppress(PulledPlugError):
            run_plan(plan, "tiny", tmp_path, note, resume=resume)
        return seen

    first = steps_of(5, resume=True)
    assert [what.partition(":")[0] for what in first] == ["100"] * 4 + ["1,000"] * 2
    assert list(find_results(tmp_path)) == []
    kept = read_records(tmp_path / "two" / ".tiny.new")
    assert [what.partition(":")[0] for what in steps_of(99, resume=True)] == ["1,000"] * 4 + ["done"]
    records = read_records(tmp_path / "two" / "tiny")
    assert [(record.value, record.series) for record in records[:2]] == [(record.value, record.series) for record in kept]
    assert all(np.array_equal(old.chunk_seconds, new.chunk_seconds) for old, new in zip(kept, records, strict=False))
    assert len(records) == 4
    # What is whole is not measured again, unless somebody wants it or the source is another.
    assert steps_of(99, resume=True) == []
    assert len(steps_of(99, resume=False)) == 9
    monkeypatch.setattr("benchmarks.run.commit", lambda: "another")
    assert len(steps_of(99, resume=True)) == 9


def test_progress_counts_up_to_its_total(plans: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    run_plan(str(plans / "words.toml"), "tiny", tmp_path, lambda *step: steps.append(step))
    assert [step for step, _, _ in steps] == list(range(len(steps)))
    assert steps[-1] == (4, 4, "done")


def test_a_second_run_replaces_the_first_and_a_failed_one_does_not(
    plans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_plan(str(plans / "words.toml"), "tiny", tmp_path)
    (folder / "stale.json").write_text("{}")
    assert run_plan(str(plans / "words.toml"), "tiny", tmp_path) == folder
    assert not (folder / "stale.json").exists()
    monkeypatch.setitem(encode.METHODS, "python_dict", lambda vocabulary: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_plan(str(plans / "words.toml"), "tiny", tmp_path)
    assert len(read_records(folder)) == 2
    assert len(list(find_results(tmp_path))) == 1


class Forgetful(Matcher):
    """Loses its last delivery of every table that has some; the reference does not."""

    def match_table(self, table: pa.Table, threads: int | None = 1) -> pa.Table:
        deliveries = super().match_table(table, threads)
        return deliveries if self.stats()["index"] == "scan" else deliveries.slice(0, max(0, deliveries.num_rows - 1))


def test_an_index_with_wrong_answers_has_no_times(plans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "Matcher", Forgetful)
    with pytest.raises(NearcastError, match=r"'keywords' gives .* where 'scan' gives .*missing: \[\("):
        run_plan(str(plans / "two.toml"), "tiny", tmp_path)
    assert not (tmp_path / "two" / "tiny").exists()


def test_series_can_be_checked_against_each_other(plans: Path, tmp_path: Path) -> None:
    plan = tmp_path / "other.toml"
    plan.write_text(MATCH.replace('against = "scan"', 'against = "other"').replace("[100, 1000]", "[100]"))
    records = read_records(run_plan(str(plan), "tiny", tmp_path))
    assert [record.facts["check"]["against"] for record in records] == ["spatial_first", "keyword_first"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('against = "scan"', 'against = "guess"', "checks against 'guess'"),
        ('index = "keyword_first"', 'index = "oracle"', "there is no index 'oracle'"),
        ('name = "tweets"', 'name = "toots"', "there is no workload 'toots'"),
        ("vocabulary_size = 500", "colour = 1", "does not take colour"),
    ],
)
def test_a_plan_that_cannot_run_says_why(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    plan = tmp_path / "bad.toml"
    plan.write_text(MATCH.replace(old, new))
    with pytest.raises(NearcastError, match=complaint):
        run_plan(str(plan), "tiny", tmp_path)


def test_an_unknown_method_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "bad.toml"
    plan.write_text(ENCODE.replace('"python_dict"', '"magic"'))
    with pytest.raises(PlanError, match="method 'magic'"):
        run_plan(str(plan), "tiny", tmp_path)
    plan.write_text(ENCODE.replace('"other"', '"scan"'))
    with pytest.raises(PlanError, match="checked against 'other'"):
        run_plan(str(plan), "tiny", tmp_path)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="holds no results"):
        read_results(tmp_path)


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of compiled kernels, under the control of the test."""
    counted = [0]
    monkeypatch.setattr(timing, "n_cached_kernels", lambda: counted[0])
    return counted


def test_a_time_that_holds_compilation_is_taken_again(compiling: list[int]) -> None:
    calls: list[Any] = []

    def work(chunk: Any = None) -> int:
        calls.append(chunk)
        compiling[0] += len(calls) == 1
        return len(calls)

    assert timing.timed(work)[1] == 2
    calls.clear()
    assert timing.time_passes(["a", "b"], work, 2).shape == (2, 2)
    assert calls == ["a", "b"] * 3


def test_the_machine_is_described() -> None:
    cached = cached_kernels()
    assert cached.n_kernels == n_cached_kernels()
    assert cached.n_bytes >= 0
    found = commit()
    assert found is None or len(found.rstrip("+")) == 40


# One or two of each paper; all of them in a soak.
FEW_PLANS = (
    "ap_tree/leaf_size",
    "ap_tree/moving_variants",
    "lfilter/methods",
    "rt_tree/baselines",
    "skype/buffers",
    "skype/distributed_replication",
    "nearcast/encoding",
)


def test_every_paper_has_a_plan_among_the_few() -> None:
    assert {name.split("/")[0] for name in FEW_PLANS} == {name.split("/")[0] for name in list_plans()}


@pytest.mark.parametrize("name", list_plans())
def test_every_shipped_plan_can_be_read(name: str) -> None:
    plan = read_plan(name)
    assert plan.points("tiny")


@pytest.mark.parametrize("name", list_plans() if current_budget().is_soak else FEW_PLANS)
def test_a_shipped_plan_runs_at_tiny(name: str, tmp_path: Path) -> None:
    results = read_results(run_plan(name, "tiny", tmp_path))
    assert len(results.records) == len(results.plan.points("tiny")) * len(results.plan.series)
    assert len(results.judged()) == len(results.plan.expect)
