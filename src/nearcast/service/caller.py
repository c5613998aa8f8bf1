"""Who is asking: what an API key lets its holder do."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.wire.api import Role

OPERATING_TENANT = "default"
"""Its admins look after the server, and so see what belongs to no single tenant."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a key. Everything it sees and does is inside its tenant; a subscriber sees only its own."""

    key_id: str
    tenant: str
    roles: frozenset[Role]
    subscriber: str

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles

    @property
    def is_operator(self) -> bool:
        """Whether it may see figures of the whole server."""
        return self.is_admin and self.tenant == OPERATING_TENANT

    def may_read(self, subscriber: str) -> bool:
        """Whether subscriptions and inboxes of `subscriber` are visible to it."""
        return self.is_admin or ("subscriber" in self.roles and subscriber == self.subscriber)
