"""Route messages to shards, or take every shard to every message: whichever was faster in the batches so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nearcast.pipeline.index.version import IndexVersion

Mode = Literal["route", "everywhere"]
MODES: tuple[Mode, ...] = ("everywhere", "route")
# The first batch of a mode starts processes and loads kernels; it says nothing about the later ones.
_COLD_TRIES = 1
_TRIES = 3
_TRY_AGAIN_AFTER = 200


@dataclass(slots=True)
class _Seen:
    tries: int = 0
    seconds_per_message: float = 0.0
    last_batch: int = 0


@dataclass(slots=True)
class SpreadChooser:
    """Tries both modes on the first batches, stays with the faster, and looks at the other again from time to time.

    The deliveries are the same in both modes, so that a replay may choose differently.
    """

    setting: str
    everywhere_bytes: int
    _seen: dict[Mode, _Seen] = field(default_factory=lambda: {mode: _Seen() for mode in MODES})
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
            if self._seen[mode].tries < _TRIES:
                return mode
        better = min(MODES, key=lambda mode: self._seen[mode].seconds_per_message)
        other = next(mode for mode in MODES if mode != better)
        return other if self._batches - self._seen[other].last_batch >= _TRY_AGAIN_AFTER else better

    def record(self, mode: Mode, n_messages: int, seconds: float) -> None:
        """Learn from a batch."""
        self._batches += 1
        seen = self._seen[mode]
        seen.last_batch = self._batches
        if n_messages == 0:
            return
        seen.tries += 1
        per_message = seconds / n_messages
        if seen.tries <= _COLD_TRIES + 1:
            seen.seconds_per_message = per_message
        else:
            seen.seconds_per_message += 0.5 * (per_message - seen.seconds_per_message)
