"""A live connection of the load generator is open when the server has said where its stream begins, not before."""

from __future__ import annotations

import asyncio

import pytest

from nearcast.errors import NearcastError
from nearcast.load.listeners import Listener, Tally
from nearcast.load.requests import Target

UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"


def frame(text: bytes) -> bytes:
    return bytes([0x81, len(text)]) + text


def listener(tally: Tally) -> Listener:
    return Listener(Target("localhost", 1, "key"), "/v1/live", tally)


def test_a_stream_is_open_from_its_first_frame_on() -> None:
    async def run() -> None:
        tally = Tally(due=1)
        one = listener(tally)
        one.data_received(UPGRADED)
        assert not one.is_open.done()
        first = frame(b'{"cursor": "17", "events": []}')
        one.data_received(first[:9])
        assert not one.is_open.done()
        one.data_received(first[9:])
        assert one.is_open.done()
        assert (tally.n_open, tally.n_events) == (1, 0)
        one.data_received(frame(b'{"specversion":"1.0"}'))
        assert tally.n_events == 1
        one.connection_lost(None)
        assert tally.n_open == 0

    asyncio.run(run())


@pytest.mark.parametrize("answer", [b"HTTP/1.1 403 Forbidden\r\n\r\n", UPGRADED])
def test_a_stream_that_never_begins_was_never_open(answer: bytes) -> None:
    async def run() -> None:
        tally = Tally()
        one = listener(tally)
        one.data_received(answer)
        one.connection_lost(None)
        with pytest.raises(NearcastError):
            await one.is_open
        assert tally.n_open == 0

    asyncio.run(run())
