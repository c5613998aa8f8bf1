"""Results become pages: claims and verdicts in words, figures as files, every value in a table."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import make_report
from benchmarks.metrics import METRICS
from benchmarks.plan import list_plans, parse_plan, read_plan
from benchmarks.record import Record, write_record
from benchmarks.report.pages import HEADLINES, front_page, largest_of_each, plain, table
from benchmarks.report.plot import draw_figures, figure_name
from benchmarks.report.values import read_values
from benchmarks.results import Results, find_results
from nearcast.errors import PlanError

EXPERIMENTS = Path(__file__).resolve().parents[3] / "docs" / "experiments"
PLAN = """
title = "Two ways"
paper = "Nobody <b>2020</b>"
figure = "Figure 1"
claim = "Spatial & textual."
why = "Ours has no |pipes|."
kind = "match"
metrics = ["us_per_message", "build_seconds", "matches_per_message"]
[workload]
name = "tweets"
[sizes.tiny]
n_messages = 10
repetitions = 1
[sizes.small]
n_messages = 10
repetitions = 1
[vary]
parameter = "n_subscriptions"
label = "subscriptions"
values = [100, 1000]
[[series]]
index = "scan"
label = "slow"
[[series]]
index = "frequency_grid"
label = "quick"
[check]
against = "other"
messages = 10
[[expect]]
text = "Quick is quicker."
series_faster = ["quick", "slow"]
"""
SECONDS = {("slow", 100): 1e-3, ("slow", 1000): 1e-2, ("quick", 100): 1e-4, ("quick", 1000): 2e-4}


def write_results(folder: Path, name: str, size: str, source: str = PLAN) -> None:
    plan = parse_plan(name, source, name)
    into = folder / name / size
    for number, point in enumerate(plan.points(size)):
        for place, series in enumerate(point.series):
            facts: dict[str, Any] = {
                "plan": name,
                "size": size,
                "seed": 1,
                "date": "2020-01-01",
                "n_messages": 10,
                "chunk": 10,
                "repetitions": 1,
                "commit": "c0ffee" * 5,
                "versions": {"nearcast": "1"},
                "workload": {"name": "tweets", "folder": "/some/where"},
                "check": {"against": "other", "messages": 10},
                "machine": {"cpu": "a chip", "cores": 2, "memory_bytes": None, "load_average": 0.1},
                "point": {"number": number, "label": point.label, "value": point.value},
                "series": {"number": place, "label": series.label},
            }
            seconds = np.array([[SECONDS[series.label, point.size.n_subscriptions]]])
            counters = {"candidates": np.full(10, 40 if series.label == "slow" else 5)}
            write_record(into, Record(facts, seconds, np.array([10]), counters, np.full(10, 3)))
    (into / "plan.toml").write_text(source, encoding="utf-8")


def test_a_page_for_each_paper_with_claim_verdict_figure_and_table(tmp_path: Path) -> None:
    results, pages = tmp_path / "results", tmp_path / "pages"
    write_results(results, "nobody/two", "tiny")
    write_results(results, "nobody/two", "small")
    write_results(results, "mine", "tiny")
    assert make_report(results, pages) == pages / "README.md"
    page = (pages / "nobody.md").read_text(encoding="utf-8")
    for part in (
        "> Spatial &amp; textual.",
        "Nobody &lt;b&gt;2020&lt;/b&gt;, Figure 1 · `python -m benchmarks run nobody/two --size small` · **reproduced**",
        "| Quick is quicker. | reproduced | slow is 10 to 50 times quick; more at 2 of 2 points |"
        " slow has 8 times the candidates per message |",
        "Ours has no \\|pipes\\|.",
        "Figures, drawn by `make figures` into `figures`: `nobody-two-us_per_message.svg`\n",
        "| 1,000 | quick | 20 | 3 |",
        "commit c0ffeec0ffee",
    ):
        assert part in page, part
    # Only what is judged is drawn, and nothing says on which machine's disk it was made.
    assert "matches_per_message.svg" not in page
    assert "/some/where" not in page
    assert (pages / "figures" / "nobody-two-us_per_message.svg").read_text(encoding="utf-8").count("quick") >= 1
    with (pages / "measured.csv").open(encoding="utf-8") as file:
        values = {
            (row["plan"], row["size"], row["point"], row["series"], row["metric"]): row["value"] for row in csv.DictReader(file)
        }
    assert values["nobody/two", "small", "1,000", "slow", "us_per_message"] == "1000"
    assert ("nobody/two", "tiny", "1,000", "slow", "us_per_message") not in values
    front = (pages / "README.md").read_text(encoding="utf-8")
    assert "2 experiments: 2 reproduced." in front
    assert "[Two ways](own.md)" in front
    # A second report takes the place of the first; other folders are nobody's to overwrite.
    make_report(results, pages)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear").touch()
    with pytest.raises(PlanError, match="holds other files than a report"):
        make_report(results, tmp_path / "letters")
    with pytest.raises(PlanError, match="holds no results"):
        make_report(tmp_path / "letters", pages)


def test_figures_are_drawn_from_the_values_in_the_repository(tmp_path: Path) -> None:
    lines = (EXPERIMENTS / "measured.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    some = ("nearcast/growth,", "lfilter/comparison,", "nearcast/moving_prototype,")
    (tmp_path / "measured.csv").write_text("".join([lines[0], *(line for line in lines if line.startswith(some))]))
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "stale.svg").touch()
    assert {path.name for path in draw_figures(tmp_path)} == {path.name for path in figures.iterdir()}
    drawn = {path.name: path.read_text(encoding="utf-8") for path in figures.iterdir()}
    # A plan that is gone is not drawn.
    assert {name.rpartition("-")[0] for name in drawn} == {"nearcast-growth", "lfilter-comparison"}
    assert "bytes per subscription in its table" in drawn["nearcast-growth-bytes_per_subscription.svg"]
    assert "R^t++" in drawn["lfilter-comparison-us_per_message.svg"]


def test_values_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"there is no .*measured\.csv"):
        draw_figures(tmp_path)
    (tmp_path / "measured.csv").write_text("a,b\n")
    with pytest.raises(PlanError, match="expected plan, size, point, series, metric, value"):
        draw_figures(tmp_path)


def test_the_pages_of_the_repository_name_the_figures_that_are_drawn(tmp_path: Path) -> None:
    named = {name for page in EXPERIMENTS.glob("*.md") for name in re.findall(r"`([\w-]+\.svg)`", page.read_text("utf-8"))}
    plans = {name: read_plan(name) for name in list_plans()}
    drawable = {
        figure_name(plans[values.plan], metric)
        for values in read_values(EXPERIMENTS / "measured.csv")
        if values.plan in plans
        for metric in plans[values.plan].drawn_metrics
        if any(value for points in values.by_metric.get(metric, {}).values() for value in points.values())
    }
    assert named == drawable


def test_the_front_page_of_the_repository_explains_every_column() -> None:
    front = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    for metric in METRICS.values():
        assert f"| {plain(metric.label)} | {plain(metric.description)} |" in front


def test_a_plan_of_ours_is_explained_as_it_is_now(tmp_path: Path) -> None:
    write_results(tmp_path, "lfilter/methods", "tiny")
    write_results(tmp_path, "mine", "tiny")
    explained, own = found_in(tmp_path)
    assert explained.why == read_plan("lfilter/methods").why
    assert own.why == "Ours has no |pipes|."


def test_counters_explain_what_compares_series(tmp_path: Path) -> None:
    alone = PLAN.replace('series_faster = ["quick", "slow"]', 'stays_flat = ["quick", 2]')
    write_results(tmp_path, "mine", "tiny", alone)
    [results] = found_in(tmp_path)
    assert [results.compare_work(expected) for expected in results.plan.expect] == [""]
    limited = PLAN.replace('["quick", "slow"]', '["quick", "slow"]\nat = [1000]')
    write_results(tmp_path, "mine", "tiny", limited)
    [results] = found_in(tmp_path)
    assert results.compare_work(results.plan.expect[0]) == "slow has 8 times the candidates per message"


def found_in(folder: Path) -> list[Results]:
    return largest_of_each(find_results(folder))


def test_the_numbers_that_matter_are_taken_at_the_last_point(tmp_path: Path) -> None:
    renamed = PLAN.replace('label = "quick"', 'label = "frequency_grid"').replace('["quick"', '["frequency_grid"')
    SECONDS.update({("frequency_grid", x): SECONDS["quick", x] for x in (100, 1000)})
    write_results(tmp_path, "nearcast/fast_index", "tiny", renamed)
    front = front_page({"nearcast.md": found_in(tmp_path)})
    expected = "| 50,000 messages per second | 1,000 (slow) | 50× | `nearcast/fast_index`, subscriptions 1,000 |"
    assert expected in front
    assert front.count("| not measured |") == len(HEADLINES) - 1
    # A plan whose own series is missing says so, too.
    write_results(tmp_path / "other", "nearcast/fast_index", "tiny")
    assert front_page({"nearcast.md": found_in(tmp_path / "other")}).count("| not measured |") == len(HEADLINES)


@pytest.mark.parametrize("headline", HEADLINES, ids=lambda headline: headline.plan)
def test_every_headline_names_what_its_plan_has(headline: Any) -> None:
    labels = {series.label for series in read_plan(headline.plan).series}
    assert {headline.ours, *headline.others} <= labels
    assert METRICS[headline.metric].better in ("higher", "lower")


def test_text_shows_itself_in_a_table() -> None:
    assert plain("a|b\n_c_ <d>") == "a\\|b \\_c\\_ &lt;d&gt;"
    assert table(["a", "b"], [["x", "1"]], n_left=1) == "| a | b |\n| :-- | --: |\n| x | 1 |\n"
