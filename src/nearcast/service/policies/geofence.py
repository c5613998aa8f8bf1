"""Whether one moving subscriber is with a message: entered, dwelled, left, steady at borders and honest about accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nearcast.errors import SubscriptionError


class Passage(StrEnum):
    """What a moving subscriber is told about a message."""

    ENTERED = "entered"
    DWELLED = "dwelled"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class PresencePolicy:
    """How a subscription wants passages judged.

    Parameters
    ----------
    leave_margin_m
        Hysteresis: so far outside the border (beyond the accuracy of the position) before it counts as outside.
    leave_after_s
        So long outside before it is told; coming back in time leaves no trace.
    dwell_s
        Tell also that the subscriber has been inside for so long; None: do not.
    tells_first_seen
        Whether those it is inside of at its first position are told as entered, or not at all.
    """

    leave_margin_m: float = 0.0
    leave_after_s: float = 0.0
    dwell_s: float | None = None
    tells_first_seen: bool = True

    def __post_init__(self) -> None:
        for name in ("leave_margin_m", "leave_after_s", "dwell_s"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise SubscriptionError(f"{name} is {value!r}; expected a finite number of at least 0")


@dataclass(frozen=True, slots=True)
class Told:
    """One passage; `time` is when it was so by the positions, not when somebody looked."""

    passage: Passage
    message: int
    time: float


@dataclass(slots=True)
class Stay:
    """One message a subscriber is with, or may be with.

    `entered` is infinite while no position was sure enough, `outside_since` while none said surely that it is outside.
    """

    entered: float = math.inf
    has_dwelled: bool = False
    outside_since: float = math.inf
    is_beyond: bool = False
    """Whether the last position was outside the border, surely or not: the engine has nothing more to say about it then."""


@dataclass(slots=True)
class Presence:
    """The state of one moving subscription; every field can be stored and given back.

    Feed `move` with the depths of the messages that the engine says entered or left and of those `watched` names: a message at
    depth 7 lies 7 m inside the region, at -7 it lies 7 m outside.
    """

    last_time: float = -math.inf
    last_accuracy_m: float = 0.0
    n_late: int = 0
    stays: dict[int, Stay] = field(default_factory=dict)

    def watched(self) -> list[int]:
        """Messages whose verdict may still change although the engine reports no change for them."""
        return [message for message, stay in self.stays.items() if math.isinf(stay.entered) or stay.is_beyond]

    def move(self, policy: PresencePolicy, time: float, accuracy_m: float, depths: Mapping[int, float]) -> list[Told]:
        """What a position changes. A late one (older than the last) is counted and changes nothing."""
        if time < self.last_time:
            self.n_late += 1
            return []
        told = self.advance(policy, time)
        is_first = math.isinf(self.last_time)
        self.last_time, self.last_accuracy_m = time, accuracy_m
        for message, depth in depths.items():
            told += self._judge(policy, time, message, depth, is_first)
        return told

    def appear(self, policy: PresencePolicy, time: float, message: int, depth: float) -> list[Told]:
        """What a new message changes, judged by the last position."""
        return self._judge(policy, max(time, self.last_time), message, depth, False)

    def vanish(self, policy: PresencePolicy, time: float, message: int) -> list[Told]:
        """What the end of a message changes: who was with it has left it."""
        told = self.advance(policy, time)
        stay = self.stays.pop(message, None)
        return told if stay is None or math.isinf(stay.entered) else [*told, Told(Passage.LEFT, message, time)]

    def due(self, policy: PresencePolicy) -> float:
        """When time alone makes the next passage; infinity if none is to come."""
        return min((_due_of(policy, stay) for stay in self.stays.values()), default=math.inf)

    def advance(self, policy: PresencePolicy, now: float) -> list[Told]:
        """The passages that time alone has made up to `now`, in order of time."""
        told = [one for message in list(self.stays) for one in self._settle(policy, now, message)]
        return sorted(told, key=lambda one: one.time)

    def _judge(self, policy: PresencePolicy, time: float, message: int, depth: float, is_first: bool) -> list[Told]:
        accuracy_m = self.last_accuracy_m
        if message not in self.stays:
            if depth < 0:
                return []
            self.stays[message] = Stay()
        stay = self.stays[message]
        stay.is_beyond = depth < 0
        if math.isinf(stay.entered):
            return self._judge_unsure(policy, time, message, depth, is_first)
        # Inside, or not surely outside: whatever began to look like leaving is forgotten.
        is_outside = depth < -accuracy_m - policy.leave_margin_m
        stay.outside_since = min(stay.outside_since, time) if is_outside else math.inf
        return self._settle(policy, time, message)

    def _judge_unsure(self, policy: PresencePolicy, time: float, message: int, depth: float, is_first: bool) -> list[Told]:
        if depth < -self.last_accuracy_m:
            del self.stays[message]
            return []
        if depth < self.last_accuracy_m:
            return []
        self.stays[message].entered = time
        is_told = policy.tells_first_seen or not is_first
        return [Told(Passage.ENTERED, message, time)] * is_told + self._settle(policy, time, message)

    def _settle(self, policy: PresencePolicy, now: float, message: int) -> list[Told]:
        """What time has made of one stay."""
        stay, told = self.stays[message], []
        dwells_at = _dwells_at(policy, stay)
        if dwells_at <= now:
            told.append(Told(Passage.DWELLED, message, dwells_at))
            stay.has_dwelled = True
        leaves_at = stay.outside_since + policy.leave_after_s
        if leaves_at <= now:
            told.append(Told(Passage.LEFT, message, leaves_at))
            del self.stays[message]
        return told


def _dwells_at(policy: PresencePolicy, stay: Stay) -> float:
    """When the stay is long enough to be told; infinity once it was told, and when it began to end before that."""
    if policy.dwell_s is None or stay.has_dwelled:
        return math.inf
    at = stay.entered + policy.dwell_s
    return at if at <= stay.outside_since else math.inf


def _due_of(policy: PresencePolicy, stay: Stay) -> float:
    return min(_dwells_at(policy, stay), stay.outside_since + policy.leave_after_s)
