"""Entering, dwelling and leaving of moving subscriptions that ask for more than the border: margins, accuracy, time inside.

The others pass through untouched. The state of each is kept in the store by the commit that changed it, so that a restart goes
on with what was told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from nearcast.model.regions import Box, Region
from nearcast.service.engines.border_distance import depth_of
from nearcast.service.engines.engine_events import Told, joined, told_of
from nearcast.service.policies.geofence import Passage, Presence, PresencePolicy
from nearcast.service.policies.geofence import Told as PassageTold
from nearcast.service.policies.options import presence_of_options
from nearcast.storage.pages import DWELLED, ENTERED, LEFT
from nearcast.wire.api import DeliveryOptions

COLLECTION = "presence"
Record = tuple[str, str, str, bytes | None]
PlaceOf = Callable[[int, int], Box | None]
"""Where a message is, for a subscription and the sequence of the message; None if it is gone, or hidden from the subscriber."""

_KINDS = {Passage.ENTERED: ENTERED, Passage.LEFT: LEFT, Passage.DWELLED: DWELLED}
_PLAIN = PresencePolicy()
_decode_options = msgspec.json.Decoder(DeliveryOptions).decode


class Position(NamedTuple):
    """A time, and how sure the position is that came with it."""

    time: float
    accuracy_m: float


class _Kept(msgspec.Struct, array_like=True):
    tenant: str
    policy: PresencePolicy
    presence: Presence


class Presences:
    """By subscription number; only the writer touches it."""

    def __init__(self) -> None:
        self.regions: dict[int, Region | None] = {}
        """Where every moving subscription is."""
        self.places: dict[int, Box] = {}
        """Of messages that were asked for, so that pages are not read again and again."""
        self._kept: dict[int, _Kept] = {}
        self._changed: dict[int, str] = {}

    # --- who is watched ----------------------------------------------------------------------------------------------

    def restore(self, records: Iterable[tuple[str, str, bytes]]) -> None:
        """From the store, when everything else is loaded."""
        self._kept = {int(number): msgspec.msgpack.decode(body, type=_Kept) for _, number, body in records}
        self._changed.clear()

    def watch(self, number: int, tenant: str, options: bytes | None) -> None:
        """A subscription is filed, anew or again: it begins without a past."""
        self.drop([number])
        policy = _PLAIN if options is None else presence_of_options(_decode_options(options))
        if policy != _PLAIN:
            self._kept[number] = _Kept(tenant, policy, Presence())
            self._changed[number] = tenant

    def begin(self, number: int, tenant: str, inside: Iterable[int], now: float) -> None:
        """Watch a subscription from its first vague position on; it was told about those it is inside of."""
        if number not in self._kept:
            presence = Presence(last_time=-1.0)
            for message in inside:
                presence.appear(_PLAIN, now, message, math.inf)
            self._kept[number] = _Kept(tenant, _PLAIN, presence)

    def drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            kept = self._kept.pop(number, None)
            if kept is not None:
                self._changed[number] = kept.tenant

    def changed(self) -> list[Record]:
        """Records to keep with the commit that is being made."""
        records: list[Record] = []
        for number, tenant in self._changed.items():
            kept = self._kept.get(number)
            records.append((COLLECTION, tenant, str(number), None if kept is None else msgspec.msgpack.encode(kept)))
        self._changed.clear()
        return records

    # --- what is told ------------------------------------------------------------------------------------------------

    def moved(self, told: Told, positions: Mapping[int, Position], place_of: PlaceOf) -> Told:
        """What the engine says to moves, as the subscribers are told it."""
        if not self._kept.keys() & positions.keys():
            return told
        own, rest = self._split(told)
        passages: list[tuple[int, PassageTold]] = []
        for number in sorted(self._kept.keys() & positions.keys()):
            presence, position = self._noted(number).presence, positions[number]
            asked = {*own.message[own.subscription == number].tolist(), *presence.watched()}
            depths = {message: self._depth(number, message, place_of) for message in sorted(asked)}
            found = presence.move(self._kept[number].policy, position.time, position.accuracy_m, depths)
            passages += ((number, one) for one in found)
        return joined([rest, _told(passages)])

    def others(self, told: Told, now: float, place_of: PlaceOf) -> Told:
        """What messages do that come, expire, or change their audience."""
        if not self._kept or not told.n:
            return told
        own, rest = self._split(told)
        passages: list[tuple[int, PassageTold]] = []
        for number, message, kind in zip(own.subscription.tolist(), own.message.tolist(), own.kind.tolist(), strict=True):
            kept = self._noted(number)
            if kind == ENTERED:
                found = kept.presence.appear(kept.policy, now, message, self._depth(number, message, place_of))
            else:
                found = kept.presence.vanish(kept.policy, now, message)
            passages += ((number, one) for one in found)
        return joined([rest, _told(passages)])

    def advance(self, now: float) -> Told:
        """What time alone has made."""
        due = [number for number, kept in self._kept.items() if kept.presence.due(kept.policy) <= now]
        passages: list[tuple[int, PassageTold]] = []
        for number in due:
            kept = self._noted(number)
            passages += ((number, one) for one in kept.presence.advance(kept.policy, now))
        return _told(passages)

    def _noted(self, number: int) -> _Kept:
        kept = self._kept[number]
        self._changed[number] = kept.tenant
        return kept

    def _split(self, told: Told) -> tuple[Told, Told]:
        is_own = np.isin(told.subscription, np.fromiter(self._kept, np.int64, len(self._kept)))
        return told.keep(is_own), told.keep(~is_own)

    def _depth(self, number: int, message: int, place_of: PlaceOf) -> float:
        place = place_of(number, message)
        return -math.inf if place is None else depth_of(self.regions.get(number), place)


def _told(passages: list[tuple[int, PassageTold]]) -> Told:
    kinds = [_KINDS[one.passage] for _, one in passages]
    return told_of([number for number, _ in passages], [one.message for _, one in passages], kinds)
