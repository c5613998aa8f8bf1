"""What a request brings is bounded before the work: vertices of regions, times, ids of messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from nearcast.errors import RegionError
from nearcast.service.caller import Caller
from nearcast.service.geometry import given_region, region_of
from nearcast.service.intake.messages import check_message, clock_of, sequence_of_given
from nearcast.service.intake.moves import read_move
from nearcast.service.intake.subscriptions import check_subscription, row_of
from nearcast.service.limits import read_limits
from nearcast.service.problems import Problem
from nearcast.wire.api import (
    BoxShape,
    MessageIn,
    MoveIn,
    MultiPolygonShape,
    PointShape,
    PolygonShape,
    RegionShape,
    SubscriptionIn,
)

CALLER = Caller("k", "t", frozenset({"subscriber"}), "ann")
CLOCK = clock_of(1_800_000_000.0, read_limits())
RING = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [1.0, 3.0], [0.0, 2.0], [0.0, 0.0]]
MOVING = row_of(
    check_subscription(CALLER, SubscriptionIn("moving", region=BoxShape([0.0, 0.0, 1.0, 1.0])), "s", 1.0), 1, 1, 1.0, None
)


@pytest.mark.parametrize("shape", [PolygonShape([RING]), MultiPolygonShape([[RING]])])
def test_a_region_of_too_many_vertices_is_unusable(monkeypatch: pytest.MonkeyPatch, shape: RegionShape) -> None:
    monkeypatch.setenv("NEARCAST_SERVICE_REGION_VERTICES", "6")
    assert given_region(shape) == region_of(shape)
    read_move(MOVING, MoveIn("s", region=shape), 2.0)
    monkeypatch.setenv("NEARCAST_SERVICE_REGION_VERTICES", "5")
    with pytest.raises(RegionError, match="6 vertices"):
        given_region(shape)
    # What is kept is read whatever the limit is now.
    region_of(shape)
    for refused in (
        lambda: check_subscription(CALLER, SubscriptionIn(region=shape), "s", 1.0),
        lambda: check_message("t", MessageIn(PointShape([1.0, 2.0]), audience=shape), CLOCK),
        lambda: read_move(MOVING, MoveIn("s", region=shape), 2.0),
    ):
        with pytest.raises(Problem, match="6 vertices") as told:
            refused()
        assert told.value.status == 422


EDGES = [
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-14))),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]


@pytest.mark.parametrize("edge", EDGES)
def test_a_time_beyond_all_calendars_is_unusable(edge: datetime) -> None:
    for refused in (
        lambda: check_message("t", MessageIn(PointShape([1.0, 2.0]), time=edge), CLOCK),
        lambda: check_message("t", MessageIn(PointShape([1.0, 2.0]), expires=edge), CLOCK),
        lambda: check_subscription(CALLER, SubscriptionIn(expires=edge), "s", 1.0),
        lambda: read_move(MOVING, MoveIn("s", region=BoxShape([0.0, 0.0, 1.0, 1.0]), time=edge), 2.0),
    ):
        with pytest.raises(Problem) as told:
            refused()
        assert told.value.status == 422


@pytest.mark.parametrize("id", ["m-ffffffffffffffffffffffff", "m-8000000000000000", "m--1", "m-0x1", "m-01", "m-1_0", "m-A"])
def test_an_id_that_the_server_never_gave_leads_nowhere(id: str) -> None:
    assert sequence_of_given(id) is None
