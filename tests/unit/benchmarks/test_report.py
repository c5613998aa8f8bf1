"""Results become pages: claims and verdicts in words, figures as files, every value in a table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import make_report
from benchmarks.metrics import METRICS
from benchmarks.plan import parse_plan, read_plan
from benchmarks.record import Record, write_record
from benchmarks.report.front_page import HEADLINES, front_page
from benchmarks.report.markdown import plain, table
from benchmarks.report.pages import largest_of_each
from benchmarks.results import Results, find_results
from benchmarks.work_beside import work_beside
from nearcast.errors import PlanError

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
        "![µs per message](figures/nobody-two-us_per_message.svg)",
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


def test_a_plan_of_ours_is_explained_as_it_is_now(tmp_path: Path) -> None:
    write_results(tmp_path, "lfilter/methods", "tiny")
    write_results(tmp_path, "mine", "tiny")
    explained, own = found_in(tmp_path)
    assert explained.why == read_plan("lfilter/methods").why
    assert own.why == "Ours has no |pipes|."


def test_counters_stand_beside_what_compares_series(tmp_path: Path) -> None:
    alone = PLAN.replace('series_faster = ["quick", "slow"]', 'stays_flat = ["quick", 2]')
    write_results(tmp_path, "mine", "tiny", alone)
    [results] = found_in(tmp_path)
    assert [work_beside(results, expected) for expected in results.plan.expect] == [""]
    limited = PLAN.replace('["quick", "slow"]', '["quick", "slow"]\nat = [1000]')
    write_results(tmp_path, "mine", "tiny", limited)
    [results] = found_in(tmp_path)
    assert work_beside(results, results.plan.expect[0]) == "slow has 8 times the candidates per message"


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
