"""What one commit brings: rows to add, replace and remove, together or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from nearcast.storage.pages import Page


class SubscriptionRow(NamedTuple):
    """A subscription as it is kept. `body` is JSON; `place` of where a moving one is now, `options` of its delivery.

    `changed` and `ended` are sequences: when it was last put, when it ended. An ended one stays for those who still read its
    inbox, until retention takes it away. `paused` is 1 while it is kept but hears nothing.
    """

    number: int
    tenant: str
    id: str
    subscriber: str
    kind: str
    created: float
    expires: float | None
    changed: int
    ended: int | None
    place_time: float | None
    body: bytes
    place: bytes | None
    options: bytes | None
    paused: int = 0


class Place(NamedTuple):
    """Where a moving subscription is now."""

    number: int
    place: bytes
    time: float


class KeyRow(NamedTuple):
    """An API key; only a digest of its secret is kept."""

    id: str
    tenant: str
    digest: bytes
    body: bytes


class AuditRow(NamedTuple):
    time: float
    tenant: str
    key: str
    action: str
    target: str
    detail: str


@dataclass(slots=True)
class Batch:
    """Everything of one commit."""

    sequence: int | None = None
    """The last sequence that is taken."""
    subscriptions: list[SubscriptionRow] = field(default_factory=list)
    ended: list[tuple[int, int]] = field(default_factory=list)
    """(number, sequence) of subscriptions that end."""
    places: list[Place] = field(default_factory=list)
    page: Page | None = None
    message_ids: list[tuple[bytes, int]] = field(default_factory=list)
    requests: list[tuple[str, str, float, bytes]] = field(default_factory=list)
    """(tenant, idempotency key, time, answer)."""
    cursors: list[tuple[str, str, int]] = field(default_factory=list)
    """(tenant, inbox, cursor); cursors only go forward."""
    records: list[tuple[str, str, str, bytes | None]] = field(default_factory=list)
    """(collection, tenant, id, body); None removes."""
    keys: list[KeyRow] = field(default_factory=list)
    removed_keys: list[str] = field(default_factory=list)
    audit: list[AuditRow] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
