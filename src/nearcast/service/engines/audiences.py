"""Two-sided fences: a living message with an audience reaches a moving subscriber only while that one is inside it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from nearcast.model.regions import Region
from nearcast.service.engines.engine_events import Told, told_of
from nearcast.service.geometry import Point, is_inside
from nearcast.storage.pages import ENTERED, LEFT


class Audiences:
    """For every pair that matches and whose message has an audience: whether the subscriber is inside it."""

    def __init__(self) -> None:
        self._region: dict[int, Region] = {}
        self._ends: list[tuple[float, int]] = []
        self._is_inside: dict[int, dict[int, bool]] = {}
        self.middle: dict[int, Point | None] = {}
        """Where each moving subscriber is; None: everywhere, and so in no audience."""

    def add(self, message: int, region: Region, expires: float) -> None:
        self._region[message] = region
        heapq.heappush(self._ends, (expires, message))

    def filtered(self, told: Told) -> Told:
        """What of the changes is told: nothing of messages whose audience the subscriber is not in."""
        if not self._region or not told.n:
            return told
        rows = np.flatnonzero(np.isin(told.message, np.fromiter(self._region, np.int64, len(self._region))))
        wanted = np.ones(told.n, bool)
        for row in rows.tolist():
            wanted[row] = self._note(int(told.subscription[row]), int(told.message[row]), int(told.kind[row]))
        return told.keep(wanted)

    def _note(self, subscription: int, message: int, kind: int) -> bool:
        pairs = self._is_inside.setdefault(subscription, {})
        if kind == ENTERED:
            pairs[message] = self._meets(subscription, message)
            return pairs[message]
        was_inside = pairs.pop(message, False)
        if not pairs:
            del self._is_inside[subscription]
        return was_inside

    def moved(self, subscriptions: Iterable[int]) -> Told:
        """Subscribers that moved into or out of audiences of messages that match them all the same."""
        changed: list[tuple[int, int, int]] = []
        for subscription in subscriptions:
            pairs = self._is_inside.get(subscription, {})
            for message, was_inside in pairs.items():
                now_inside = self._meets(subscription, message)
                if now_inside != was_inside:
                    pairs[message] = now_inside
                    changed.append((subscription, message, ENTERED if now_inside else LEFT))
        return told_of(*([row[at] for row in changed] for at in range(3)))

    def hides(self, subscription: int, message: int) -> bool:
        return not self._is_inside.get(subscription, {}).get(message, True)

    def forget_expired(self, now: float) -> None:
        """Messages that live no more, once everyone has been told."""
        while self._ends and self._ends[0][0] <= now:
            self._region.pop(heapq.heappop(self._ends)[1], None)

    def forget_subscription(self, subscription: int) -> None:
        self._is_inside.pop(subscription, None)
        self.middle.pop(subscription, None)

    def _meets(self, subscription: int, message: int) -> bool:
        middle = self.middle.get(subscription)
        return middle is not None and is_inside(self._region[message], middle)
