"""Which way messages go, by what was measured."""

from __future__ import annotations

import pytest

from nearcast.pipeline.index.version import IndexVersion, ShardBase
from nearcast.pipeline.match.routing_mode import Mode, RoutingModeChooser
from nearcast.pipeline.progress import read_news


def version(n_shards: int) -> IndexVersion:
    return IndexVersion(1, 1, 1, 1, n_shards, "long", (ShardBase("f", 1, 1000),) * n_shards)


@pytest.mark.parametrize(("route", "everywhere", "better"), [(1.0, 2.0, "route"), (2.0, 1.0, "everywhere")])
def test_both_ways_are_tried_then_the_faster_is_taken(route: float, everywhere: float, better: Mode) -> None:
    chooser = RoutingModeChooser("auto", 1 << 30)
    modes = []
    for _ in range(400):
        mode = chooser.choose(version(3))
        modes.append(mode)
        chooser.record(mode, 1000, route if mode == "route" else everywhere)
    assert modes[:6] == ["everywhere"] * 3 + ["route"] * 3
    assert modes.count(better) >= 390
    # The other one gets another chance now and then.
    assert 4 <= 400 - modes.count(better) <= 6


def test_settings_and_sizes_decide_before_any_measurement() -> None:
    assert RoutingModeChooser("auto", 1 << 30).choose(version(1)) == "everywhere"
    assert RoutingModeChooser("route", 1 << 30).choose(version(3)) == "route"
    assert RoutingModeChooser("everywhere", 1).choose(version(3)) == "everywhere"
    assert RoutingModeChooser("auto", 100).choose(version(3)) == "route"


def test_an_empty_batch_teaches_nothing() -> None:
    chooser = RoutingModeChooser("auto", 1 << 30)
    for _ in range(5):
        chooser.record(chooser.choose(version(2)), 0, 1.0)
    assert chooser.choose(version(2)) == "everywhere"


def test_the_news_of_a_batch_are_read_from_sparks_report() -> None:
    news = read_news(
        '{"batchId": 3, "numInputRows": 10, "processedRowsPerSecond": 5.0, "durationMs": {"triggerExecution": 2000}}'
    )
    assert (news.batch, news.rows, news.rows_per_second, news.batch_seconds) == (3, 10, 5.0, 2.0)
