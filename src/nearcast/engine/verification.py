"""Matches of an index → deliveries: forbidden keywords, exact shapes, each subscription once per message."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.groups import Matches
from nearcast.engine.kernel_calls import Stamps
from nearcast.kernels.checks import judge_pairs, keep_deliveries
from nearcast.kernels.shapes import NO, UNSURE, YES
from nearcast.model.regions import Box
from nearcast.model.spaces import Space


class Verifier:
    """Settles what a box and keywords cannot say."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._keyword_stamps = Stamps()
        self._owner_stamps = Stamps()

    def deliveries(
        self, matches: Matches, clauses: ClauseStore, shapes: ShapeStore, messages: MessageBatch
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The message and the subscription number of each delivery, grouped by message."""
        checks = clauses.checks()
        if not clauses.has_checks:
            return matches.message, checks.owner[matches.clause]
        verdict = np.empty(len(matches.message), np.uint8)
        stamp, mark = self._keyword_stamps.take(messages.n_keywords, len(messages))
        judge_pairs(
            matches.message,
            matches.clause,
            checks,
            shapes.layout(),
            self._space.is_lonlat,
            messages.arrays,
            stamp,
            mark,
            verdict,
        )
        for pair in np.flatnonzero(verdict == UNSURE).tolist():
            shape = int(checks.shape[checks.check[matches.clause[pair]]])
            verdict[pair] = YES if shapes.meets_exactly(shape, message_box(messages, int(matches.message[pair]))) else NO
        out_message = np.empty(len(verdict), np.int32)
        out_owner = np.empty(len(verdict), np.int32)
        delivered, mark = self._owner_stamps.take(int(checks.owner.max(initial=-1)) + 1, len(messages))
        n = keep_deliveries(matches.message, matches.clause, verdict, checks, delivered, mark, out_message, out_owner)
        return out_message[:n], out_owner[:n]


def message_box(messages: MessageBatch, message: int) -> Box:
    arrays = messages.arrays
    return Box(float(arrays.x0[message]), float(arrays.y0[message]), float(arrays.x1[message]), float(arrays.y1[message]))
