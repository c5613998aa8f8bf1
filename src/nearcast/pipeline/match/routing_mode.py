"""Choose per batch: route messages to shards, or map every shard on every host; the faster one so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nearcast.pipeline.index.version import IndexVersion

Mode = Literal["route", "everywhere"]
MODES: tuple[Mode, ...] = ("everywhere", "route")
# The first batch of a mode starts processes and loads kernels: its time says nothing about later ones.
_COLD_TRIES = 1
_TRIES = 3
_TRY_AGAIN_AFTER = 200


@dataclass(slots=True)
class _ModeTimes:
    tries: int = 0
    seconds_per_message: float = 0.0
    last_batch: int = 0


@dataclass(slots=True)
class RoutingModeChooser:
    """Tries both modes on the first batches, stays with the faster one, and tries the other again from time to time.

    The deliveries are the same in both modes, so a replay may use the other one.
    """

    setting: str
    everywhere_bytes: int
    _times: dict[Mode, _ModeTimes] = field(default_factory=lambda: {mode: _ModeTimes() for mode in MODES})
    _batches: int = 0

    def choose(self, version: IndexVersion) -> Mode:
        """The mode of the next batch."""
        if version.n_shards == 1:
            return "everywhere"
        if self.setting in MODES:
            return "route" if self.setting == "route" else "everywhere"
        if version.n_bytes > self.everywhere_bytes:
            return "route"
        for mode in MODES:
            if self._times[mode].tries < _TRIES:
                return mode
        faster = min(MODES, key=lambda mode: self._times[mode].seconds_per_message)
        slower = next(mode for mode in MODES if mode != faster)
        return slower if self._batches - self._times[slower].last_batch >= _TRY_AGAIN_AFTER else faster

    def record(self, mode: Mode, n_messages: int, seconds: float) -> None:
        """Record the time of a batch."""
        self._batches += 1
        times = self._times[mode]
        times.last_batch = self._batches
        if n_messages == 0:
            return
        times.tries += 1
        per_message = seconds / n_messages
        if times.tries <= _COLD_TRIES + 1:
            times.seconds_per_message = per_message
        else:
            times.seconds_per_message += 0.5 * (per_message - times.seconds_per_message)
