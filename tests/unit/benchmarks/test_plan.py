"""Plans are read strictly and spelled out point by point."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.experiments import experiment_of, kinds
from benchmarks.metrics import METRICS
from benchmarks.plan import SIZES, Plan, list_plans, parse_plan, read_plan
from nearcast.errors import PlanError
from nearcast.workloads import open_workload

SOURCE = """
title = "A title"
paper = "Somebody 2020"
figure = "Figure 1"
claim = "It is so."
kind = "match"

[workload]
name = "tweets"
vocabulary_size = 1000
n_keywords = [1, 3]

[sizes.tiny]
n_subscriptions = 10
n_messages = 20
repetitions = 2

[vary]
parameter = "n_subscriptions"
tiny = [5, 1000]

[[series]]
index = "keyword_first"

[[series]]
index = "spatial_first"
label = "tree"
parameters = { node_capacity = 20 }

[check]
against = "scan"
messages = 10

[[expect]]
text = "The tree is faster."
series_faster = ["tree", "keyword_first"]
"""


def parsed(old: str = "", new: str = "") -> Plan:
    assert old in SOURCE
    return parse_plan("mine", SOURCE.replace(old, new), "mine.toml")


def test_a_plan_holds_what_the_file_says() -> None:
    plan = parsed()
    assert (plan.title, plan.kind, plan.seed) == ("A title", "match", 1)
    assert [series.label for series in plan.series] == ["keyword_first", "tree"]
    assert plan.workload_parameters == {"vocabulary_size": 1000, "n_keywords": (1, 3)}
    assert plan.sizes["tiny"].chunk == 250


def test_varying_a_count_changes_the_size_of_each_point() -> None:
    points = parsed().points("tiny")
    assert [(point.label, point.size.n_subscriptions, point.size.n_messages) for point in points] == [
        ("5", 5, 20),
        ("1,000", 1000, 20),
    ]


def test_varying_a_workload_parameter_or_a_series_parameter() -> None:
    source = 'parameter = "n_subscriptions"\ntiny = [5, 1000]'
    workload = parsed(source, 'parameter = "workload.range_high"\ntiny = [1.0, 10.0]').points("tiny")
    assert [point.workload_parameters["range_high"] for point in workload] == [1.0, 10.0]
    series = parsed(source, 'parameter = "series.node_capacity"\ntiny = [10, 30]').points("tiny")
    assert [point.series[1].parameters["node_capacity"] for point in series] == [10, 30]


def test_varying_several_workload_parameters_at_once_under_a_label() -> None:
    groups = '[vary]\nparameter = "workload"\nvalues = [{ label = "small", pool = 10 }, { label = "large", pool = 99 }]'
    points = parsed('[vary]\nparameter = "n_subscriptions"\ntiny = [5, 1000]', groups).points("tiny")
    assert [(point.value, point.workload_parameters["pool"]) for point in points] == [("small", 10), ("large", 99)]


def test_the_x_axis_of_a_plan_has_labels_and_values() -> None:
    assert parsed().x_values("tiny") == {"5": 5, "1,000": 1000}
    groups = '[vary]\nparameter = "workload"\ntiny = [{ label = "10", pool = 10 }]'
    # A label in words, even if it looks like a number.
    assert parsed('[vary]\nparameter = "n_subscriptions"\ntiny = [5, 1000]', groups).x_values("tiny") == {"10": "10"}


def test_the_first_metrics_and_those_that_are_judged_are_drawn() -> None:
    judged = 'metric = "matches_per_message"\nseries_faster'
    assert parsed("series_faster", judged).drawn_metrics == ["us_per_message", "candidates_per_message", "matches_per_message"]


def test_a_size_overrides_parameters_of_the_workload() -> None:
    plan = parsed("repetitions = 2", "repetitions = 2\nworkload = { vocabulary_size = 77 }")
    assert plan.points("tiny")[0].workload_parameters["vocabulary_size"] == 77


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "A title"', 'titel = "A title"', "lacks the key 'title'"),
        ('figure = "Figure 1"', 'figure = "Figure 1"\nyear = 2020', "unknown keys: 'year'"),
        ("repetitions = 2", "repetitions = 2\nrepeat = 3", "unknown keys: 'sizes.tiny.repeat'"),
        ("repetitions = 2", "", "lacks the key 'sizes.tiny.repetitions'"),
        ("repetitions = 2", 'repetitions = "2"', "expected a whole number"),
        ("repetitions = 2", "repetitions = true", "expected a whole number"),
        ("repetitions = 2", "repetitions = -2", "expected 0 or more"),
        ("repetitions = 2", "repetitions = 0", "at least 1"),
        ("repetitions = 2", "repetitions = 2\nbuilt_percent = 101", "built_percent = 101; expected 0 to 100"),
        ("repetitions = 2", "repetitions = 2\ntakes_turns = 1", "takes_turns = 1; expected true or false"),
        ("[sizes.tiny]", "[sizes.huge]", "huge"),
        ('kind = "match"', 'kind = "mach"', "expected one of encode, match, moving, peers"),
        ('kind = "match"', 'kind = "encode"', "lacks the key 'series.method'"),
        ('label = "tree"', 'label = "keyword_first"', "no label twice"),
        ('label = "tree"', 'label = "tree"\ncolour = "red"', "unknown keys: 'series.colour'"),
        ('parameter = "n_subscriptions"', 'parameter = "colour"', "'colour'"),
        ("tiny = [5, 1000]", "tiny = []", "empty list 'tiny'"),
        ("tiny = [5, 1000]", 'tiny = [{ label = "a" }]', "plain values"),
        ("messages = 10", "messages = 10\nhow = 1", "unknown keys: 'check.how'"),
        ('["tree", "keyword_first"]', '["tree", "oak"]', "names the series"),
        ('["tree", "keyword_first"]', '["tree"]', "expected \\[a series, a series\\]"),
        ("series_faster", "series_quicker", "unknown keys: 'expect.series_quicker'"),
        ('text = "The tree is faster."', 'text = "x"\nat_most = ["tree", 1]', "each its own"),
        ('text = "The tree is faster."', 'text = "x"\nmetric = "colour"', "metric = 'colour'"),
        ('claim = "It is so."', 'claim = "It is so."\nmetrics = ["colour"]', "unknown metrics"),
        ('claim = "It is so."', 'claim = "It is so."\nmetrics = [1]', "list of texts"),
        ('claim = "It is so."', "claim = ", "not TOML"),
        ("[[expect]]", "[expect]", "double brackets"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(old: str, new: str, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint) as caught:
        parsed(old, new)
    assert "mine.toml" in str(caught.value)


def test_unknown_plans_and_sizes_are_named() -> None:
    with pytest.raises(PlanError, match="there is no plan 'nope'; there are ap_tree/"):
        read_plan("nope")
    with pytest.raises(PlanError, match="no plan file"):
        read_plan("nope.toml")
    with pytest.raises(PlanError, match="no size 'paper'; it has tiny"):
        parsed().points("paper")


def test_a_plan_of_ones_own_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SOURCE)
    assert read_plan(str(tmp_path / "mine.toml")).name == "mine"


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_is_an_experiment_with_known_metrics(kind: str) -> None:
    experiment = experiment_of(kind)
    assert set(experiment.metrics) <= METRICS.keys()
    assert (experiment.subject == "method") == bool(experiment.methods)


def test_every_kind_has_a_plan() -> None:
    assert {read_plan(name).kind for name in list_plans()} == set(kinds())


@pytest.mark.parametrize("name", list_plans())
def test_every_shipped_plan_names_indexes_and_workloads_that_exist(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Workloads open without looking at their data.
    monkeypatch.setenv("NEARCAST_DATA", "nowhere")
    plan = read_plan(name)
    assert tuple(plan.sizes) == SIZES
    assert plan.claim
    assert plan.expect
    for size in SIZES:
        for point in plan.points(size):
            open_workload(point.workload, **point.workload_parameters)
            # Refuses indexes, methods and parameters that do not exist.
            experiment_of(plan.kind)(plan, point)


def test_a_point_may_take_another_workload_and_data_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parsed(
        'parameter = "n_subscriptions"\ntiny = [5, 1000]',
        'parameter = "workload"\ntiny = [{ label = "GN", name = "gazetteer", folder = "$NEARCAST_DATA" }]',
    )
    monkeypatch.setenv("NEARCAST_DATA", "/some/where")
    (point,) = plan.points("tiny")
    assert (point.workload, point.workload_parameters) == ("gazetteer", {"folder": "/some/where"})
    monkeypatch.delenv("NEARCAST_DATA")
    with pytest.raises(PlanError, match="set NEARCAST_DATA to its folder"):
        plan.points("tiny")
