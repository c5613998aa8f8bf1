"""Signatures of webhook requests after the Standard Webhooks specification: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence

from nearcast.errors import NearcastError

SECRET_PREFIX = "whsec_"
ID_HEADER = "webhook-id"
TIME_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
# The bounds of the specification, in bytes of the key.
_MIN_KEY, _MAX_KEY = 24, 64
_VERSION = "v1"


class SignatureError(NearcastError):
    """A webhook request was not signed with the secret, or too long ago."""


def make_secret() -> str:
    """A new secret: 32 random bytes, spelled whsec_<base64>."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(secret: str) -> str:
    """The secret itself; raises if it is not of the form."""
    _key_of(secret)
    return secret


def sign(secrets_in_use: Sequence[str], id: str, time_s: int, body: bytes) -> dict[str, str]:
    """The three headers. Several secrets (while one replaces the other) give several signatures, any of which counts."""
    signatures = " ".join(f"{_VERSION},{_signature(_key_of(secret), id, time_s, body)}" for secret in secrets_in_use)
    return {ID_HEADER: id, TIME_HEADER: str(time_s), SIGNATURE_HEADER: signatures}


def verify(secret: str, headers: Mapping[str, str], body: bytes, now_s: float, tolerance_s: float = 300.0) -> None:
    """Raise SignatureError unless `body` was signed with `secret` within `tolerance_s` of `now_s`."""
    given = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in (ID_HEADER, TIME_HEADER, SIGNATURE_HEADER) if name not in given]
    if missing:
        raise SignatureError(f"the request lacks the headers {', '.join(missing)}; it was not sent by a signed webhook")
    stated = given[TIME_HEADER]
    if not stated.isascii() or not stated.isdigit() or abs(int(stated) - now_s) > tolerance_s:
        raise SignatureError(
            f"{TIME_HEADER} is {stated!r}, more than {tolerance_s:g} s from now ({now_s:.0f}); an old request sent again, or a "
            "clock that is wrong"
        )
    expected = _signature(_key_of(secret), given[ID_HEADER], int(stated), body).encode()
    # Every signature is compared, each in constant time.
    matches = [
        hmac.compare_digest(signature.encode(), expected)
        for version, _, signature in (one.partition(",") for one in given[SIGNATURE_HEADER].split())
        if version == _VERSION
    ]
    if not any(matches):
        raise SignatureError(f"none of the signatures in {SIGNATURE_HEADER} is of this secret; check that both sides have it")


def _signature(key: bytes, id: str, time_s: int, body: bytes) -> str:
    return base64.b64encode(hmac.digest(key, f"{id}.{time_s}.".encode() + body, hashlib.sha256)).decode()


def _key_of(secret: str) -> bytes:
    # The secret itself is never shown in an error.
    try:
        if not secret.startswith(SECRET_PREFIX):
            raise ValueError
        key = base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except (ValueError, binascii.Error):
        raise NearcastError(f"a webhook secret is {SECRET_PREFIX} and base64; leave it out to have one made") from None
    if not _MIN_KEY <= len(key) <= _MAX_KEY:
        raise NearcastError(
            f"the webhook secret has {len(key)} bytes; expected {_MIN_KEY} to {_MAX_KEY}; leave it out to have one made"
        )
    return key
