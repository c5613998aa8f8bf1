"""Which matches of one subscription become deliveries: repeats, rate, digest, maximum."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from nearcast.errors import SubscriptionError

# What a digest names and a repeat is compared with is bounded; what is beyond is counted.
MAX_DIGEST_MESSAGES = 100
MAX_REMEMBERED_KEYS = 10_000


class Verdict(StrEnum):
    """What becomes of a match."""

    DELIVER = "deliver"
    HOLD = "hold"
    REPEAT = "repeat"
    RATE = "rate"
    MAXIMUM = "maximum"


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """What one subscription asks for; None switches a rule off.

    Parameters
    ----------
    max_per_period, period_s
        At most so many deliveries in any `period_s` seconds.
    digest_s
        Gather matches for so long after the first, then deliver them as one.
    repeat_s
        Drop a match whose key was delivered or held less than so many seconds ago.
    max_deliveries
        After so many deliveries the subscription is over.
    """

    max_per_period: int | None = None
    period_s: float = 60.0
    digest_s: float | None = None
    repeat_s: float | None = None
    max_deliveries: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_per_period", "max_deliveries"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise SubscriptionError(f"{name} is {count!r}; expected 1 or more, or none to switch the rule off")
        for name in ("period_s", "digest_s", "repeat_s"):
            seconds = getattr(self, name)
            if seconds is not None and not 0 < seconds < math.inf:
                raise SubscriptionError(f"{name} is {seconds!r}; expected seconds above 0, or none to switch the rule off")

    @property
    def is_plain(self) -> bool:
        """Whether every match is delivered at once, so that no state is needed."""
        return self.max_per_period is None and self.digest_s is None and self.repeat_s is None and self.max_deliveries is None


@dataclass(frozen=True, slots=True)
class Decision:
    """About one match. With DELIVER: how many were kept back since the delivery before, and whether this was the last."""

    verdict: Verdict
    suppressed: int = 0
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Digest:
    """Several matches as one delivery; `messages` are the first of `total`, in order."""

    time: float
    messages: tuple[int, ...]
    total: int
    suppressed: int = 0
    is_last: bool = False


@dataclass(slots=True)
class Notifier:
    """The state behind one subscription; every field can be stored and given back."""

    n_delivered: int = 0
    n_suppressed: int = 0
    """Since the last delivery."""
    delivered_at: list[float] = field(default_factory=list)
    """The last `max_per_period` deliveries, oldest first."""
    seen_at: dict[str, float] = field(default_factory=dict)
    """Key to time of the match that was not dropped, oldest first."""
    held: list[int] = field(default_factory=list)
    n_held: int = 0
    held_since: float = 0.0

    def offer(self, policy: DeliveryPolicy, time: float, message: int, key: str) -> Decision:
        """Decide about one match. `time` never decreases; `key` says which matches repeat each other."""
        if self._is_over(policy):
            return self._suppress(Verdict.MAXIMUM)
        if policy.repeat_s is not None and self._is_repeat(key, time, policy.repeat_s):
            return self._suppress(Verdict.REPEAT)
        if policy.digest_s is not None:
            self._hold(time, message)
            return Decision(Verdict.HOLD)
        if time < self._free_at(policy):
            return self._suppress(Verdict.RATE)
        return Decision(Verdict.DELIVER, *self._delivered(policy, time))

    def due(self, policy: DeliveryPolicy) -> float:
        """When the digest that is being gathered goes out; infinity if none is."""
        if self.n_held == 0:
            return math.inf
        # A digest that was switched off while one was being gathered is due at once.
        return max(self.held_since + (policy.digest_s or 0.0), self._free_at(policy))

    def take_digest(self, policy: DeliveryPolicy) -> Digest:
        """The digest that is due, and begin the next; its time is when it was due, not when somebody looked."""
        time = self.due(policy)
        messages, total = tuple(self.held), self.n_held
        self.held, self.n_held = [], 0
        return Digest(time, messages, total, *self._delivered(policy, time))

    def _is_over(self, policy: DeliveryPolicy) -> bool:
        return policy.max_deliveries is not None and self.n_delivered >= policy.max_deliveries

    def _is_repeat(self, key: str, time: float, repeat_s: float) -> bool:
        while self.seen_at:
            oldest = next(iter(self.seen_at))
            if self.seen_at[oldest] + repeat_s > time and len(self.seen_at) <= MAX_REMEMBERED_KEYS:
                break
            del self.seen_at[oldest]
        if key in self.seen_at:
            return True
        self.seen_at[key] = time
        return False

    def _hold(self, time: float, message: int) -> None:
        if self.n_held == 0:
            self.held_since = time
        if self.n_held < MAX_DIGEST_MESSAGES:
            self.held.append(message)
        self.n_held += 1

    def _free_at(self, policy: DeliveryPolicy) -> float:
        """From when on the rate allows another delivery."""
        if policy.max_per_period is None or len(self.delivered_at) < policy.max_per_period:
            return -math.inf
        return self.delivered_at[-policy.max_per_period] + policy.period_s

    def _suppress(self, verdict: Verdict) -> Decision:
        self.n_suppressed += 1
        return Decision(verdict)

    def _delivered(self, policy: DeliveryPolicy, time: float) -> tuple[int, bool]:
        """Note a delivery; gives how many were suppressed before it, and whether it was the last one."""
        suppressed, self.n_suppressed = self.n_suppressed, 0
        self.n_delivered += 1
        if policy.max_per_period is not None:
            self.delivered_at.append(time)
            del self.delivered_at[: -policy.max_per_period]
        return suppressed, self._is_over(policy)
