"""The experiment `ranked_shards`: copies and tuples are counted right, and shards with other lists have no times."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import run_plan
from benchmarks.experiments.ranked_shards import RankedShards
from benchmarks.experiments.shared.answers import combined_checksum, ranked_checksum
from benchmarks.experiments.shared.ranked_input import RankedInput
from benchmarks.experiments.shared.shards_in_process import ShardWorld, make_world
from benchmarks.metrics import METRICS
from benchmarks.plan import Size
from benchmarks.record import Record, read_records
from benchmarks.simulation.routing import Sample, loads_of, visits_of
from nearcast.errors import NearcastError, PlanError
from nearcast.model.window import CountWindow
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import WordNode
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.scout import Scout
from nearcast.pipeline.ranked.split_shard import SplitShard
from nearcast.pipeline.settings import MECHANISMS
from nearcast.workloads import open_workload

PLAN = """
title = "Shards"
paper = "Nobody"
figure = "Figure 1"
claim = "All the same."
kind = "ranked_shards"
[workload]
name = "tweets"
vocabulary_size = 300
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_subscriptions = 60
n_messages = 20
life = 3
warm_steps = 1
repetitions = 2
shards = 3
[vary]
parameter = "series.k"
tiny = [3]
[[series]]
method = "one_process"
label = "one process"
[[series]]
method = "hashing"
[[series]]
method = "prefix"
[[series]]
method = "spatial_first"
parameters = { groups = 3 }
[check]
against = "one_process"
messages = 10
"""


def run(folder: Path, plan: str = PLAN) -> list[Record]:
    (folder / "shards.toml").write_text(plan)
    return read_records(run_plan(str(folder / "shards.toml"), "tiny", folder / "results"))


def test_a_run_keeps_what_each_shard_did(tmp_path: Path) -> None:
    single, hashing, prefix, spatial = run(tmp_path)
    for record in (hashing, prefix, spatial):
        assert record.chunk_seconds.shape == (1, 2)
        assert record.chunk_messages.tolist() == [20, 20]
        assert record.facts["check"]["pairs"] > 0
        assert all(METRICS[name].of(record) is not None for name in RankedShards.metrics)
        assert len(record.facts["shards"]["take_seconds"]) == 3
        assert sum(record.facts["shards"]["owned"]) == 60
        slowest, work = METRICS["us_per_message"].of(record), METRICS["work_us_per_message"].of(record)
        assert slowest is not None
        assert work is not None
        assert work / 3 <= slowest <= work
    assert METRICS["tuples_per_message"].of(hashing) == 3
    assert METRICS["copies_per_subscription"].of(hashing) == 1
    assert METRICS["feedback_per_message"].of(prefix) is not None
    # Three tiles, and all words of a tile in one shard.
    assert METRICS["tuples_per_message"].of(spatial) == 3
    assert METRICS["copies_per_subscription"].of(spatial) == 1
    assert METRICS["tuples_per_message"].of(single) is None


def by_hand(plan: ShardPlan) -> ShardPlan:
    """The partition of the paper's Figure 8: w1-w2, w3-w5, w6-w8, w9-w10."""
    assert isinstance(plan.root, WordNode)
    for word in range(plan.keywords.n):
        number = int(plan.keywords.space.name(word)[1:])
        plan.root.child_of_word[word] = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3][number - 1]
    return plan


def rows(id: int, words: list[str]) -> pa.Table:
    return pa.table({"id": [id], "keywords": [words], "x": [0.0], "y": [0.0]})


def test_copies_tuples_and_reports_of_the_papers_example() -> None:
    everything = rows(0, [f"w{number}" for number in range(1, 11)])
    plans = [by_hand(plan_ranked("keyword", 4, "plane", everything, everything)) for _ in range(4)]
    settings = {"window": CountWindow(5), "space": "plane", "max_distance": 1.0, "idf": None, "n_documents": None}
    world = ShardWorld([SplitShard.new(number, plan, settings) for number, plan in enumerate(plans)])
    weights = {"k": pa.array([2], pa.int32()), "spatial_weight": [0.6]}
    subscription = rows(7, ["w1", "w2", "w5", "w6"])
    for name, values in weights.items():
        subscription = subscription.append_column(name, pa.array(values))
    nothing, gone = everything.slice(0, 0), pa.array([], pa.int64())
    world.take(RankedBatch.of(subscription, gone, nothing))
    # Filed in three of four shards.
    assert world.copies.tolist() == [1, 1, 1, 0]
    assert world.owned.sum() == 1
    work = world.take(RankedBatch.of(subscription.slice(0, 0), gone, rows(1, ["w6", "w7", "w8", "w9"])))
    # The message goes to two shards; the one of w6 has the subscription, and reports it to the holder of the list.
    assert work.reached.tolist() == [0, 0, 1, 1]
    assert (work.reports > 0).tolist() == (world.owned > 0).tolist()
    assert (int(work.reports.sum()), work.changes) == (1, 1)
    # A message without common words is looked at, and reported to nobody.
    work = world.take(RankedBatch.of(subscription.slice(0, 0), gone, rows(2, ["w7", "w8"])))
    assert work.reached.tolist() == [0, 0, 1, 0]
    assert work.reports.sum() == 0
    world.take(RankedBatch.of(subscription.slice(0, 0), pa.array([7]), nothing))
    assert world.copies.sum() == 0


