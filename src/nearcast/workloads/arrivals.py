"""When messages arrive: a Poisson stream over months with a daily rhythm, the time of any message from its number alone.

Numbers are grouped in blocks that share the stream evenly; inside a block the arrivals are those of a Poisson process with
that many arrivals (normalised exponential gaps). So times grow with the number and no earlier message has to be made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.workloads.randomness import UNIT, draws, stream_key

DAY_S = 86_400.0
BLOCK = 256
# 2012-05-01 to 2012-08-31: the months in which the papers' tweets were collected.
MAY_2012 = 1_335_830_400.0
MONTHS_S = 123 * DAY_S


@dataclass(frozen=True)
class Arrivals:
    """`n` arrivals within `length_s` from `start_s`; the rate swings by `rhythm` around its mean, highest at `peak_hour`."""

    n: int
    seed: int
    start_s: float = MAY_2012
    length_s: float = MONTHS_S
    rhythm: float = 0.7
    peak_hour: float = 20.0

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """The arrival time of each number, in seconds since 1970."""
        blocks, row = np.unique(numbers // BLOCK, return_inverse=True)
        shares = np.empty(numbers.size)
        order = np.argsort(row, kind="stable")
        # Whole blocks are made for a slice of them at a time, so scattered numbers do not need much memory.
        edges = np.searchsorted(row[order], np.arange(0, blocks.size + 1024, 1024))
        for piece in range(edges.size - 1):
            mine = order[edges[piece] : edges[piece + 1]]
            within = self._block_shares(blocks[piece * 1024 : (piece + 1) * 1024])
            shares[mine] = within[row[mine] - piece * 1024, numbers[mine] % BLOCK]
        position = (numbers // BLOCK + shares) * (BLOCK / max(self.n, BLOCK))
        return self.start_s + self._clock(position * self.length_s)

    def _block_shares(self, blocks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Where in its block each arrival falls: (blocks, BLOCK) growing values in (0, 1)."""
        slots = blocks[:, None] * (BLOCK + 1) + np.arange(BLOCK + 1)
        gaps = -np.log((draws(stream_key(self.seed, "arrivals"), slots) + 1) * UNIT) + 1e-12
        reached = np.cumsum(gaps, axis=1)
        shares: NDArray[np.float64] = reached[:, :BLOCK] / reached[:, BLOCK:]
        return shares

    def _clock(self, even_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn evenly flowing seconds into clock seconds that follow the daily rhythm."""
        clock = np.linspace(0.0, DAY_S, 1441)
        phase = 2 * np.pi * (clock / DAY_S - self.peak_hour / 24)
        flow = clock + self.rhythm * DAY_S / (2 * np.pi) * (np.sin(phase) - np.sin(phase[0]))
        day, rest = np.divmod(even_s, DAY_S)
        seconds: NDArray[np.float64] = day * DAY_S + np.interp(rest, flow, clock)
        return seconds
