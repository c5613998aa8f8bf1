"""Pairs of an index → deliveries: forbidden keywords, exact shapes, each subscription once per message."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.groups import Groups
from nearcast.engine.kernel_calls import Stamps
from nearcast.kernels.checks import take_verified, verify_groups
from nearcast.kernels.shapes import NO, UNSURE, YES
from nearcast.model.regions import Box
from nearcast.model.spaces import Space


class Verifier:
    """Checks what a box and keywords cannot say."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._keyword_stamps = Stamps()
        self._subscription_stamps = Stamps()

    def deliveries(
        self, groups: Groups, clauses: ClauseStore, shapes: ShapeStore, messages: MessageBatch
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The message and the subscription number of each delivery, in the order of the groups, whose keys are messages."""
        checks = clauses.checks()
        if not clauses.has_checks:
            message, clause = groups.pairs()
            return message, checks.subscription[clause]
        verdict = np.empty(groups.n_pairs, np.uint8)
        stamp, mark = self._keyword_stamps.take(messages.n_keywords, len(messages))
        is_lonlat, layout = self._space.is_lonlat, shapes.layout()
        verify_groups(*groups, checks, layout, is_lonlat, messages.arrays, stamp, mark, verdict)
        unsure = np.flatnonzero(verdict == UNSURE)
        if len(unsure):
            message, clause = (column[unsure] for column in groups.pairs())
            for pair, box_of, slot in zip(unsure.tolist(), message.tolist(), clause.tolist(), strict=True):
                shape = int(checks.shape[checks.check[slot]])
                verdict[pair] = YES if shapes.meets_exactly(shape, message_box(messages, box_of)) else NO
        message, subscription = np.empty((2, len(verdict)), np.int32)
        delivered, mark = self._subscription_stamps.take(int(checks.subscription.max(initial=-1)) + 1, len(messages))
        n = take_verified(*groups, verdict, checks, delivered, mark, message, subscription)
        return message[:n], subscription[:n]


def message_box(messages: MessageBatch, message: int) -> Box:
    arrays = messages.arrays
    return Box(float(arrays.x0[message]), float(arrays.y0[message]), float(arrays.x1[message]), float(arrays.y1[message]))
