"""What is pushed of an inbox: the policies of its subscriptions, the same again for whoever comes back."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

from nearcast.service.broker import EventRow
from nearcast.service.policies.delivery_limits import DeliveryPolicy
from nearcast.service.policies.options import policy_of_options
from nearcast.service.push.throttling import Pusher, content_key
from nearcast.wire.api import DeliveryOptions, RateLimit


def row(sequence: int, number: int, time: float, text: str = "", type: str = "io.nearcast.match") -> EventRow:
    event = {
        "id": f"{sequence}.{number}",
        "type": type,
        "data": {"message": {"text": text or str(sequence), "keywords": ["a"]}},
    }
    return EventRow(sequence, number, f"s{number}", type, f"m{sequence}", time, json.dumps(event).encode())


def shown(events: list[bytes]) -> list[Any]:
    """Ids of events, with what is marked on them."""
    decoded = [json.loads(event) for event in events]
    marks = ("suppressed", "digestsize", "lastnotification")
    return [
        (event["id"], {mark: event[mark] for mark in marks if mark in event}) if any(m in event for m in marks) else event["id"]
        for event in decoded
    ]


def test_without_policies_rows_pass_as_they_are() -> None:
    rows = [row(1, 1, 0), row(2, 2, 0)]
    pusher = Pusher(lambda number: None)
    assert pusher.take(rows) == [one.json for one in rows]
    assert (pusher.first_held, pusher.due) == (None, math.inf)


def test_a_policy_touches_only_its_own_subscription() -> None:
    policies = {2: DeliveryPolicy(max_per_period=1, period_s=10)}
    pusher = Pusher(policies.get)
    events = pusher.take([row(1, 1, 0), row(1, 2, 0), row(2, 1, 1), row(2, 2, 1), row(3, 2, 10)])
    assert shown(events) == ["1.1", "1.2", "2.1", ("3.2", {"suppressed": 1})]


def test_a_digest_is_pushed_when_it_is_due_and_before_what_comes_later() -> None:
    pusher = Pusher({1: DeliveryPolicy(digest_s=10)}.get)
    assert pusher.take([row(1, 1, 0), row(2, 1, 5)]) == []
    assert (pusher.first_held, pusher.due) == (1, 10)
    assert pusher.advance(9.9) == []
    events = pusher.take([row(3, 1, 12)])
    assert shown(events) == ["1.1", ("2.1", {"digestsize": 2})]
    assert shown(pusher.advance(30)) == [("3.1", {"digestsize": 1})]
    assert pusher.first_held is None


def test_a_digest_in_the_making_is_held_again_as_far_as_its_events_are_there() -> None:
    policies = {number: DeliveryPolicy(digest_s=10) for number in (1, 2, 3)}
    before = Pusher(policies.get)
    rows = [row(1, 1, 0), row(2, 2, 0), row(3, 1, 1), row(4, 3, 2)]
    assert before.take(rows) == []
    after = Pusher(policies.get, copy.deepcopy(before.notifiers))
    assert after.first_held == 1
    # Retention has taken the first two.
    after.hold_again(one for one in rows[2:] if after.is_held(one))
    assert after.first_held == 3
    assert shown(after.take([row(5, 1, 3), row(6, 2, 3)])) == []
    assert shown(after.advance(13)) == [
        "3.1",
        ("5.1", {"digestsize": 3}),
        ("4.3", {"digestsize": 1}),
        ("6.2", {"digestsize": 1}),
    ]


def test_a_digest_is_pushed_when_its_policy_is_taken_away() -> None:
    policies = {1: DeliveryPolicy(digest_s=1000)}
    pusher = Pusher(policies.get)
    pusher.take([row(1, 1, 0)])
    policies.clear()
    assert shown(pusher.take([row(2, 1, 5)])) == [("1.1", {"digestsize": 1}), "2.1"]


def test_events_that_say_the_same_are_repeats_but_entering_is_not_leaving() -> None:
    pusher = Pusher({1: DeliveryPolicy(repeat_s=60)}.get)
    entered = row(1, 1, 0, "fire", "io.nearcast.entered")
    left = row(2, 1, 1, "fire", "io.nearcast.left")
    again = row(3, 1, 2, "fire", "io.nearcast.entered")
    assert shown(pusher.take([entered, left, again])) == ["1.1", "2.1"]
    assert content_key(entered) == content_key(again) != content_key(left)


def test_the_end_of_a_subscription_has_no_message_and_can_still_be_compared() -> None:
    assert content_key(EventRow(1, 1, "s", "io.nearcast.subscription.ended", "", 0, b'{"data":{"subscription":"s"}}'))


def test_the_last_push_says_so() -> None:
    pusher = Pusher({1: DeliveryPolicy(max_deliveries=2)}.get)
    assert shown(pusher.take([row(n, 1, n) for n in range(1, 5)])) == ["1.1", ("2.1", {"lastnotification": True})]


def test_who_comes_back_at_a_cursor_gets_what_it_would_have_got() -> None:
    chance = random.Random(2)
    policies = {
        1: DeliveryPolicy(digest_s=6),
        2: DeliveryPolicy(max_per_period=2, period_s=8),
        3: DeliveryPolicy(repeat_s=5, max_deliveries=12),
    }
    rows, now = [], 0.0
    for sequence in range(1, 200):
        now += chance.choice([0.0, 0.5, 2.0])
        rows += [row(sequence, number, now, chance.choice("abc")) for number in (0, 1, 2, 3) if chance.random() < 0.5]
    for cut in chance.sample(range(200), 25):
        steady, back = Pusher(policies.get), Pusher(policies.get)
        before = [one for one in rows if one.sequence <= cut]
        after = [one for one in rows if one.sequence > cut]
        steady.take(before)
        back.take(before)
        assert back.take(after) == steady.take(after)
        assert back.advance(now + 60) == steady.advance(now + 60)


def test_options_become_the_policy_they_say() -> None:
    assert policy_of_options(DeliveryOptions(webhook="w", dwell_seconds=5)) is None
    options = DeliveryOptions(rate_limit=RateLimit(3, 9.0), digest_seconds=4.0, deduplicate_seconds=2.0, max_notifications=7)
    assert policy_of_options(options) == DeliveryPolicy(3, 9.0, 4.0, 2.0, 7)
