"""Repeats, rate, digest, maximum: what is delivered, what is counted, and the same again after a restart."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest

from nearcast.errors import SubscriptionError
from nearcast.service.policies.book import Notice, PolicyBook
from nearcast.service.policies.notifying import MAX_DIGEST_MESSAGES, Decision, DeliveryPolicy, Digest, Notifier, Verdict


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
    book = PolicyBook()
    book.set(7, DeliveryPolicy(digest_s=60))
    for number in range(MAX_DIGEST_MESSAGES + 3):
        assert book.rule(10.0 + number / 10, number, str(number), [7]).delivered == []
    assert book.next_due == 70.0
    assert book.advance(69.9) == []
    assert book.advance(500.0) == [(7, Digest(70.0, tuple(range(MAX_DIGEST_MESSAGES)), MAX_DIGEST_MESSAGES + 3))]
    assert book.next_due == math.inf


def test_a_digest_waits_for_the_rate_and_loses_nothing() -> None:
    book = PolicyBook()
    book.set(1, DeliveryPolicy(digest_s=5, max_per_period=1, period_s=100))
    book.offer(0, 1, 0, "a")
    assert [digest.messages for _, digest in book.advance(5)] == [(0,)]
    book.offer(10, 1, 1, "b")
    assert book.advance(104.9) == []
    book.offer(104.9, 1, 2, "c")
    assert book.advance(105) == [(1, Digest(105.0, (1, 2), 2))]


def test_remarks_are_made_only_where_there_is_something_to_say() -> None:
    book = PolicyBook()
    book.set(1, DeliveryPolicy(repeat_s=10))
    book.set(2, DeliveryPolicy(max_deliveries=1))
    ruling = book.rule(0, 0, "a", [1, 2])
    assert (ruling.delivered, ruling.notices) == ([1, 2], [Notice(2, 0, True)])
    assert book.rule(1, 1, "a", [1, 2]).delivered == []
    ruling = book.rule(2, 2, "b", [1])
    assert (ruling.delivered, ruling.notices) == ([1], [Notice(1, 1, False)])


def test_a_plain_policy_needs_no_state_and_a_dropped_one_leaves_none() -> None:
    book = PolicyBook()
    book.set(1, DeliveryPolicy())
    assert not book.covers(1)
    book.set(1, DeliveryPolicy(digest_s=5))
    book.offer(0, 1, 0, "a")
    book.drop(1)
    assert not book.covers(1)
    assert book.advance(math.inf if book.next_due == math.inf else book.next_due) == []


def test_a_digest_that_is_switched_off_goes_out_at_once() -> None:
    book = PolicyBook()
    book.set(1, DeliveryPolicy(digest_s=3600))
    book.offer(0, 1, 5, "a")
    book.set(1, DeliveryPolicy())
    assert book.advance(0) == [(1, Digest(0.0, (5,), 1))]
    assert book.offer(1, 1, 6, "b").verdict is Verdict.DELIVER


def stored_and_restored(book: PolicyBook) -> PolicyBook:
    kinds: Any = tuple[dict[int, DeliveryPolicy], dict[int, Notifier]]
    return PolicyBook(*msgspec.json.decode(msgspec.json.encode((book.policies, book.notifiers)), type=kinds))


def test_a_restart_at_any_moment_gives_the_same_deliveries() -> None:
    chance = random.Random(11)
    policies = {
        1: DeliveryPolicy(max_per_period=2, period_s=7),
        2: DeliveryPolicy(digest_s=6, max_per_period=1, period_s=9),
        3: DeliveryPolicy(repeat_s=5, max_deliveries=9),
        4: DeliveryPolicy(digest_s=4, repeat_s=3, max_deliveries=4),
    }
    steady, restarted = PolicyBook(), PolicyBook()
    for number, policy in policies.items():
        steady.set(number, policy)
        restarted.set(number, policy)
    now, n_delivered = 0.0, 0
    for message in range(400):
        now += chance.choice([0.0, 0.5, 1.0, 3.0])
        matched = [number for number in policies if chance.random() < 0.6]
        key = chance.choice("abcd")
        restarted = stored_and_restored(restarted)
        digests = steady.advance(now)
        assert restarted.advance(now) == digests
        ruling = steady.rule(now, message, key, matched)
        assert restarted.rule(now, message, key, matched) == ruling
        n_delivered += len(ruling.delivered) + len(digests)
    assert n_delivered > 100


@pytest.mark.parametrize("wrong", [{"max_per_period": 0}, {"max_deliveries": -1}, {"digest_s": 0.0}, {"repeat_s": math.inf}])
def test_a_rule_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SubscriptionError, match=next(iter(wrong))):
        DeliveryPolicy(**wrong)
