"""Structs of the wire from what people write: keywords, regions of nearcast, plain tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nearcast.client.shapes import Area, Place, place_shape, point_shape, region_shape
from nearcast.wire.api import DeliveryOptions, Kind, MessageIn, MoveIn, SubscriptionIn


def subscription_of(
    id: str | None,
    kind: Kind,
    keywords: Iterable[str] | None,
    interest: str | None,
    region: Area | None,
    location: Sequence[float] | None,
    k: int | None,
    spatial_weight: float | None,
    tags: Iterable[str],
    expires: datetime | None,
    metadata: Mapping[str, Any] | None,
    delivery: DeliveryOptions | None,
    subscriber: str | None,
) -> SubscriptionIn:
    return SubscriptionIn(
        kind=kind,
        id=id,
        subscriber=subscriber,
        keywords=None if keywords is None else list(keywords),
        interest=interest,
        region=region_shape(region),
        location=None if location is None else point_shape(location),
        k=k,
        spatial_weight=spatial_weight,
        tags=list(tags),
        expires=expires,
        metadata=dict(metadata or {}),
        delivery=delivery or DeliveryOptions(),
    )


def message_of(
    location: Place,
    keywords: Iterable[str] | None,
    text: str | None,
    id: str | None,
    tags: Iterable[str],
    time: datetime | None,
    expires: datetime | None,
    lifetime: float | None,
    audience: Area | None,
    payload: Any,
) -> MessageIn:
    return MessageIn(
        location=place_shape(location),
        id=id,
        keywords=None if keywords is None else list(keywords),
        text=text,
        tags=list(tags),
        time=time,
        expires=expires,
        lifetime=lifetime,
        audience=region_shape(audience),
        payload=payload,
    )


def move_of(
    subscription: str,
    location: Sequence[float] | None,
    region: Area | None,
    time: datetime | None,
    accuracy_m: float | None,
) -> MoveIn:
    point = None if location is None else point_shape(location)
    return MoveIn(subscription, region_shape(region), point, time, accuracy_m)
