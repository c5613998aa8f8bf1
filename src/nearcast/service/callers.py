"""Who is asking: what an API key lets its holder do."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.service.wire import Role


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

    def may_read(self, subscriber: str) -> bool:
        """Whether subscriptions and inboxes of `subscriber` are visible to it."""
        return self.is_admin or ("subscriber" in self.roles and subscriber == self.subscriber)
