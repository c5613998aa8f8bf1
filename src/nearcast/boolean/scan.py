"""`scan`: the smallest index, always right; a model for new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.kernels.scan import match_messages


class Scan(BooleanIndex):
    """Tests every clause: always right, never fast."""

    name = "scan"
    paper = "baseline"
    summary = "no structure: every clause is tested against every message"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """Nothing to build: the clause store is the structure."""

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Nothing to file."""

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Nothing to unfile: dead clauses are skipped."""

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        layout = clauses.layout()
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(layout, messages.arrays, stamp, mark, first, n_out, output),
        )

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return [f"scan: clause {slot} is tested like all {clauses.n} of them"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to take over."""
