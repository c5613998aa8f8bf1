"""Entered, dwelled, left: borders do not flap, a vague position proves nothing, a late one changes nothing."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from nearcast.errors import SubscriptionError
from nearcast.service.policies.geofence import Passage, Presence, PresencePolicy, Told

CAFE = 5


def walk(policy: PresencePolicy, *positions: tuple[float, float, float]) -> list[tuple[str, float]]:
    """Passages of one message for (time, accuracy, depth) after (time, accuracy, depth), as (name, time)."""
    presence = Presence()
    presence.move(policy, -1000, 0, {})
    told = []
    for time, accuracy_m, depth in positions:
        told += presence.move(policy, time, accuracy_m, {CAFE: depth})
    return [(one.passage.value, one.time) for one in told]


def test_the_border_counts_as_inside() -> None:
    assert walk(PresencePolicy(), (0, 0, 0.0), (1, 0, -0.001)) == [("entered", 0), ("left", 1)]


def test_a_margin_keeps_a_subscriber_at_the_border_from_flapping() -> None:
    steps = [(time, 0, 5.0 if time % 2 else -5.0) for time in range(1, 20)]
    assert walk(PresencePolicy(leave_margin_m=10), *steps) == [("entered", 1)]
    assert len(walk(PresencePolicy(), *steps)) == 19


def test_a_vague_position_neither_enters_nor_leaves() -> None:
    assert walk(PresencePolicy(), (0, 50, 20.0), (1, 50, -20.0)) == []
    assert walk(PresencePolicy(), (0, 50, 20.0), (1, 10, 20.0)) == [("entered", 1)]
    assert walk(PresencePolicy(), (0, 0, 20.0), (1, 500, -300.0), (2, 5, -300.0)) == [("entered", 0), ("left", 2)]


def test_leaving_is_told_after_a_while_and_coming_back_in_time_is_not() -> None:
    policy = PresencePolicy(leave_after_s=10)
    assert walk(policy, (0, 0, 1.0), (5, 0, -9.0), (14.9, 0, 1.0), (99, 0, 1.0)) == [("entered", 0)]
    assert walk(policy, (0, 0, 1.0), (5, 0, -9.0), (20, 0, 1.0)) == [("entered", 0), ("left", 15), ("entered", 20)]


def test_a_stay_of_some_length_is_told_once_and_at_its_time() -> None:
    policy = PresencePolicy(dwell_s=60)
    presence = Presence()
    presence.move(policy, 0, 0, {CAFE: 3.0})
    assert presence.due(policy) == 60
    assert presence.advance(policy, 59.9) == []
    assert presence.advance(policy, 300) == [Told(Passage.DWELLED, CAFE, 60)]
    assert presence.advance(policy, 900) == []
    assert presence.due(policy) == math.inf


def test_who_left_before_the_time_has_not_dwelled() -> None:
    policy = PresencePolicy(dwell_s=60, leave_after_s=30)
    assert walk(policy, (0, 0, 1.0), (50, 0, -9.0), (100, 0, -9.0)) == [("entered", 0), ("left", 80)]
    assert walk(policy, (0, 0, 1.0), (70, 0, -9.0), (100, 0, -9.0)) == [("entered", 0), ("dwelled", 60), ("left", 100)]


def test_a_late_position_changes_nothing_and_is_counted() -> None:
    presence, policy = Presence(), PresencePolicy()
    presence.move(policy, 10, 0, {CAFE: 1.0})
    assert presence.move(policy, 9, 0, {CAFE: -100.0}) == []
    assert presence.n_late == 1
    assert presence.move(policy, 10, 0, {CAFE: -100.0}) == [Told(Passage.LEFT, CAFE, 10)]


def test_who_is_inside_at_the_first_position_is_told_or_not() -> None:
    assert Presence().move(PresencePolicy(), 0, 0, {CAFE: 1.0}) == [Told(Passage.ENTERED, CAFE, 0)]
    silent = PresencePolicy(tells_first_seen=False)
    presence = Presence()
    assert presence.move(silent, 0, 0, {CAFE: 1.0}) == []
    assert presence.move(silent, 1, 0, {CAFE: -1.0}) == [Told(Passage.LEFT, CAFE, 1)]


def test_a_message_that_appears_or_ends_around_a_subscriber_enters_and_leaves() -> None:
    presence, policy = Presence(), PresencePolicy(dwell_s=10)
    presence.move(policy, 0, 20, {})
    assert presence.appear(policy, 1, CAFE, 25.0) == [Told(Passage.ENTERED, CAFE, 1)]
    assert presence.appear(policy, 1, 6, 15.0) == []
    assert presence.vanish(policy, 20, CAFE) == [Told(Passage.DWELLED, CAFE, 11), Told(Passage.LEFT, CAFE, 20)]
    assert presence.vanish(policy, 20, 6) == []
    assert presence.stays == {}


def test_watched_messages_are_enough_to_judge_what_the_engine_no_longer_reports() -> None:
    """Told by engine changes and `watched` alone, or by every depth at every position: the same passages."""
    chance = random.Random(5)
    for _ in range(150):
        policy = PresencePolicy(chance.choice([0, 8]), chance.choice([0, 3]), chance.choice([None, 2, 9]))
        places = {message: chance.uniform(-40, 40) for message in range(4)}
        told_all, lazily = Presence(), Presence()
        inside: set[int] = set()
        at = 0.0
        for time in range(40):
            at += chance.uniform(-12, 12)
            accuracy = chance.choice([0.0, 4.0, 15.0])
            depths = {message: 10 - abs(place - at) for message, place in places.items()}
            now_inside = {message for message, depth in depths.items() if depth >= 0}
            asked = (inside ^ now_inside) | set(lazily.watched())
            expected = told_all.move(policy, time, accuracy, depths)
            found = lazily.move(policy, time, accuracy, {message: depths[message] for message in sorted(asked)})
            assert sorted(found, key=repr) == sorted(expected, key=repr)
            inside = now_inside


def test_a_restart_at_any_moment_tells_the_same() -> None:
    chance = random.Random(3)
    policy = PresencePolicy(leave_margin_m=5, leave_after_s=1, dwell_s=1)
    steady, restarted, n_told = Presence(), Presence(), 0
    for time in range(200):
        # Infinity is no JSON; MessagePack keeps it.
        restarted = msgspec.msgpack.decode(msgspec.msgpack.encode(restarted), type=Presence)
        depths = {message: chance.uniform(-30, 30) for message in range(3)}
        told = steady.move(policy, time, 5, depths)
        assert restarted.move(policy, time, 5, depths) == told
        n_told += len(told)
    assert n_told > 50


def test_a_policy_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="leave_margin_m is -1"):
        PresencePolicy(leave_margin_m=-1)