@pytest.fixture(scope="module")
def input() -> RankedInput:
    workload = open_workload("tweets", vocabulary_size=300, pool=20_000, frequencies="curve")
    return RankedInput(workload, Size(80, 30, 1, 30, life=3, warm_steps=1), 1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_tables_predict_what_shards_do(input: RankedInput, mechanism: str) -> None:
    """Messages that come to each shard, and copies in it once thresholds are known."""
    world = make_world(mechanism, 4, input)
    for batch in input.opening():
        world.take(batch)
    plan = plan_ranked(mechanism, 4, input.space, input.subscriptions, input.first_window)
    work = world.take(input.batch(0))
    assert work.reached.tolist() == visits_of(plan, input.batch(0).messages).tolist()
    loads = loads_of(Sample.of(input), mechanism, 4, 80)
    if mechanism not in FUSED:
        assert loads.copies.tolist() == world.copies.tolist()
    if mechanism == "location":
        assert loads.owned.tolist() == world.owned.tolist()
    assert loads.owned.sum() == 80


def test_a_word_that_a_message_repeats_counts_once() -> None:
    workload = open_workload("reviews", repeats=True, vocabulary_size=2_000, pool=20_000, frequencies="curve", n_places=30)
    input = RankedInput(workload, Size(80, 30, 1, 30, life=3, warm_steps=1), 1)
    words = input.first_window["keywords"].to_pylist()
    assert any(len(set(one)) < len(one) for one in words)
    assert input.idf == Counter(word for one in words for word in set(one))


def test_a_checksum_distinguishes_sets_of_changes_and_adds_up() -> None:
    columns = {"tick": [1, 2], "subscription_id": [5, 6], "message_id": [7, 7], "change": [1, -1], "score": [0.5, 0.25]}
    changes = pa.table(columns)
    whole = ranked_checksum(changes)
    assert whole == ranked_checksum(changes.take([1, 0]))
    assert whole == combined_checksum([ranked_checksum(changes.slice(0, 1)), ranked_checksum(changes.slice(1))])
    for name in columns:
        other = changes.set_column(changes.column_names.index(name), name, pa.array(np.array(columns[name]) + 1))
        assert ranked_checksum(other) != whole


def test_shards_with_other_lists_have_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Scout.look

    def overlook(self: Scout, messages: pa.Table) -> dict[int, pa.Table]:
        return {target: table.slice(1) for target, table in look(self, messages).items()}

    monkeypatch.setattr(Scout, "look", overlook)
    with pytest.raises(NearcastError, match=r"'prefix' reports .* its times are worth nothing"):
        run(tmp_path)
    assert not (tmp_path / "results" / "shards" / "tiny").exists()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('method = "prefix"', 'method = "magic"', "method 'magic'"),
        ("{ groups = 3 }", "{ colour = 3 }", r"parameters \['colour'.*expected some of groups, k"),
        ("shards = 3", "shards = 0", "shards of at least 1"),
    ],
)
def test_a_plan_that_cannot_run_says_why(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        run(tmp_path, PLAN.replace(old, new))


def test_a_parameter_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="groups = 'three'; expected a value of type int"):
        run(tmp_path, PLAN.replace("{ groups = 3 }", '{ groups = "three" }'))


def test_lists_of_different_lengths_are_not_compared(tmp_path: Path) -> None:
    text = PLAN.replace("series.k", "series.groups").replace("{ groups = 3 }", "{ k = 7 }")
    with pytest.raises(PlanError, match=r"different k: \[7, 20\]"):
        run(tmp_path, text)
