"""The protocol of safe regions: a subscriber reports when it leaves its region, and is asked for its position if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.messages import MessageBatch
from nearcast.errors import NearcastError
from nearcast.model.delivery import Traffic
from nearcast.model.inputs import Id
from nearcast.model.regions import Region
from nearcast.moving.changes import Changes, joined
from nearcast.moving.reading import read_moves
from nearcast.moving.safe_regions.cells import SafeCells
from nearcast.moving.safe_regions.circles import SafeRegions
from nearcast.moving.state import MovingState
from nearcast.moving.updates import move

_KINDS: dict[bool | str, type[SafeRegions]] = {True: SafeRegions, "cells": SafeCells}
Positions = Callable[[list[Id]], Mapping[Id, object]]


class SafeRegionProtocol:
    """Assigns safe regions, asks `positions` for the subscribers that a message may affect, and counts what is sent."""

    def __init__(self, positions: Positions | None, kind: bool | str) -> None:
        if positions is None:
            raise NearcastError("safe_region=True needs positions=: a function that takes ids and returns {id: region}")
        self._positions = positions
        if kind not in _KINDS:
            raise NearcastError(f"safe_region={kind!r} is not known; expected False, True or 'cells'")
        self._safe = _KINDS[kind]()
        self.traffic = Traffic()

    def regions(self, state: MovingState, numbers: NDArray[np.int32]) -> dict[Id, Region]:
        """Assign safe regions. Removed subscriptions are left out."""
        known = numbers[state.subscriptions.clauses.spans(numbers)[1] > 0]
        assigned = self._safe.assign(state, known)
        self.traffic.safe_regions += len(assigned)
        return dict(zip(state.subscriptions.ids.take(known).to_pylist(), assigned.values(), strict=True))

    def cancel(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """Cancel the safe regions of subscriptions that are replaced or removed."""
        self._safe.cancel(state, numbers)

    def on_report(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """Count reports and cancel the safe regions of the subscribers that reported."""
        self.traffic.reports += len(numbers)
        self._safe.cancel(state, numbers)

    def ask_positions(self, state: MovingState, batch: MessageBatch) -> Changes | None:
        """Ask the subscribers that these messages may affect for their positions, and move them there.

        Returns the changes: none if they all stayed in their safe regions; None if nobody was asked.
        """
        numbers = self._safe.affected(state, batch)
        if len(numbers) == 0:
            return None
        ids = state.subscriptions.ids.take(numbers).to_pylist()
        self.traffic.contacts += len(ids)
        self._safe.cancel(state, numbers)
        moves = read_moves(self._positions(ids), state.subscriptions)
        # Copied, because the next search of the index reuses the memory.
        return joined([move(state, moves)])
