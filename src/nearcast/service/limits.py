"""The limits of one server, from the table of settings."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast import settings


@dataclass(frozen=True, slots=True)
class Limits:
    """See `docs/reference/settings.md` for what each of them means."""

    body_bytes: int
    line_count: int
    pending_messages: int
    pending_bytes: int
    batch_messages: int
    batch_bytes: int
    default_lifetime_s: int
    retention_s: int
    retention_bytes: int
    live_messages: int
    ranked_window: int
    recent_bytes: int
    subscriptions: int
    requests_per_s: int
    connections: int
    connections_per_key: int
    webhooks_per_subscriber: int


def read_limits() -> Limits:
    """The values of now: a default, or what the environment says."""
    return Limits(**{name: settings.limit(f"service_{name}") for name in Limits.__dataclass_fields__})
