"""The steps without Spark: shards built, opened, changed, matched both ways; the deliveries are those of one matcher."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nearcast as nc
from nearcast.pipeline.host_cache import fetch_to_host, open_once, run_once_per_host
from nearcast.pipeline.index.deltas import publish_changes
from nearcast.pipeline.index.open_version import IndexLocation
from nearcast.pipeline.index.shard_folder import SHARD_LIST
from nearcast.pipeline.index.version import IndexVersion
from nearcast.pipeline.match.step import SHARD, MatchStep
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings
from nearcast.pipeline.store import Store
from support.pipelines import make_messages, make_subscriptions, plan_for, publish_here

World = tuple[pa.Table, pa.Table]

CELLS = [(mechanism, n) for mechanism in MECHANISMS for n in (1, 3, 8)]


def pairs(table: pa.Table) -> list[tuple[object, object]]:
    return sorted(zip(table["message_id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))


def location_of(settings: PipelineSettings, version: IndexVersion) -> IndexLocation:
    return IndexLocation(settings.store, settings.shared_dir, version)


def match_both_ways(location: IndexLocation, messages: pa.Table) -> pa.Table:
    """The deliveries of both modes, which must be the same."""
    everywhere = MatchStep(location).match_everywhere(messages)
    routed = MatchStep(location).route(messages)
    lists = routed[SHARD_LIST].combine_chunks()
    exploded = routed.take(pc.list_parent_indices(lists)).append_column(SHARD, lists.flatten())
    assert pairs(MatchStep(location).match_routed(exploded)) == pairs(everywhere)
    return everywhere


@pytest.mark.parametrize(("mechanism", "n_shards"), CELLS)
def test_shards_deliver_what_one_matcher_delivers_while_subscriptions_change(
    world: World, settings: PipelineSettings, mechanism: str, n_shards: int
) -> None:
    subscriptions, messages = world
    settings_of_case = replace(settings, mechanism=mechanism, shards=n_shards)
    version = publish_here(
        settings_of_case, plan_for(subscriptions.slice(0, 60), messages.slice(0, 100), settings_of_case), subscriptions
    )
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    first = location_of(settings_of_case, version)
    expected = pairs(matcher.match_table(messages))
    assert pairs(match_both_ways(first, messages)) == expected
    # Some change, some are new (with words no plan has seen), some go.
    changed = make_subscriptions(40, 9, first_id=130)
    changes = pa.concat_tables(
        [
            changed.append_column("change", pa.array([1] * changed.num_rows, pa.int8())),
            subscriptions.slice(0, 20).append_column("change", pa.array([-1] * 20, pa.int8())),
        ]
    )
    version = publish_changes(changes, settings_of_case)
    matcher.unsubscribe(subscriptions["id"].slice(0, 20).to_pylist())
    matcher.subscribe_table(changed)
    more = make_messages(400, 10, has_boxes=True)
    assert pairs(match_both_ways(location_of(settings_of_case, version), more)) == pairs(matcher.match_table(more))
    # A replay of an older batch sees the older version.
    assert pairs(match_both_ways(first, messages)) == expected


def test_repeated_ids_within_a_batch_are_messages_of_their_own(world: World, settings: PipelineSettings) -> None:
    subscriptions, messages = world
    settings_of_case = replace(settings, mechanism="location", shards=3)
    version = publish_here(settings_of_case, plan_for(subscriptions, messages, settings_of_case), subscriptions)
    same = make_messages(200, 3, has_boxes=True).set_column(0, "id", pa.array(np.zeros(200, np.int64)))
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    assert pairs(match_both_ways(location_of(settings_of_case, version), same)) == pairs(matcher.match_table(same))


@pytest.mark.parametrize("n_shards", [1, 3])
def test_bad_rows_are_noted_and_the_rest_is_delivered(world: World, settings: PipelineSettings, n_shards: int) -> None:
    subscriptions, messages = world
    settings_of_case = replace(settings, mechanism="prefix", shards=n_shards)
    version = publish_here(settings_of_case, plan_for(subscriptions, messages, settings_of_case), subscriptions)
    x = messages["x"].to_numpy().copy()
    x[[3, 5]] = np.nan
    step = MatchStep(location_of(settings_of_case, version))
    deliveries = step.match_everywhere(messages.set_column(2, "x", pa.array(x)))
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    is_good = pa.array(~np.isnan(x))
    assert pairs(deliveries) == pairs(matcher.match_table(messages.filter(is_good)))
    assert step.metrics.read == messages.num_rows
    assert step.metrics.quarantined()["id"].to_pylist() == ["3", "5"]
    assert sum(work.deliveries for work in step.metrics.work.values()) == deliveries.num_rows


def test_a_deleted_copy_of_a_shard_is_fetched_again(world: World, settings: PipelineSettings) -> None:
    subscriptions, messages = world
    settings_of_case = replace(settings, mechanism="hashing", shards=2)
    version = publish_here(settings_of_case, plan_for(subscriptions, messages, settings_of_case), subscriptions)
    expected = pairs(match_both_ways(location_of(settings_of_case, version), messages))
    shutil.rmtree(settings_of_case.shared_dir)
    # What is open stays open; a process that starts now finds nothing and fetches.
    elsewhere = replace(settings_of_case, shared_dir=settings_of_case.shared_dir + "-of-another-process")
    for host in (settings_of_case, elsewhere):
        assert pairs(match_both_ways(location_of(host, version), messages)) == expected
    assert Path(elsewhere.shared_dir).exists()


def test_a_store_made_anew_at_the_same_address_is_another_store(settings: PipelineSettings) -> None:
    settings_of_case = replace(settings, mechanism="hashing", shards=1)
    for seed in (1, 2):
        subscriptions, messages = make_subscriptions(50, seed), make_messages(100, seed)
        version = publish_here(settings_of_case, plan_for(subscriptions, messages, settings_of_case), subscriptions)
        matcher = nc.Matcher(space="plane")
        matcher.subscribe_table(subscriptions)
        deliveries = match_both_ways(location_of(settings_of_case, version), messages)
        assert pairs(deliveries) == pairs(matcher.match_table(messages))
        shutil.rmtree(settings_of_case.work)


def test_an_index_without_subscriptions_delivers_nothing(world: World, settings: PipelineSettings) -> None:
    subscriptions, messages = world
    settings_of_case = replace(settings, mechanism="keyword", shards=3)
    version = publish_here(settings_of_case, plan_for(subscriptions, messages, settings_of_case), subscriptions.slice(0, 0))
    deliveries = match_both_ways(location_of(settings_of_case, version), messages)
    assert deliveries.num_rows == 0
    assert deliveries.schema.types == [pa.int64(), pa.string()]


def test_a_copy_that_another_process_made_meanwhile_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")
    store.write_bytes("shard/data", b"x")
    fetch = Store.fetch_folder

    def fetch_twice(self: Store, name: str, target: Path) -> None:
        fetch(self, name, target)
        monkeypatch.setattr(Store, "fetch_folder", fetch)
        fetch_to_host(store, "shard", str(tmp_path / "host"))

    monkeypatch.setattr(Store, "fetch_folder", fetch_twice)
    folder = fetch_to_host(store, "shard", str(tmp_path / "host"))
    assert (folder / "data").read_bytes() == b"x"
    assert [name.name for name in folder.parent.iterdir()] == ["shard"]


def test_copies_of_what_the_store_has_collected_go(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for number in (1, 2):
        store.write_bytes(f"bases/00000{number}/0-a/data", b"x")
        folder = fetch_to_host(store, f"bases/00000{number}/0-a", str(tmp_path / "host"))
        store.delete("bases/000001")
    assert [copy.name for copy in folder.parent.parent.iterdir()] == ["000002"]


def test_work_for_a_host_is_done_once(tmp_path: Path) -> None:
    done = []
    for _ in range(3):
        run_once_per_host("kernels", lambda: done.append(1), str(tmp_path))
    assert done == [1]


def test_a_process_forgets_what_it_has_not_used_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    from nearcast.pipeline import host_cache

    monkeypatch.setattr(host_cache, "_MAX_OPENED", 2)
    monkeypatch.setattr(host_cache, "_opened", type(host_cache._opened)())
    opened_names: list[str] = []

    def make(name: str) -> str:
        opened_names.append(name)
        return name

    for name in ("a", "b", "a", "c", "a", "b"):
        assert open_once((name,), lambda name=name: make(name)) == name  # type: ignore[misc]
    assert opened_names == ["a", "b", "c", "b"]
