"""What both clients share on the way to the server: addresses, headers, when a request is sent again."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from nearcast.client.calls import Call
from nearcast.client.errors import ApiError, ServerUnreachable
from nearcast.errors import NearcastError

# Answers that say: later.
_LATER = (429, 503)
_LONGEST_WAIT_S = 30.0
TIMEOUT_S = 60.0
MAX_FRAME_BYTES = 64 * 1024 * 1024


class Server:
    """Where the server is, and who asks."""

    def __init__(self, url: str, key: str | None, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise NearcastError(f"the server's URL is {url!r}; expected http://host:port or https://host")
        self.url = url.rstrip("/")
        self.headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._retries = retries

    def live_url(self, after: str | None, subscriptions: Sequence[str] | None, subscriber: str | None) -> str:
        given = {
            "after": after,
            "subscriptions": None if subscriptions is None else ",".join(subscriptions),
            "subscriber": subscriber,
        }
        query = urlencode({name: value for name, value in given.items() if value is not None})
        return f"ws{self.url.removeprefix('http')}/v1/live" + (f"?{query}" if query else "")

    def wait_s(self, call: Call[Any], n_tried: int, error: ApiError | ServerUnreachable) -> float:
        """Seconds until the request is sent again; raises the error if it is not."""
        is_later = isinstance(error, ApiError) and error.status in _LATER
        # "Later" means that nothing was done; without an answer, nobody knows.
        is_safe = is_later or (isinstance(error, ServerUnreachable) and call.is_repeatable)
        if not is_safe or n_tried > self._retries:
            raise error
        asked = error.retry_after_s if isinstance(error, ApiError) else None
        return min(_LONGEST_WAIT_S, asked if asked is not None else 0.2 * 2.0**n_tried) * random.uniform(0.8, 1.2)


def new_idempotency_key() -> str:
    """So that a message whose answer was lost is not published twice when it is sent again."""
    return uuid.uuid4().hex


def unreachable(url: str, error: Exception) -> ServerUnreachable:
    said = str(error) or type(error).__name__
    return ServerUnreachable(f"no answer from {url}: {said}; check the URL and that the server runs (nearcast serve)")
