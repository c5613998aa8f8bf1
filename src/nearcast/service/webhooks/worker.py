"""The task behind one webhook: read its events, post them, keep where it stands; retry, give up, switch off."""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections.abc import Awaitable, Callable

import msgspec

from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.push.stream_reader import Frame, Pace, Reader
from nearcast.service.push.throttling import Pusher
from nearcast.service.webhooks.retrying import RetryRules
from nearcast.service.webhooks.sending import Outcome, Sender
from nearcast.service.webhooks.state import (
    DEAD_LETTERS,
    MAX_DEAD_LETTERS,
    PLACES,
    DeadLetterRecord,
    Place,
    WebhookRecord,
    as_datetime,
)
from nearcast.wire.api import Event
from nearcast.wire.webhooks import DeadLetter, WebhookAttempt

CONTENT_TYPE = "application/cloudevents-batch+json"

_EVENTS = msgspec.json.Decoder(list[Event])
Record = tuple[str, str, str, bytes | None]
Disable = Callable[[str], Awaitable[None]]


class Worker:
    """Runs until it is cancelled, the server stops, or the webhook is switched off (`disable` is told why)."""

    def __init__(
        self,
        broker: Broker,
        sender: Sender,
        rules: RetryRules,
        pace: Pace,
        webhook: WebhookRecord,
        place: Place,
        disable: Disable,
    ) -> None:
        self._broker = broker
        self._sender = sender
        self._rules = rules
        self._pace = pace
        self._disable = disable
        self._chance = random.Random()
        self.webhook = webhook
        self.place = place

    async def run(self) -> None:
        caller = Caller(f"webhook:{self.webhook.id}", self.webhook.tenant, frozenset({"admin"}), self.webhook.subscriber)
        inbox = await self._broker.open_inbox(caller, self.webhook.subscriber)
        try:
            # A copy: the pusher runs ahead of the place while a request is under way.
            pusher = Pusher(self._broker.policy_of, copy.deepcopy(self.place.notifiers))
            reader = Reader(self._broker, inbox, self.place.cursor, pusher, self._pace)
            reader.wants = lambda row: self._broker.webhook_of(row.number) == self.webhook.id
            await reader.hold_again()
            async for frame in reader.frames():
                letter = await self._deliver(frame) if frame.events else None
                if frame.events or frame.cursor > self.place.cursor:
                    self.place.cursor = frame.cursor
                    self.place.notifiers = copy.deepcopy(pusher.notifiers)
                    await self._keep(letter)
                if self.place.n_dead_in_a_row >= self._rules.disable_after:
                    await self._disable(f"{self.place.n_dead_in_a_row} requests in a row were given up, the last: {self._last}")
                    return
        finally:
            self._broker.close_inbox(inbox)

    @property
    def _last(self) -> str:
        return self.place.attempts[-1].outcome if self.place.attempts else ""

    async def _deliver(self, frame: Frame) -> DeadLetterRecord | None:
        """Post one frame until it is accepted; gives the dead letter if it is given up."""
        body = b"[" + b",".join(frame.events) + b"]"
        events = _EVENTS.decode(body)
        id = f"{self.webhook.id}.{events[0].sequence}.{events[-1].sequence}.{len(events)}"
        while True:
            await asyncio.sleep(max(0.0, self.place.next_time - time.time()))
            outcome = await self._sender.send(self.webhook.url, self.webhook.secrets_at(time.time()), id, body, CONTENT_TYPE)
            self.place.n_failed += 1
            n_attempts = self.place.n_failed
            is_over = outcome.is_success or outcome.is_final or n_attempts >= self._rules.attempts
            wait_s = 0.0 if is_over else self._rules.wait_s(n_attempts, outcome.retry_after_s, self._chance)
            self._note(events, n_attempts, outcome, wait_s)
            if is_over:
                break
            self.place.next_time = time.time() + wait_s
            await self._keep(None)
        self.place.n_failed, self.place.next_time = 0, 0.0
        if outcome.is_success:
            self.place.n_dead_in_a_row = 0
            return None
        # The receiver that is gone is not asked again: as many as it takes to switch off.
        self.place.n_dead_in_a_row += self._rules.disable_after if outcome.is_final else 1
        letter = DeadLetter(id, as_datetime(time.time()), events[0].subject, n_attempts, outcome.reason, events)
        return DeadLetterRecord(self.webhook.id, letter)

    def _note(self, events: list[Event], n_attempts: int, outcome: Outcome, wait_s: float) -> None:
        now = time.time()
        kind = "accepted" if outcome.is_success else "failed" if wait_s else "given_up"
        self._broker.metrics.webhook_requests.labels(kind).inc()
        self.place.note(
            WebhookAttempt(
                time=as_datetime(now),
                event=events[0].id,
                subscription=events[0].subject,
                attempt=n_attempts,
                is_success=outcome.is_success,
                outcome=outcome.reason,
                status=outcome.status,
                next=as_datetime(now + wait_s) if wait_s else None,
            )
        )

    async def _keep(self, letter: DeadLetterRecord | None) -> None:
        tenant = self.webhook.tenant
        changes: list[Record] = []
        if letter is not None:
            changes.append((DEAD_LETTERS, tenant, letter.letter.id, msgspec.json.encode(letter)))
            self.place.dead.append(letter.letter.id)
            changes += [(DEAD_LETTERS, tenant, oldest, None) for oldest in self.place.dead[:-MAX_DEAD_LETTERS]]
            del self.place.dead[:-MAX_DEAD_LETTERS]
        changes.append((PLACES, tenant, self.webhook.id, msgspec.json.encode(self.place)))
        await self._broker.write_records(changes)
