"""From the rows of an inbox to what is pushed: the policies of its subscriptions applied, digests gathered, counts attached.

Live streams and webhooks push the same way. A pusher that is fed the same rows gives the same pushes, so a reader that comes
back feeds it what lies before its cursor, and goes on.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable

import msgspec

from nearcast.service.broker import EventRow
from nearcast.service.policies.delivery_limits import DeliveryPolicy, Notifier, Verdict

PolicyOf = Callable[[int], DeliveryPolicy | None]
"""The policy of a subscription by its number; None if every event is pushed."""


class Pusher:
    """The policies of one reader's subscriptions. `notifiers` by subscription number are its whole lasting state."""

    def __init__(self, policy_of: PolicyOf, notifiers: dict[int, Notifier] | None = None) -> None:
        self._policy_of = policy_of
        self.notifiers = notifiers or {}
        self._held: dict[int, list[EventRow]] = {}

    @property
    def first_held(self) -> int | None:
        """The oldest sequence that the notifiers hold; None if they hold nothing."""
        return min((sequence for notifier in self.notifiers.values() for sequence in notifier.held), default=None)

    @property
    def due(self) -> float:
        """When `advance` has something to push; infinity if nothing is held."""
        return min((self._due(number) for number in self._held), default=math.inf)

    def take(self, rows: Iterable[EventRow]) -> list[bytes]:
        """What to push now for rows in order: JSON of events, perhaps fewer than rows, and digests that came due before."""
        rows = list(rows)
        policies = {number: self._policy_of(number) for number in {row.number for row in rows}}
        if not self._held and not any(policies.values()):
            return [row.json for row in rows]
        pushed: list[bytes] = []
        for row in rows:
            policy = policies[row.number]
            if policy is None:
                # Its policy may have been taken away while rows were held.
                pushed += self._push_held(row.number) if row.number in self._held else ()
                pushed.append(row.json)
                continue
            if row.number in self._held and self._due(row.number) <= row.time:
                pushed += self._push_held(row.number)
            pushed += self._offer(policy, row)
        return pushed

    def is_held(self, row: EventRow) -> bool:
        notifier = self.notifiers.get(row.number)
        return notifier is not None and row.sequence in notifier.held

    def hold_again(self, rows: Iterable[EventRow]) -> None:
        """Give back, in order, the rows that the notifiers hold; those that are not among them are given up."""
        self._held = {}
        for row in rows:
            self._held.setdefault(row.number, []).append(row)
        for number, notifier in self.notifiers.items():
            notifier.held = [row.sequence for row in self._held.get(number, ())]
            if not notifier.held:
                notifier.n_held = 0

    def advance(self, now: float) -> list[bytes]:
        """The digests that are due."""
        due = sorted((self._due(number), number) for number in self._held)
        return [event for time, number in due if time <= now for event in self._push_held(number)]

    def _offer(self, policy: DeliveryPolicy, row: EventRow) -> list[bytes]:
        notifier = self.notifiers.setdefault(row.number, Notifier())
        key = "" if policy.repeat_s is None else content_key(row)
        decision = notifier.offer(policy, row.time, row.sequence, key)
        if decision.verdict is Verdict.HOLD:
            held = self._held.setdefault(row.number, [])
            if len(held) < len(notifier.held):
                held.append(row)
        if decision.verdict is not Verdict.DELIVER:
            return []
        return [marked(row.json, decision.suppressed, decision.is_last)]

    def _push_held(self, number: int) -> list[bytes]:
        rows, notifier = self._held.pop(number), self.notifiers[number]
        digest = notifier.take_digest(self._policy_of(number) or DeliveryPolicy())
        events = [row.json for row in rows]
        events[-1] = marked(events[-1], digest.suppressed, digest.is_last, digest.total)
        return events

    def _due(self, number: int) -> float:
        return self.notifiers[number].due(self._policy_of(number) or DeliveryPolicy())


class _Content(msgspec.Struct):
    keywords: list[str] = []
    text: str | None = None


class _Data(msgspec.Struct):
    message: _Content = msgspec.field(default_factory=_Content)


class _Said(msgspec.Struct):
    data: _Data


_SAID = msgspec.json.Decoder(_Said)


def content_key(row: EventRow) -> str:
    """The same for events that say the same: one type (entering is no repeat of leaving), one text, one set of keywords."""
    said = _SAID.decode(row.json).data.message
    content = msgspec.json.encode((row.type, said.text, sorted(said.keywords)))
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def marked(event: bytes, suppressed: int, is_last: bool, digest_size: int = 0) -> bytes:
    """The JSON of an event with what its reader should know about those that were not pushed (extension attributes)."""
    added = b""
    if suppressed:
        added += b',"suppressed":%d' % suppressed
    if digest_size:
        added += b',"digestsize":%d' % digest_size
    if is_last:
        added += b',"lastnotification":true'
    return event[:-1] + added + b"}" if added else event
