"""What the tree records about moves of clauses and arrivals of messages, for its cost model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import resized
from nearcast.kernels.layouts import ClauseArrays
from nearcast.moving.index import Boxes
from nearcast.papers.boolean.adaptive_tree.layout import MotionArrays
from nearcast.papers.moving.moving_adaptive_tree.parameters import MovingAdaptiveTreeParameters

_LARGEST = 3.0e38
# After this many moves, arrivals are measured against moves; before, the parameter counts.
_LEAST_COUNTED = 1000


class Motion:
    """The velocity of each clause from its last move; counts of moves and of messages."""

    def __init__(self, parameters: MovingAdaptiveTreeParameters) -> None:
        self._parameters = parameters
        self.is_used = parameters.costs == "moving"
        self._velocity: NDArray[np.float32] = np.empty(0, np.float32)
        # Counts: moves; messages; clauses with a known velocity; whether the tree was built since most are known.
        self._count = np.zeros(4, np.int64)

    def clear(self) -> None:
        """Drop all velocities: the clauses are renumbered."""
        self._velocity = np.empty(0, np.float32)
        self._count[2:] = 0

    def note_messages(self, n: int) -> None:
        self._count[1] += n

    def note_moves(self, clauses: ClauseArrays, slots: NDArray[np.int32], to: Boxes) -> None:
        """Record the velocity of clauses that are about to move."""
        n = len(clauses.x0)
        self._velocity = resized(self._velocity, 5 * n // 2, np.nan, needed=2 * n)
        self._count[0] += len(slots)
        self._count[2] += int(np.isnan(self._velocity[2 * slots]).sum())
        for axis, sides in enumerate(((clauses.x0, to.x0, clauses.x1, to.x1), (clauses.y0, to.y0, clauses.y1, to.y1))):
            old_low, new_low, old_high, new_high = sides
            step = (new_low * 0.5 - old_low[slots] * 0.5) + (new_high * 0.5 - old_high[slots] * 0.5)
            self._velocity[2 * slots + axis] = np.clip(step, -_LARGEST, _LARGEST)

    def needs_rebuild(self, n_filed: int) -> bool:
        """True once: when most velocities are known and were not when the tree was built."""
        needs_rebuild = self.is_used and self._count[3] == 0 and 2 * int(self._count[2]) > n_filed
        self._count[3] |= needs_rebuild
        return bool(needs_rebuild)

    def arrays(self, n_clauses: int) -> MotionArrays:
        """The motion arrays for the cost model when the tree is built for `n_clauses` clauses."""
        options = self._parameters
        n_moves, n_messages = int(self._count[0]), int(self._count[1])
        arrivals = options.arrivals * n_clauses
        if n_moves >= _LEAST_COUNTED:
            arrivals = options.mobility * n_clauses * n_messages / n_moves
        facts = [
            arrivals,
            options.mobility,
            options.update_weight,
            options.rebuild_weight,
            float(options.most_steps),
            options.speed,
        ]
        return MotionArrays(self._velocity, np.array(facts, np.float64))

    def saved(self) -> dict[str, NDArray[Any]]:
        return {"velocity": self._velocity, "count": self._count}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._velocity, self._count = arrays["velocity"], arrays["count"]
