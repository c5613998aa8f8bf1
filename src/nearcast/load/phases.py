"""The parts of a load run: file subscriptions, publish in bulk, publish one by one, fan out to live connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from nearcast.errors import NearcastError
from nearcast.load.http_connection import Connection, Target
from nearcast.load.listeners import Tally, open_listeners
from nearcast.load.results import Figures
from nearcast.wire.api import BulkResult, SubscriptionIn

Progress = Callable[[int], None]
NDJSON = "application/x-ndjson"
JSON = "application/json"
LIVE_WORD = "load-live"
_LATER = (429, 503)
_BULK = msgspec.json.Decoder(BulkResult)
# How long after the last acknowledgement the listeners may take.
_LIVE_PATIENCE_S = 60.0


@dataclass(slots=True)
class Posting:
    """What several connections have done together."""

    n: int = 0
    n_later: int = 0
    latencies: list[float] = field(default_factory=list)


async def post_all(target: Target, requests: Iterable[tuple[int, bytes]], n_connections: int, progress: Progress) -> Posting:
    """Send every request once (n, bytes), over several connections; put-off ones again when the server asks for them."""
    done, rest = Posting(), iter(requests)

    async def work() -> None:
        connection = await Connection.open(target)
        try:
            for n, request in rest:
                await _post_one(connection, n, request, done)
                progress(n)
        finally:
            await connection.close()

    await asyncio.gather(*(work() for _ in range(n_connections)))
    return done


async def _post_one(connection: Connection, n: int, request: bytes, done: Posting) -> None:
    while True:
        start = time.perf_counter()
        answer = await connection.post(request)
        if 200 <= answer.status < 300:
            done.latencies.append(time.perf_counter() - start)
            done.n += n
            return
        if answer.status not in _LATER:
            raise NearcastError(f"the server answered {answer.status}: {answer.body[:300].decode(errors='replace')}")
        done.n_later += 1
        await asyncio.sleep(answer.retry_after_s)


async def file_subscriptions(target: Target, pieces: Iterator[tuple[int, bytes]], progress: Progress) -> Figures:
    """The time is that of the requests; encoding goes on between them and is not counted."""
    n, seconds, connection = 0, 0.0, await Connection.open(target)
    for size, body in pieces:
        request = target.request("/v1/subscriptions/bulk", body, NDJSON)
        start = time.perf_counter()
        answer = await connection.post(request)
        seconds += time.perf_counter() - start
        result = _BULK.decode(answer.body) if answer.status == 200 else None
        if result is None or result.rejected:
            raise NearcastError(f"subscriptions were not kept ({answer.status}): {answer.body[:300].decode(errors='replace')}")
        n += size
        progress(size)
    await connection.close()
    return Figures("subscriptions filed", n, seconds, [])


async def publish_bulk(
    target: Target, bodies: Sequence[bytes], sizes: Sequence[int], n_connections: int, progress: Progress
) -> Figures:
    requests = [(n, target.request("/v1/messages/bulk", body, NDJSON)) for n, body in zip(sizes, bodies, strict=True)]
    start = time.perf_counter()
    done = await post_all(target, requests, n_connections, progress)
    seconds = time.perf_counter() - start
    return Figures("bulk messages kept", done.n, seconds, done.latencies, done.n_later, f"{n_connections} connections")


async def publish_singly(target: Target, bodies: Sequence[bytes], n_connections: int, progress: Progress) -> Figures:
    requests = [(1, target.request("/v1/messages", body, JSON)) for body in bodies]
    start = time.perf_counter()
    done = await post_all(target, requests, n_connections, progress)
    seconds = time.perf_counter() - start
    return Figures("single messages kept", done.n, seconds, done.latencies, done.n_later, f"{n_connections} connections")


async def fan_out(
    target: Target, n_listeners: int, bodies: Sequence[bytes], sizes: Sequence[int], progress: Progress
) -> Figures:
    """Live connections, each with a subscription of its own that every message reaches; what they get, and what was due."""
    ids = [f"load-live-{number}" for number in range(n_listeners)]
    lines = msgspec.json.Encoder().encode_lines([SubscriptionIn(id=id, keywords=[LIVE_WORD]) for id in ids])
    await file_subscriptions(target, iter([(n_listeners, lines)]), lambda n: None)
    tally = Tally(due=n_listeners * sum(sizes))
    listeners = await open_listeners(target, [f"/v1/live?subscriptions={id}" for id in ids], tally)
    try:
        requests = [(n, target.request("/v1/messages/bulk", body, NDJSON)) for n, body in zip(sizes, bodies, strict=True)]
        start = time.perf_counter()
        done = await post_all(target, requests, 2, progress)
        try:
            async with asyncio.timeout(_LIVE_PATIENCE_S):
                await tally.reached.wait()
        except TimeoutError:
            pass
    finally:
        for listener in listeners:
            listener.close()
    remark = f"{n_listeners:,} connections, {tally.n_events / max(1, tally.n_frames):.1f} events a frame"
    if tally.n_events != tally.due:
        remark += f"; {tally.due:,} WERE DUE"
    if tally.closed:
        remark += f"; {len(tally.closed)} closed: {tally.closed[0]}"
    return Figures("live deliveries received", tally.n_events, tally.last_s - start, [], done.n_later, remark)
