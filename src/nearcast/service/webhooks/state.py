"""What is kept about a webhook: who it is, where it stands, what became of its requests."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from nearcast.service.policies.delivery_limits import Notifier
from nearcast.wire.webhooks import DeadLetter, WebhookAttempt, WebhookOut

# Collections of records in the store.
WEBHOOKS = "webhooks"
PLACES = "webhook_places"
DEAD_LETTERS = "webhook_dead_letters"

MAX_ATTEMPTS_KEPT = 50
MAX_DEAD_LETTERS = 200


class Secret(msgspec.Struct):
    """One secret; while another replaces it, it signs until `until` (seconds since 1970)."""

    value: str
    until: float | None = None


class WebhookRecord(msgspec.Struct):
    """A webhook as its owner made it; changed by its owner, and when it is switched off."""

    id: str
    tenant: str
    subscriber: str
    url: str
    created: float
    secrets: list[Secret]
    is_enabled: bool = True
    disabled_reason: str | None = None

    def secrets_at(self, now: float) -> list[str]:
        """Those that sign at a time, newest first."""
        return [secret.value for secret in self.secrets if secret.until is None or secret.until > now]

    def shown(self, secret: str | None = None) -> WebhookOut:
        """For its owner; `secret` only in the answer that makes it."""
        return WebhookOut(
            id=self.id,
            url=self.url,
            subscriber=self.subscriber,
            created=as_datetime(self.created),
            is_enabled=self.is_enabled,
            disabled_reason=self.disabled_reason,
            secret=secret,
        )


class Place(msgspec.Struct):
    """Where a webhook stands: everything up to `cursor` was accepted, given up, or is held for a digest.

    `notifiers` are the policies at that cursor, with what they hold; `n_failed` and `next_time` belong to the request after it.
    """

    cursor: int
    notifiers: dict[int, Notifier] = {}
    n_failed: int = 0
    next_time: float = 0.0
    n_dead_in_a_row: int = 0
    attempts: list[WebhookAttempt] = []
    dead: list[str] = []
    """Ids of its dead letters, oldest first."""

    def note(self, attempt: WebhookAttempt) -> None:
        self.attempts.append(attempt)
        del self.attempts[:-MAX_ATTEMPTS_KEPT]


class DeadLetterRecord(msgspec.Struct):
    """A request that was given up, with the webhook it belongs to."""

    webhook: str
    letter: DeadLetter


def as_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
