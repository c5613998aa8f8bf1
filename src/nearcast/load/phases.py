"""The phases of a load run (subscribe, publish in bulk, publish one by one, fan out to live connections) and their results."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from nearcast.errors import NearcastError
from nearcast.load.listeners import Tally, open_listeners
from nearcast.load.requests import Connection, Target
from nearcast.wire.api import BulkResult, SubscriptionIn


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """The measurements of one phase. Times are in seconds; latencies are those of accepted requests."""

    name: str
    n: int
    seconds: float
    latencies: Sequence[float]
    n_deferred: int = 0
    """Requests that the server deferred (429, 503). They were sent again and are counted when they were accepted."""
    remark: str = ""

    @property
    def per_s(self) -> float:
        return self.n / self.seconds if self.seconds > 0 else 0.0

    def cells(self) -> tuple[str, ...]:
        numbers = (f"{self.n:,}", f"{self.seconds:,.2f}", f"{self.per_s:,.0f}")
        latencies = (
            [f"{1000 * percentile(self.latencies, share):,.1f}" for share in _PERCENTILES] if self.latencies else ["-"] * 4
        )
        return (self.name, *numbers, *latencies, f"{self.n_deferred:,}", self.remark)


_PERCENTILES = (0.5, 0.95, 0.99, 1.0)
HEADER = ("phase", "number", "seconds", "per second", "p50 ms", "p95 ms", "p99 ms", "max ms", "deferred", "remark")


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


Progress = Callable[[int], None]
NDJSON = "application/x-ndjson"
JSON = "application/json"
LIVE_WORD = "load-live"
_DEFERRED_STATUS = (429, 503)
_BULK = msgspec.json.Decoder(BulkResult)
# The longest time listeners may take after the last acknowledgement.
_LIVE_TIMEOUT_S = 60.0


@dataclass(slots=True)
class PostTotals:
    """The counts of several connections together."""

    n: int = 0
    n_deferred: int = 0
    latencies: list[float] = field(default_factory=list)


async def post_all(target: Target, requests: Iterable[tuple[int, bytes]], n_connections: int, progress: Progress) -> PostTotals:
    """Send every request (n, bytes) over several connections. Deferred ones are sent again when the server allows it."""
    totals, rest = PostTotals(), iter(requests)

    async def send() -> None:
        connection = await Connection.open(target)
        try:
            for n, request in rest:
                await _post_one(connection, n, request, totals)
                progress(n)
        finally:
            await connection.close()

    await asyncio.gather(*(send() for _ in range(n_connections)))
    return totals


async def _post_one(connection: Connection, n: int, request: bytes, totals: PostTotals) -> None:
    while True:
        start = time.perf_counter()
        answer = await connection.post(request)
        if 200 <= answer.status < 300:
            totals.latencies.append(time.perf_counter() - start)
            totals.n += n
            return
        if answer.status not in _DEFERRED_STATUS:
            raise NearcastError(f"the server answered {answer.status}: {answer.body[:300].decode(errors='replace')}")
        totals.n_deferred += 1
        await asyncio.sleep(answer.retry_after_s)


async def file_subscriptions(target: Target, chunks: Iterator[tuple[int, bytes]], progress: Progress) -> PhaseResult:
    """Make the subscriptions. The time is that of the requests, without the encoding between them."""
    n, seconds, connection = 0, 0.0, await Connection.open(target)
    for size, body in chunks:
        request = target.request("/v1/subscriptions/bulk", body, NDJSON)
        start = time.perf_counter()
        answer = await connection.post(request)
        seconds += time.perf_counter() - start
        result = _BULK.decode(answer.body) if answer.status == 200 else None
        if result is None or result.rejected:
            raise NearcastError(
                f"subscriptions were not accepted ({answer.status}): {answer.body[:300].decode(errors='replace')}"
            )
        n += size
        progress(size)
    await connection.close()
    return PhaseResult("subscriptions", n, seconds, [])


async def publish_bulk(
    target: Target, bodies: Sequence[bytes], sizes: Sequence[int], n_connections: int, progress: Progress
) -> PhaseResult:
    requests = [(n, target.request("/v1/messages/bulk", body, NDJSON)) for n, body in zip(sizes, bodies, strict=True)]
    start = time.perf_counter()
    totals = await post_all(target, requests, n_connections, progress)
    seconds = time.perf_counter() - start
    return PhaseResult("bulk messages", totals.n, seconds, totals.latencies, totals.n_deferred, f"{n_connections} connections")


async def publish_singly(target: Target, bodies: Sequence[bytes], n_connections: int, progress: Progress) -> PhaseResult:
    requests = [(1, target.request("/v1/messages", body, JSON)) for body in bodies]
    start = time.perf_counter()
    totals = await post_all(target, requests, n_connections, progress)
    seconds = time.perf_counter() - start
    return PhaseResult(
        "single messages", totals.n, seconds, totals.latencies, totals.n_deferred, f"{n_connections} connections"
    )


async def fan_out(
    target: Target, n_listeners: int, bodies: Sequence[bytes], sizes: Sequence[int], progress: Progress
) -> PhaseResult:
    """Open live connections, each with a subscription that every message matches; count and compare the events."""
    ids = [f"load-live-{number}" for number in range(n_listeners)]
    lines = msgspec.json.Encoder().encode_lines([SubscriptionIn(id=id, keywords=[LIVE_WORD]) for id in ids])
    await file_subscriptions(target, iter([(n_listeners, lines)]), lambda n: None)
    tally = Tally(due=n_listeners * sum(sizes))
    listeners = await open_listeners(target, [f"/v1/live?subscriptions={id}" for id in ids], tally)
    try:
        requests = [(n, target.request("/v1/messages/bulk", body, NDJSON)) for n, body in zip(sizes, bodies, strict=True)]
        start = time.perf_counter()
        totals = await post_all(target, requests, 2, progress)
        try:
            async with asyncio.timeout(_LIVE_TIMEOUT_S):
                await tally.reached.wait()
        except TimeoutError:
            pass
    finally:
        for listener in listeners:
            listener.close()
    remark = f"{n_listeners:,} connections, {tally.n_events / max(1, tally.n_frames):.1f} events a frame"
    if tally.n_events != tally.due:
        remark += f"; {tally.due:,} WERE EXPECTED"
    if tally.closed:
        remark += f"; {len(tally.closed)} closed: {tally.closed[0]}"
    return PhaseResult("live deliveries received", tally.n_events, tally.last_s - start, [], totals.n_deferred, remark)
