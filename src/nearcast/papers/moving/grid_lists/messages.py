"""The messages' side of a grid index, also beside other structures for the clauses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.frames import frame_of
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import run_until_it_fits
from nearcast.moving.index import Boxes
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.moving.grid_lists.kernels.match import look_for_messages
from nearcast.papers.moving.grid_lists.keyword_grid import GridSide, Postings, Shape, postings_of_messages


class MessageGrid:
    """Each message in the lists of all its keywords; a clause looks into those of its rarest."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._side = GridSide(shape)
        self._n_with: NDArray[np.int64] = np.zeros(1, np.int64)

    def build(self, messages: LiveMessages) -> None:
        """Forget everything and store the living."""
        slots, live = messages.slots(), messages.layout()
        frame = frame_of(live.x0[slots], live.y0[slots], live.x1[slots], live.y1[slots], self._shape.side)
        postings = postings_of_messages(messages, slots)
        self._n_with = np.zeros(1, np.int64)
        self._count(postings)
        self._side.build(postings, frame)

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        postings = postings_of_messages(messages, slots)
        self._count(postings)
        self._side.file(postings)
        if self._side.is_outgrown:
            self.build(messages)

    def _count(self, postings: Postings) -> None:
        count = np.bincount(postings.owner, minlength=len(self._n_with))
        count[: len(self._n_with)] += self._n_with
        self._n_with = count.astype(np.int64)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, lists, n_with = clauses.layout(), messages.layout(), self._side.lists, self._n_with
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: look_for_messages(
                lists, n_with, layout, live, slots, tuple(excluded), first, n_out, output
            ),
            is_by_clause=True,
        )

    def stats(self) -> dict[str, int | float]:
        return self._side.stats("message")

    @property
    def n_bytes(self) -> int:
        return self._side.n_bytes + self._n_with.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"n_with": self._n_with, **self._side.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._n_with = arrays["n_with"]
        self._side.restore(arrays)
