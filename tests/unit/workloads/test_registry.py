"""Workloads by name."""

from __future__ import annotations

from typing import Any

import pytest

from nearcast.errors import WorkloadError
from nearcast.workloads import open_workload, workload_names

SMALL: dict[str, Any] = {"vocabulary_size": 4000, "pool": 20_000}
GENERATED: dict[str, dict[str, Any]] = {
    "tweets": SMALL | {"frequencies": "curve"},
    "cars": SMALL | {"frequencies": "curve"},
    "ais": SMALL | {"frequencies": "curve"},
    "reviews": SMALL | {"frequencies": "curve", "n_places": 300},
    "poi": SMALL,
    "paper_groups": SMALL | {"over": "poi"},
    "boolean_expressions": SMALL | {"frequencies": "curve"},
    "bursts": SMALL | {"frequencies": "curve", "burst": 5, "every": 8},
    "moving": SMALL | {"frequencies": "curve", "n_across": 10, "n_destinations": 5},
}


def test_every_workload_has_a_line_and_its_parameters() -> None:
    names = workload_names()
    assert set(names) == {*GENERATED, "gazetteer", "incidents"}
    for info in names.values():
        assert info.description
        assert "range_low" in info.parameters
    assert names["gazetteer"].parameters["folder"] is ...
    assert names["tweets"].parameters["pool"] == 12_700_000


def test_unknown_names_and_parameters_list_what_exists() -> None:
    with pytest.raises(WorkloadError, match=r"no workload 'tweet'.*tweets, gazetteer"):
        open_workload("tweet")
    with pytest.raises(WorkloadError, match=r"does not take colour; it takes range, stop_words"):
        open_workload("tweets", colour="red")
    with pytest.raises(WorkloadError, match="gazetteer needs folder"):
        open_workload("gazetteer")


@pytest.mark.parametrize("name", GENERATED)
def test_every_generated_workload_gives_messages_history_subscriptions_and_words(name: str) -> None:
    workload = open_workload(name, **GENERATED[name])
    assert workload.messages(20).num_rows == 20
    assert workload.messages(20).equals(open_workload(name, **GENERATED[name]).messages(20))
    assert workload.history(20)["id"].to_pylist() == list(range(20))
    assert workload.subscriptions(30).slice(0, 20).equals(workload.subscriptions(20))
    assert len(workload.words.unique()) == workload.vocabulary_size == 4000
    assert all(isinstance(word, str) for word in workload.with_words(workload.messages(1))["keywords"][0].as_py())
    described = workload.describe()
    assert described["name"] == name
    assert described["space"] == "plane"
