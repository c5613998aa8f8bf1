"""Six mechanisms: a message meets every subscription it satisfies in some shard, and one of those shards reports it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.model.analysis import Analysis
from nearcast.pipeline.plan.clause_view import id_hashes, view_clauses, view_messages
from nearcast.pipeline.plan.routing import (
    ShardAssignment,
    file_subscriptions,
    reports_here,
    route_messages,
    shard_lists,
    shard_matrix,
)
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import bucket_child, shards_of
from nearcast.pipeline.plan.step import estimate_cost, routing_table
from nearcast.pipeline.plan.tree_building import PlanSample
from nearcast.pipeline.plan.tree_changes import merge_shards, split_shard
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings
from support.pipelines import make_messages, make_subscriptions, plan_for

World = tuple[pa.Table, pa.Table]

CELLS = [(mechanism, n) for mechanism in MECHANISMS for n in (1, 3, 8)]


def check_routes(plan: ShardPlan, subscriptions: pa.Table, messages: pa.Table) -> ShardAssignment:
    """Every delivery of one process is reported by exactly one shard."""
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    rows = messages.set_column(0, "id", pa.array(np.arange(messages.num_rows)))
    expected = matcher.match_table(rows)
    assert expected.num_rows > 300
    view = view_clauses(subscriptions, plan.border)
    filed = file_subscriptions(plan.root, plan.n_shards, view, plan.word_order())
    assert filed.target_shards.any(axis=1).all()
    target_shards = route_messages(plan.root, plan.n_shards, view_messages(messages, plan.keywords), routing_table(plan, filed))
    position = {identifier: row for row, identifier in enumerate(subscriptions["id"].to_pylist())}
    order = np.argsort(view.row)
    by_row = filed.target_shards[order]
    message = expected["message_id"].to_numpy()
    subscription = np.array([position[identifier] for identifier in expected["subscription_id"].to_pylist()])
    reports = np.zeros(len(message), int)
    for shard in range(plan.n_shards):
        has_both = by_row[subscription, shard] & target_shards[message, shard]
        reports += has_both & reports_here(shard, by_row[subscription], target_shards[message])
    assert (reports == 1).all()
    return filed


@pytest.mark.parametrize(("mechanism", "n_shards"), CELLS)
@pytest.mark.parametrize("has_boxes", [False, True])
def test_every_delivery_has_one_reporter(
    world: World, settings: PipelineSettings, mechanism: str, n_shards: int, has_boxes: bool
) -> None:
    subscriptions, history = world
    # The plan knows only some of the subscriptions and of the words.
    plan = plan_for(subscriptions.slice(0, 60), history.slice(0, 100), replace(settings, mechanism=mechanism, shards=n_shards))
    assert shards_of(plan.root) == list(range(n_shards))
    check_routes(plan, subscriptions, make_messages(400, 2, has_boxes))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_tree_stays_right_when_shards_are_split_and_merged(world: World, settings: PipelineSettings, mechanism: str) -> None:
    subscriptions, messages = world
    plan = plan_for(subscriptions.slice(0, 60), messages.slice(0, 100), replace(settings, mechanism=mechanism, shards=4))
    view = view_clauses(subscriptions, plan.border)
    sample = PlanSample(view, view_messages(messages, plan.keywords), plan.word_order(), 0.0)
    for shard in (1, 4, 0):
        plan.root, share = split_shard(plan.root, shard, plan.n_shards, sample)
        plan.n_shards += 1
        assert 0.0 <= share <= 1.0
        assert shards_of(plan.root) == list(range(plan.n_shards))
        check_routes(plan, subscriptions, messages)
    load = [5.0, 1.0, 7.0, 1.5, 2.0, 3.0, 9.0]
    while plan.n_shards > 4:
        plan.root, target, source = merge_shards(plan.root, load)
        assert target != source
        load[target] += load[source]
        load[source] = load[-1]
        load.pop()
        plan.n_shards -= 1
        assert shards_of(plan.root) == list(range(plan.n_shards))
        check_routes(plan, subscriptions, messages)


def test_the_parts_of_a_tree_share_the_work_evenly(settings: PipelineSettings) -> None:
    subscriptions, messages = make_subscriptions(600, 3), make_messages(2000, 4)
    plan = plan_for(subscriptions, messages, replace(settings, mechanism="location", shards=7))
    assert plan.estimate is not None
    assert plan.estimate.balance > 0.7
    assert plan.estimate.communication == 1.0
    hashed = plan_for(subscriptions, messages, replace(settings, mechanism="hashing", shards=7))
    assert hashed.estimate is not None
    assert (hashed.estimate.replication, hashed.estimate.communication) == (1.0, 7.0)


def test_replication_and_communication_are_counted_on_the_sample(world: World, settings: PipelineSettings) -> None:
    subscriptions, messages = world
    plan = plan_for(subscriptions, messages, replace(settings, mechanism="prefix", shards=3))
    filed = check_routes(plan, subscriptions, messages)
    view = view_clauses(subscriptions, plan.border)
    sample = PlanSample(view, view_messages(messages, plan.keywords), plan.word_order(), 0.0)
    estimate = estimate_cost(plan, sample, subscriptions, messages, 1.0)
    assert estimate.replication == filed.target_shards.sum() / subscriptions.num_rows
    assert estimate.n_shards == len(estimate.load) == 3


def test_auto_takes_the_cheapest_of_all(world: World, settings: PipelineSettings) -> None:
    plan = plan_for(*world, replace(settings, shards=3))
    assert {one.mechanism for one in plan.others} == set(MECHANISMS)
    assert plan.estimate is not None
    assert plan.estimate.cost == min(one.cost for one in plan.others)


def test_a_plan_without_subscriptions_or_history_still_routes(world: World, settings: PipelineSettings) -> None:
    subscriptions, messages = world
    for mechanism in MECHANISMS:
        plan = plan_for(subscriptions.slice(0, 0), messages.slice(0, 0), replace(settings, mechanism=mechanism, shards=3))
        check_routes(plan, subscriptions, messages)


def test_numbers_as_keywords_are_routed_too(settings: PipelineSettings) -> None:
    from nearcast.workloads import open_workload

    workload = open_workload("tweets", vocabulary_size=300, frequencies="curve", pool=20_000, range_high=60.0)
    subscriptions, messages = workload.subscriptions(300), workload.messages(500).drop_columns(["time"])
    for mechanism in MECHANISMS:
        plan = plan_for(subscriptions.slice(0, 200), messages, replace(settings, mechanism=mechanism, shards=3))
        check_routes(plan, subscriptions, messages)


def test_ids_hash_the_same_way_everywhere_and_evenly() -> None:
    numbers = id_hashes(pa.array(np.arange(8000)))
    words = id_hashes(pa.array([f"subscription-{number}" for number in range(8000)]))
    for hashes in (numbers, words):
        assert (hashes >= 0).all()
        assert np.bincount(hashes % 8).min() > 850
    assert id_hashes(pa.array([1, -1])).tolist() == [3119036373970289394, 6514504133438201533]


def test_lists_of_shards_and_matrices_are_the_same() -> None:
    target_shards = np.random.default_rng(0).random((50, 70)) < 0.1
    assert (shard_matrix(shard_lists(target_shards), 70) == target_shards).all()


def test_a_subscription_without_words_goes_everywhere_words_decide(settings: PipelineSettings) -> None:
    history = make_messages(100, 5)
    subscriptions = make_subscriptions(40, 6)
    plan = plan_for(subscriptions, history, replace(settings, mechanism="prefix", shards=4))
    lists = pa.array([[]], pa.list_(pa.string()))
    alone = pa.table({"id": ["all"], "keywords": lists, "x0": [0.0], "y0": [0.0], "x1": [1.0], "y1": [1.0]})
    filed = file_subscriptions(plan.root, 4, view_clauses(alone, plan.border), plan.word_order())
    assert filed.has_wordless
    assert filed.target_shards.all()


def test_plans_for_stemmed_words_route_by_stems(settings: PipelineSettings) -> None:
    stemmed = replace(settings, stem="english", mechanism="keyword", shards=3)
    assert stemmed.analysis == Analysis(stem="english")
    subscriptions = pa.table(
        {"id": [1, 2], "keywords": [["running"], ["shoes"]], **{side: [0.0, 0.0] for side in ("x0", "y0", "x1", "y1")}}
    )
    messages = pa.table({"id": [1], "keywords": [["runs", "shoe"]], "x": [0.0], "y": [0.0]})
    plan = plan_for(subscriptions, messages, stemmed)
    view = view_clauses(subscriptions, plan.border)
    filed = file_subscriptions(plan.root, 3, view, plan.word_order())
    target_shards = route_messages(plan.root, 3, view_messages(messages, plan.keywords), routing_table(plan, filed))
    assert (filed.target_shards & target_shards[0]).any(axis=1).all()


def test_a_hash_shares_out_evenly_however_many_children_there_are() -> None:
    for n_children in (1, 3, 64, 1000, 10_000):
        counts = np.bincount(bucket_child(n_children, 1024), minlength=n_children)
        assert len(counts) == n_children
        assert counts.min() >= 0.9 * counts.max()
