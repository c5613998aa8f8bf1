"""`moving_scan`: the index without a structure. Copy it to begin a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.kernels.scan import match_messages
from nearcast.moving.index import Boxes, MovingIndex
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.moving_scan.kernels import find_messages


class MovingScan(MovingIndex):
    """Tests every clause against every message: always right, never fast."""

    name = "moving_scan"
    paper = "baseline"
    summary = "no structure: every clause is tested against every live message"

    searches_any_box = True

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """Nothing to build: the stores are the structure."""

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """Nothing to file."""

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """Nothing to remove: dead clauses are skipped."""

    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(batch.n_keywords, len(batch))
        layout = clauses.layout()
        return run_until_it_fits(
            len(batch), lambda first, n_out, output: match_messages(layout, batch.arrays, stamp, mark, first, n_out, output)
        )

    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """Nothing to file."""

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live = clauses.layout(), messages.layout()
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: find_messages(layout, live, slots, tuple(excluded), first, n_out, output),
            is_by_clause=True,
        )

    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """Nothing to drop."""

    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        return [f"scan: clause {slot} is tested like all {clauses.n} of them"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to restore."""
