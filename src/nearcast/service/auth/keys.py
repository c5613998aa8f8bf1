"""API keys: made once, kept as digests, checked in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from datetime import datetime

import msgspec

from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.problems import Problem
from nearcast.service.times import moment
from nearcast.storage.batch import KeyRow
from nearcast.wire.api import KeyIn, KeyOut, Role

_PREFIX = "nc"
# Keys are read anew after this time, so that a key removed by another process ends soon.
_TRUSTED_S = 2.0
_NOBODY = hashlib.sha256(b"nobody has this secret").digest()


class _KeyBody(msgspec.Struct):
    name: str
    roles: list[Role]
    subscriber: str
    created: datetime
    expires: datetime | None = None


_decode = msgspec.json.Decoder(_KeyBody).decode


def make_key(tenant: str, given: KeyIn) -> tuple[KeyRow, KeyOut]:
    """A new key: the row to keep, and the answer with its secret, which is nowhere else."""
    id, secret = secrets.token_hex(6), secrets.token_hex(24)
    body = _KeyBody(
        given.name, [*dict.fromkeys(given.roles)], given.subscriber or given.name, moment(time.time()), given.expires
    )
    row = KeyRow(id, tenant, _digest(secret), msgspec.json.encode(body))
    shown = key_out(row)
    shown.secret = f"{_PREFIX}_{id}_{secret}"
    return row, shown


def key_out(row: KeyRow) -> KeyOut:
    body = _decode(row.body)
    return KeyOut(row.id, body.name, row.tenant, body.roles, body.subscriber, body.created, body.expires)


def _digest(secret: str) -> bytes:
    # Secrets are 192 random bits: nothing is gained by a slow hash.
    return hashlib.sha256(secret.encode()).digest()


class Gate:
    """Lets callers in by their keys, and not more often than they may."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[str, tuple[float, KeyRow | None]] = {}
        self._allowance: dict[str, tuple[float, float]] = {}
        self.on_removal: Callable[[str], None] = lambda id: None
        """Ends what a key that was removed still has open."""

    async def admit(self, authorization: str | None) -> Caller:
        """The caller behind an Authorization header; raises Problem 401 or 429."""
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise _unknown("no API key is given; send the header Authorization: Bearer nc_...")
        return await self.admit_key(given.strip())

    async def admit_key(self, given: str) -> Caller:
        """The caller behind a key."""
        prefix, _, rest = given.partition("_")
        id, _, secret = rest.partition("_")
        row = await self._row(id) if prefix == _PREFIX and len(id) == 12 and id.isalnum() and id.isascii() else None
        # The same work for keys that are not there: the time tells nothing.
        is_right = hmac.compare_digest(_digest(secret), _NOBODY if row is None else row.digest)
        if row is None or not is_right:
            raise _unknown("the API key is not known; ask an administrator for a new one")
        body = _living(row)
        self._spend(id)
        return Caller(id, row.tenant, frozenset(body.roles), body.subscriber)

    async def check(self, id: str) -> None:
        """Raise Problem 401 if a key that was let in has been removed or has expired since; a check costs no request."""
        row = await self._row(id)
        if row is None:
            raise removed_key()
        _living(row)

    async def _row(self, id: str) -> KeyRow | None:
        now = time.monotonic()
        known = self._known.get(id)
        if known is not None and now - known[0] < _TRUSTED_S:
            return known[1]
        row = await self._broker.beside(self._broker.store.key, id)
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[id] = now, row
        return row

    def forget(self, id: str) -> None:
        """A key was removed: it ends now, not in a while."""
        self._known.pop(id, None)
        self.on_removal(id)

    def _spend(self, id: str) -> None:
        most, now = self._broker.limits.requests_per_s, time.monotonic()
        left, then = self._allowance.get(id, (float(most), now))
        left = min(float(most), left + (now - then) * most)
        if left < 1.0:
            raise Problem(429, "too_many_requests", f"this key may send {most} requests in a second; wait", retry_after=1)
        self._allowance[id] = left - 1.0, now


def _living(row: KeyRow) -> _KeyBody:
    body = _decode(row.body)
    if body.expires is not None and body.expires.timestamp() <= time.time():
        raise _unknown("the API key has expired; ask an administrator for a new one")
    return body


def removed_key() -> Problem:
    """For those who came in with a key that is no more."""
    return _unknown("the API key has been removed; ask an administrator for a new one")


def _unknown(message: str) -> Problem:
    return Problem(401, "unauthenticated", message)
