"""Repeats, rate, digest, maximum: what is delivered, what is counted, and the same again after a restart."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest

from nearcast.errors import SubscriptionError
from nearcast.service.policies.delivery_limits import MAX_DIGEST_MESSAGES, Decision, DeliveryPolicy, Digest, Notifier, Verdict


def verdicts(policy: DeliveryPolicy, matches: list[tuple[float, str]]) -> list[Verdict]:
    notifier = Notifier()
    return [notifier.offer(policy, time, number, key).verdict for number, (time, key) in enumerate(matches)]


def test_a_rate_holds_in_every_window_not_only_in_fixed_ones() -> None:
    policy = DeliveryPolicy(max_per_period=2, period_s=10)
    times = [0.0, 9.0, 9.5, 10.0, 18.9, 19.0]
    expected = [Verdict.DELIVER, Verdict.DELIVER, Verdict.RATE, Verdict.DELIVER, Verdict.RATE, Verdict.DELIVER]
    assert verdicts(policy, [(time, str(time)) for time in times]) == expected


def test_the_next_delivery_says_how_many_were_kept_back() -> None:
    policy, notifier = DeliveryPolicy(max_per_period=1, period_s=10), Notifier()
    decisions = [notifier.offer(policy, time, 0, str(time)) for time in (0.0, 1.0, 2.0, 10.0, 20.0)]
    assert [decision.suppressed for decision in decisions if decision.verdict is Verdict.DELIVER] == [0, 2, 0]


def test_a_repeat_is_dropped_until_its_time_is_over_and_does_not_prolong_it() -> None:
    matches = [(0.0, "a"), (1.0, "b"), (6.0, "a"), (9.9, "a"), (10.0, "a"), (10.5, "b")]
    expected = [Verdict.DELIVER, Verdict.DELIVER, Verdict.REPEAT, Verdict.REPEAT, Verdict.DELIVER, Verdict.REPEAT]
    assert verdicts(DeliveryPolicy(repeat_s=10), matches) == expected


def test_the_maximum_ends_the_subscription_with_its_last_delivery() -> None:
    policy, notifier = DeliveryPolicy(max_deliveries=2), Notifier()
    assert notifier.offer(policy, 0, 0, "a") == Decision(Verdict.DELIVER)
    assert notifier.offer(policy, 0, 1, "b") == Decision(Verdict.DELIVER, is_last=True)
    assert notifier.offer(policy, 0, 2, "c") == Decision(Verdict.MAXIMUM)


def test_a_digest_goes_out_when_it_is_due_and_names_a_bounded_number() -> None:
    policy, notifier = DeliveryPolicy(digest_s=60), Notifier()
    assert notifier.due(policy) == math.inf
    for number in range(MAX_DIGEST_MESSAGES + 3):
        assert notifier.offer(policy, 10.0 + number / 10, number, str(number)) == Decision(Verdict.HOLD)
    assert notifier.due(policy) == 70.0
    expected = Digest(70.0, tuple(range(MAX_DIGEST_MESSAGES)), MAX_DIGEST_MESSAGES + 3)
    assert notifier.take_digest(policy) == expected
    assert notifier.due(policy) == math.inf


def test_a_digest_waits_for_the_rate_and_loses_nothing() -> None:
    policy, notifier = DeliveryPolicy(digest_s=5, max_per_period=1, period_s=100), Notifier()
    notifier.offer(policy, 0, 0, "a")
    assert notifier.take_digest(policy).messages == (0,)
    notifier.offer(policy, 10, 1, "b")
    assert notifier.due(policy) == 105
    notifier.offer(policy, 104.9, 2, "c")
    assert notifier.take_digest(policy) == Digest(105.0, (1, 2), 2)


def test_a_digest_that_is_switched_off_is_due_at_once() -> None:
    notifier = Notifier()
    notifier.offer(DeliveryPolicy(digest_s=3600), 0, 5, "a")
    assert notifier.due(DeliveryPolicy()) == 0
    assert notifier.take_digest(DeliveryPolicy()) == Digest(0.0, (5,), 1)
    assert notifier.offer(DeliveryPolicy(), 1, 6, "b").verdict is Verdict.DELIVER


POLICIES = [
    DeliveryPolicy(max_per_period=2, period_s=7),
    DeliveryPolicy(digest_s=6, max_per_period=1, period_s=9),
    DeliveryPolicy(repeat_s=5, max_deliveries=9),
    DeliveryPolicy(digest_s=4, repeat_s=3, max_deliveries=4),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_restart_at_any_moment_gives_the_same_deliveries(policy: DeliveryPolicy) -> None:
    chance = random.Random(11)
    steady, restarted = Notifier(), Notifier()
    now, n_delivered = 0.0, 0
    for message in range(400):
        now += chance.choice([0.0, 0.5, 1.0, 3.0])
        restarted = msgspec.json.decode(msgspec.json.encode(restarted), type=Notifier)
        assert restarted.due(policy) == steady.due(policy)
        if steady.due(policy) <= now:
            assert restarted.take_digest(policy) == steady.take_digest(policy)
            n_delivered += 1
        key = chance.choice("abcd")
        decision = steady.offer(policy, now, message, key)
        assert restarted.offer(policy, now, message, key) == decision
        n_delivered += decision.verdict is Verdict.DELIVER
    assert n_delivered >= 4


@pytest.mark.parametrize("wrong", [{"max_per_period": 0}, {"max_deliveries": -1}, {"digest_s": 0.0}, {"repeat_s": math.inf}])
def test_a_rule_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SubscriptionError, match=next(iter(wrong))):
        DeliveryPolicy(**wrong)
