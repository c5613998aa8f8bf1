"""Bodies of `/v1/webhooks`: see `wire.api`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from nearcast.wire.api import Event


class WebhookIn(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Where events are posted. `secret` (whsec_...) is made if absent."""

    url: Annotated[str, Meta(min_length=8, max_length=2048, pattern=r"^https?://")]
    secret: Annotated[str, Meta(min_length=8, max_length=256)] | None = None
    is_enabled: bool = True


class WebhookOut(Struct, omit_defaults=True):
    """A webhook; `secret` is shown once, in the answer that makes it. `disabled_reason` says why it was switched off."""

    id: str
    url: str
    subscriber: str
    created: datetime
    is_enabled: bool = True
    disabled_reason: str | None = None
    secret: str | None = None


class WebhookList(Struct):
    webhooks: list[WebhookOut]


class WebhookAttempt(Struct, omit_defaults=True):
    """One request of a webhook: what was answered, or why nothing was. `next` is when it is sent again."""

    time: datetime
    event: str
    subscription: str
    attempt: int
    is_success: bool
    outcome: str
    status: int | None = None
    next: datetime | None = None


class WebhookOutcome(Struct, omit_defaults=True):
    """What came of one request that was asked for."""

    is_success: bool
    outcome: str
    status: int | None = None


class WebhookHistory(Struct):
    """The last requests of a webhook, newest first."""

    attempts: list[WebhookAttempt]


class DeadLetter(Struct, omit_defaults=True):
    """Events that could not be delivered; `id` names the request. They stay in the inbox too."""

    id: str
    time: datetime
    subscription: str
    attempts: int
    outcome: str
    events: list[Event]


class DeadLetterList(Struct):
    """Oldest first."""

    dead_letters: list[DeadLetter]
