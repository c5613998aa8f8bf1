"""Subscribers who report only when they leave their safe region, and are asked where they are when that matters."""

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
    """Promises safe regions, asks `positions` for the regions of who is concerned by a message, and counts what is sent."""

    def __init__(self, positions: Positions | None, kind: bool | str) -> None:
        if positions is None:
            raise NearcastError("safe_region=True needs positions=: a function that takes ids and gives {id: region}")
        self._positions = positions
        if kind not in _KINDS:
            raise NearcastError(f"safe_region={kind!r} is not known; expected False, True or 'cells'")
        self._safe = _KINDS[kind]()
        self.traffic = Traffic()

    def regions(self, state: MovingState, numbers: NDArray[np.int32]) -> dict[Id, Region]:
        """Promise safe regions; who is no more has none."""
        known = numbers[state.subscriptions.clauses.spans(numbers)[1] > 0]
        promised = self._safe.promise(state, known)
        self.traffic.safe_regions += len(promised)
        return dict(zip(state.subscriptions.ids.take(known).to_pylist(), promised.values(), strict=True))

    def forget(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """Subscribers are new, or no more."""
        self._safe.cancel(state, numbers)

    def heard_of(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """Subscribers have reported where they are."""
        self.traffic.reports += len(numbers)
        self._safe.cancel(state, numbers)

    def contact(self, state: MovingState, batch: MessageBatch) -> Changes | None:
        """Ask everyone whom these messages may concern; what changes by their answers (nothing, if they kept their regions)."""
        numbers = self._safe.concerned(state, batch)
        if len(numbers) == 0:
            return None
        ids = state.subscriptions.ids.take(numbers).to_pylist()
        self.traffic.contacts += len(ids)
        self._safe.cancel(state, numbers)
        answers = read_moves(self._positions(ids), state.subscriptions)
        # Copied: what follows may search the index again.
        return joined([move(state, answers)])
