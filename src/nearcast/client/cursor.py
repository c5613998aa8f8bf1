"""Where a live client stands, and when it comes back: no event lost, none given twice. Knows no socket."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import msgspec

from nearcast.client.errors import ApiError
from nearcast.wire.api import Event, LiveFrame

_OWN_CODES = 4000
# Problems that time may solve; every other refusal is final.
_PASSING = (429, 503)


_FRAME = msgspec.json.Decoder(LiveFrame)


@dataclass(slots=True)
class Resume:
    """`cursor`: everything up to it was given. None until the server has said where the stream begins."""

    cursor: str | None = None
    given: set[str] = field(default_factory=set)
    """Events given after the cursor: pieces of one frame, which would come again after a break."""
    n_failures: int = 0

    def fresh_events(self, text: str | bytes) -> tuple[list[Event], str]:
        """The events of a frame that were not given yet, and the cursor to `settle` on once they are."""
        frame = _FRAME.decode(text)
        self.n_failures = 0
        fresh = [event for event in frame.events if event.id not in self.given]
        if frame.cursor == self.cursor:
            self.given.update(event.id for event in fresh)
        return fresh, frame.cursor

    def settle(self, cursor: str) -> None:
        """The events of a frame were given to the user."""
        if cursor != self.cursor:
            self.cursor = cursor
            self.given.clear()

    def wait_s(self) -> float:
        """How long to wait before the next attempt to connect: longer each time, at most ten seconds."""
        self.n_failures += 1
        return min(10.0, 0.1 * 2.0 ** min(self.n_failures, 10)) * random.uniform(0.5, 1.0)


def refusal(code: int | None, reason: str | None) -> ApiError | None:
    """What a close code says, if coming back would not help."""
    status = (code or 0) - _OWN_CODES
    if not 400 <= status < 600 or status in _PASSING:
        return None
    return ApiError(status, "refused", reason or f"the server closed the stream with {code}")
