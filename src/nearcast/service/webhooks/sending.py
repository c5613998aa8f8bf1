"""One signed request of a webhook, and what came of it. Redirects are not followed: the receiver is who was registered."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpcore

from nearcast.service.webhooks.addresses import AddressRefused, AddressRules, CheckedNetwork
from nearcast.service.webhooks.retrying import read_retry_after
from nearcast.wire.signatures import sign

# Read and forgotten, so that the connection can be used again; a longer answer costs the connection.
_MAX_ANSWER_BYTES = 65_536
GONE = 410


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one request: a status, or the reason why there was none."""

    status: int | None
    reason: str
    retry_after_s: float | None = None

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """The receiver says that it is gone for good (410)."""
        return self.status == GONE


class Sender:
    """Connections to receivers; `send` never raises for what the other side does."""

    def __init__(self, rules: AddressRules, timeout_s: float = 15.0, max_connections: int = 64) -> None:
        self._rules = rules
        self._timeout_s = timeout_s
        # Whoever waits for a connection waits here, and not while its receiver's time runs.
        self._free = asyncio.Semaphore(max_connections)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=max_connections,
            keepalive_expiry=30.0,
            network_backend=CheckedNetwork(rules),
        )

    async def send(self, url: str, secrets: Sequence[str], id: str, body: bytes, content_type: str) -> Outcome:
        """Post `body`, signed now; the same `id` again at every retry."""
        try:
            self._rules.check_url(url)
            async with self._free, asyncio.timeout(self._timeout_s):
                signature = sign(secrets, id, int(time.time()), body)
                headers = {"content-type": content_type, "user-agent": "nearcast-webhooks", **signature}
                return await self._post(url, headers, body)
        except TimeoutError:
            return Outcome(None, f"no answer within {self._timeout_s:g} s")
        except AddressRefused as refused:
            return Outcome(None, str(refused))
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            return Outcome(None, f"{type(error).__name__}: {error}"[:300])

    async def close(self) -> None:
        await self._pool.aclose()

    async def _post(self, url: str, headers: dict[str, str], body: bytes) -> Outcome:
        async with self._pool.stream("POST", url, headers=list(headers.items()), content=body) as answer:
            n_read = 0
            async for piece in answer.aiter_stream():
                n_read += len(piece)
                if n_read > _MAX_ANSWER_BYTES:
                    break
            fields = {name.lower(): value for name, value in answer.headers}
            retry_after = fields.get(b"retry-after")
            waits_s = read_retry_after(retry_after.decode("latin-1"), time.time()) if retry_after is not None else None
            return Outcome(answer.status, _reason(answer.status, fields.get(b"location")), waits_s)


def _reason(status: int, location: bytes | None) -> str:
    if 300 <= status < 400:
        target = "" if location is None else f" to {location.decode('latin-1')[:200]!r}"
        return f"answered {status}, a redirect{target}; redirects are not followed, register the new URL"
    return f"answered {status}"
