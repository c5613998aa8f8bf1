"""The policies of many subscriptions: one decision per match, one clock for everything that waits for a time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from nearcast.service.policies.notifying import Decision, DeliveryPolicy, Digest, Notifier, Verdict


@dataclass(frozen=True, slots=True)
class Notice:
    """A delivery that says more than "here is a message": how many were kept back before it, or that it was the last."""

    subscription: int
    suppressed: int
    is_last: bool


@dataclass(slots=True)
class Ruling:
    """What becomes of the matches of one message: those delivered, in order of subscription, and remarks about some of them."""

    delivered: list[int] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)


@dataclass(slots=True)
class PolicyBook:
    """Notifiers by subscription number. Subscriptions that are not here deliver every match: ask `covers` first.

    `policies` and `notifiers` are the whole state: store them, give them back, and the clock is rebuilt.
    """

    policies: dict[int, DeliveryPolicy] = field(default_factory=dict)
    notifiers: dict[int, Notifier] = field(default_factory=dict)
    _clock: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for subscription in self.notifiers:
            self._wind(subscription)

    def set(self, subscription: int, policy: DeliveryPolicy) -> None:
        """Begin, change or end the policy of a subscription. Counts go on; what was held goes out when it is due."""
        if policy.is_plain and subscription not in self.policies:
            return
        self.policies[subscription] = policy
        self.notifiers.setdefault(subscription, Notifier())
        self._wind(subscription)

    def drop(self, subscription: int) -> None:
        self.policies.pop(subscription, None)
        self.notifiers.pop(subscription, None)

    def covers(self, subscription: int) -> bool:
        return subscription in self.policies

    def offer(self, time: float, subscription: int, message: int, key: str) -> Decision:
        """Decide about one match of a subscription that has a policy."""
        notifier = self.notifiers[subscription]
        is_first_held = notifier.n_held == 0
        decision = notifier.offer(self.policies[subscription], time, message, key)
        if decision.verdict is Verdict.HOLD and is_first_held:
            self._wind(subscription)
        return decision

    def rule(self, time: float, message: int, key: str, matched: Iterable[int]) -> Ruling:
        """Decide about the matches of one message; `matched` are subscriptions that have a policy."""
        ruling = Ruling()
        for subscription in matched:
            decision = self.offer(time, subscription, message, key)
            if decision.verdict is Verdict.DELIVER:
                ruling.delivered.append(subscription)
                if decision.suppressed or decision.is_last:
                    ruling.notices.append(Notice(subscription, decision.suppressed, decision.is_last))
        return ruling

    @property
    def next_due(self) -> float:
        """When `advance` has something to do; may be early, never late."""
        return self._clock[0][0] if self._clock else math.inf

    def advance(self, now: float) -> list[tuple[int, Digest]]:
        """The digests due up to `now` with their subscriptions, in order of time and subscription."""
        digests = []
        while self.next_due <= now:
            due, subscription = heapq.heappop(self._clock)
            policy = self.policies.get(subscription)
            # An entry whose subscription was dropped, or whose digest was moved to another time, is stale.
            if policy is not None and self.notifiers[subscription].due(policy) == due:
                digests.append((subscription, self.notifiers[subscription].take_digest(policy)))
        return digests

    def _wind(self, subscription: int) -> None:
        due = self.notifiers[subscription].due(self.policies[subscription])
        if due < math.inf:
            heapq.heappush(self._clock, (due, subscription))
