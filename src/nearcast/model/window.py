"""Which messages a ranked engine considers: the last n, or those of the last seconds."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import NearcastError
from nearcast.model.inputs import finite_number, whole_number


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The last `n` messages."""

    n: int

    def __post_init__(self) -> None:
        n = whole_number(self.n)
        if n is None or n < 1:
            raise NearcastError(f"CountWindow was given n={self.n!r}; expected an int >= 1")
        object.__setattr__(self, "n", n)

    def is_alive(self, tick: int, newest_tick: int) -> bool:
        """Whether arrival number `tick` is among the last n once `newest_tick` has arrived."""
        return newest_tick - self.n < tick <= newest_tick


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The messages of the last `seconds`."""

    seconds: float

    def __post_init__(self) -> None:
        seconds = finite_number(self.seconds, "seconds of a TimeWindow", NearcastError)
        if seconds <= 0:
            raise NearcastError(f"TimeWindow was given seconds={self.seconds!r}; expected a number > 0")
        object.__setattr__(self, "seconds", seconds)

    def is_alive(self, time: float, now: float) -> bool:
        """Whether a message of `time` is still in the window at `now`."""
        return time > now - self.seconds
