"""Frames as server-sent events: one per event, with the cursor as `id` on the last of a frame.

A client that loses the connection inside a frame still has the id of the frame before, and gets the whole frame again.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from nearcast.service.caller import Caller
from nearcast.service.problems import Problem
from nearcast.service.push.live_request import LiveRequest, LiveStreams
from nearcast.service.push.stream_reader import Frame

# How long a browser waits before it comes back.
_RETRY = b"retry: 2000\n\n"


async def event_stream(streams: LiveStreams, caller: Caller, request: LiveRequest) -> AsyncIterator[bytes]:
    """The body of the answer, one piece for each frame."""
    async with streams.open(caller, request) as (reader, _), contextlib.aclosing(reader.frames()) as frames:
        yield _RETRY
        # The answer is under way, so a key that has ended can only end it: the client comes back, and is told then.
        with contextlib.suppress(Problem):
            async for frame in frames:
                yield as_lines(frame)
                streams.broker.metrics.count_frame(len(frame.events))


def as_lines(frame: Frame) -> bytes:
    """Without events only the id: it moves the client's cursor and shows it nothing."""
    if not frame.events:
        return b"id: %d\n\n" % frame.cursor
    return b"data: " + b"\n\ndata: ".join(map(in_one_line, frame.events)) + b"\nid: %d\n\n" % frame.cursor


def in_one_line(event: bytes) -> bytes:
    """JSON has line breaks only between its parts, where a space says the same; to a stream they are the end of a field."""
    return event.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in event or b"\r" in event else event
