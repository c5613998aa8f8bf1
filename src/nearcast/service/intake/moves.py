"""A move as it is asked for, and what it means: a new region, at a time."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from nearcast.errors import NearcastError
from nearcast.model.regions import Region
from nearcast.service.geometry import Point, given_region, middle_of, moved_to, point_of
from nearcast.service.intake.subscriptions import subscription_out
from nearcast.service.problems import Problem, unusable
from nearcast.service.times import seconds_of
from nearcast.storage.batch import SubscriptionRow
from nearcast.wire.api import MoveIn


class Moved(NamedTuple):
    """Where a subscription is from now on; `place` is the JSON of its region."""

    place: bytes
    region: Region
    middle: Point
    time: float
    accuracy_m: float


def read_move(row: SubscriptionRow, given: MoveIn, now: float) -> Moved | None:
    """The move, or None if the subscription was seen elsewhere later; raises Problem."""
    if row.kind != "moving":
        raise unusable(f"subscription {row.id!r} is {row.kind} and does not move; make it with kind=moving", "subscription")
    if (given.region is None) == (given.location is None):
        raise unusable("a move needs either region or location, and not both")
    time = now
    if given.time is not None:
        if given.time.utcoffset() is None:
            raise unusable(f"time={given.time.isoformat()!r} has no time zone; add Z or an offset", "time")
        # A clock that runs ahead must not make all moves to come late.
        time = min(now, seconds_of(given.time, "time"))
    if row.place_time is not None and time < row.place_time:
        return None
    try:
        shape = given.region
        if shape is None:
            assert given.location is not None
            held = subscription_out(row).region
            if held is None:
                raise unusable(f"subscription {row.id!r} listens everywhere; a move to a location needs a region", "location")
            shape = moved_to(held, point_of(given.location))
        region, middle = given_region(shape), middle_of(shape)
    except Problem:
        raise
    except NearcastError as error:
        raise unusable(str(error)) from None
    assert middle is not None
    return Moved(msgspec.json.encode(shape), region, middle, time, given.accuracy_m or 0.0)
