"""Live streams by themselves: how frames become bytes, who may have how many, and when they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nearcast.service.auth.keys import Gate, make_key
from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.limits import read_limits
from nearcast.service.problems import Problem
from nearcast.service.push.live_request import LiveRequest, LiveStreams
from nearcast.service.push.sse import as_lines, event_stream
from nearcast.service.push.stream_reader import Frame, Pace
from nearcast.storage.batch import Batch
from nearcast.storage.store import open_store
from nearcast.wire.api import KeyIn


def test_an_event_is_one_line_of_a_stream_whatever_was_posted() -> None:
    sent = as_lines(Frame([b'{"a":\r\n 1}', b'{"b":\n\n2}', b"3"], 7))
    fields = [line.partition(b": ") for line in sent.split(b"\n") if line]
    assert [name for name, _, _ in fields] == [b"data", b"data", b"data", b"id"]
    assert [json.loads(value) for name, _, value in fields if name == b"data"] == [{"a": 1}, {"b": 2}, 3]


Served = tuple[Gate, LiveStreams, Callable[..., Awaitable[Caller]]]


@asynccontextmanager
async def serving(folder: Path, heartbeat_s: float) -> AsyncIterator[Served]:
    """A gate, its streams, and a function that makes keys and lets their callers in."""
    broker = Broker(open_store(str(folder / "store.db")), None, read_limits())
    await broker.start()
    gate = Gate(broker)
    streams = LiveStreams(broker, Pace(heartbeat_s=heartbeat_s), 3, 2, gate.check)
    gate.on_removal = streams.end_of_key

    async def let_in(expires: datetime | None = None) -> Caller:
        row, shown = make_key("t", KeyIn("ann", ["subscriber"], expires=expires))
        await broker.keep(Batch(keys=[row]))
        assert shown.secret is not None
        return await gate.admit_key(shown.secret)

    try:
        yield gate, streams, let_in
    finally:
        await broker.stop()


async def end_of(streams: LiveStreams, caller: Caller) -> str:
    """What a reader is told at its end."""
    try:
        async with asyncio.timeout(20), streams.open(caller, LiveRequest()) as (reader, _):
            async for _ in reader.frames():
                pass
    except Problem as problem:
        return f"{problem.status}: {problem}"
    return "ended"


def test_a_stream_ends_with_its_key_when_that_is_removed(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, 3600.0) as (gate, streams, let_in):
            ann, other = await let_in(), await let_in()
            frames = event_stream(streams, ann, LiveRequest())
            assert (await anext(frames)).startswith(b"retry")
            assert (await anext(frames)).startswith(b"id")
            waiting, staying = (asyncio.create_task(end_of(streams, caller)) for caller in (ann, other))
            await asyncio.sleep(0.05)
            gate.forget(ann.key_id)
            assert "401: the API key has been removed" in await waiting
            # The body of an answer that has begun just ends.
            assert [piece async for piece in frames] == []
            assert not staying.done()
            gate.forget(other.key_id)
            await staying

    asyncio.run(run())


def test_a_stream_ends_with_a_heartbeat_when_its_key_expired_or_was_removed_elsewhere(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, 0.05) as (_, streams, let_in):
            brief = await let_in(expires=datetime.now(UTC) + timedelta(seconds=1))
            lasting = await let_in()
            ends = [asyncio.create_task(end_of(streams, caller)) for caller in (brief, lasting)]
            assert "401: the API key has expired" in await ends[0]
            assert not ends[1].done()
            # As another process would.
            elsewhere = open_store(streams.broker.store.database.name)
            elsewhere.write(Batch(removed_keys=[lasting.key_id]))
            elsewhere.close()
            assert "401: the API key has been removed" in await ends[1]

    asyncio.run(run())


def test_neither_a_key_nor_all_together_have_more_connections_than_they_may(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, 3600.0) as (_, streams, let_in), contextlib.AsyncExitStack() as opened:
            ann, bob = await let_in(), await let_in()
            for caller in (ann, ann, bob):
                await opened.enter_async_context(streams.open(caller, LiveRequest()))
            with pytest.raises(Problem, match="this server has 3"):
                await opened.enter_async_context(streams.open(bob, LiveRequest()))
            await opened.aclose()
            async with streams.open(ann, LiveRequest()), streams.open(ann, LiveRequest()):
                with pytest.raises(Problem, match="this key has 2") as told:
                    await opened.enter_async_context(streams.open(ann, LiveRequest()))
                assert told.value.status == 429
                await opened.enter_async_context(streams.open(bob, LiveRequest()))

    asyncio.run(run())
