"""A subscription between wire, store and engines: checked, named, and ready to be filed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nearcast.errors import NearcastError
from nearcast.model.regions import Box, Region
from nearcast.model.subscription import RankedSubscription, Subscription
from nearcast.service.caller import Caller
from nearcast.service.geometry import Point, given_region, middle_of, point_of, region_of
from nearcast.service.intake.tenant_keywords import check_words, tag_words, tenant_word
from nearcast.service.problems import Problem, forbidden, unusable
from nearcast.service.times import moment, seconds_of
from nearcast.storage.batch import SubscriptionRow
from nearcast.wire.api import DeliveryOptions, Kind, RegionShape, SubscriptionIn, SubscriptionOut

_NO_OPTIONS = DeliveryOptions()
_encode = msgspec.json.Encoder().encode
_decode_out = msgspec.json.Decoder(SubscriptionOut).decode
_decode_place = msgspec.json.Decoder(RegionShape).decode


class Standing(NamedTuple):
    """What engines file. `words` (with those of tenant and tags) or `interest`; `point` of ranked ones."""

    number: int
    tenant: str
    kind: Kind
    words: list[str]
    interest: str | None
    region: Region | None
    middle: Point | None
    k: int
    spatial_weight: float

    @property
    def is_plain(self) -> bool:
        """Whether keywords and a box say all, so that it can be filed by columns."""
        return self.interest is None and (self.region is None or isinstance(self.region, Box))

    def boolean(self) -> Subscription:
        if self.interest is not None:
            return Subscription(self.number, interest=self.interest, region=self.region)
        return Subscription(self.number, keywords=self.words, region=self.region)

    def ranked(self) -> RankedSubscription:
        assert self.middle is not None
        return RankedSubscription(self.number, self.words, self.middle, self.k, self.spatial_weight)


class Checked(NamedTuple):
    """A subscription as the wire gave it, found good; it has no number yet."""

    tenant: str
    id: str
    subscriber: str
    given: SubscriptionIn
    standing: Standing


def check_subscription(caller: Caller, given: SubscriptionIn, id: str, now: float) -> Checked:
    """Everything that can be wrong with a subscription is told here, as a Problem."""
    subscriber = given.subscriber or caller.subscriber
    if not caller.is_admin and subscriber != caller.subscriber:
        raise forbidden(f"this key acts for {caller.subscriber!r} and cannot subscribe for {subscriber!r}; leave it out")
    if given.expires is not None:
        if given.expires.utcoffset() is None:
            raise unusable(f"expires={given.expires.isoformat()!r} has no time zone; add Z or an offset", "expires")
        if seconds_of(given.expires, "expires") <= now:
            raise unusable(f"expires={given.expires.isoformat()!r} is past; expected a time to come", "expires")
    try:
        standing = _standing(0, caller.tenant, given, given.region, given_region)
        if given.kind == "ranked":
            standing.ranked()
        elif not standing.is_plain or not "".join(standing.words[: len(given.keywords or ())]).isascii():
            # Plain words and a box have been checked by then: length and number by their types, the box when it was made.
            standing.boolean()
    except Problem:
        raise
    except NearcastError as error:
        raise unusable(str(error)) from None
    return Checked(caller.tenant, id, subscriber, given, standing)


def standing_of(row: SubscriptionRow) -> Standing:
    """From the store; a moving one is where it was last."""
    kept = _decode_out(row.body)
    place = kept.region if row.place is None else _decode_place(row.place)
    return _standing(row.number, row.tenant, kept, place, region_of)


def _standing(
    number: int,
    tenant: str,
    given: SubscriptionIn | SubscriptionOut,
    place: RegionShape | None,
    read_region: Callable[[RegionShape], Region],
) -> Standing:
    if given.kind == "ranked":
        return _ranked(number, tenant, given)
    for name in ("location", "k", "spatial_weight"):
        if getattr(given, name) is not None:
            raise unusable(f"{name} belongs to ranked subscriptions; this one is {given.kind}: leave it out", name)
    if given.keywords is not None and given.interest is not None:
        raise unusable("keywords and interest are both given; expected one of them: put the keywords into the interest")
    region = None if place is None else read_region(place)
    own = [tenant_word(tenant), *tag_words(given.tags)]
    if given.interest is None:
        words = given.keywords or []
        check_words(words)
        return Standing(number, tenant, given.kind, [*words, *own], None, region, middle_of(place), 0, 0.0)
    check_words((given.interest,))
    # Alone first: an error tells its place in what was given.
    Subscription(0, interest=given.interest)
    interest = " AND ".join((f"({given.interest})", *own))
    return Standing(number, tenant, given.kind, [], interest, region, middle_of(place), 0, 0.0)


def _ranked(number: int, tenant: str, given: SubscriptionIn | SubscriptionOut) -> Standing:
    for name in ("interest", "region"):
        if getattr(given, name) is not None:
            raise unusable(f"{name} is for boolean and moving subscriptions; a ranked one has keywords and a location", name)
    if given.tags:
        raise unusable("a ranked subscription cannot ask for tags; use keywords", "tags")
    if given.location is None or not given.keywords:
        raise unusable("a ranked subscription needs keywords (at least one) and a location")
    check_words(given.keywords)
    k = 20 if given.k is None else given.k
    weight = 0.5 if given.spatial_weight is None else given.spatial_weight
    return Standing(number, tenant, "ranked", given.keywords, None, None, point_of(given.location), k, weight)


def row_of(checked: Checked, number: int, sequence: int, now: float, created: float | None) -> SubscriptionRow:
    """The row of a new subscription, or of one that replaces what was `created` then."""
    given, made = checked.given, now if created is None else created
    kept = SubscriptionOut(
        checked.id,
        given.kind,
        checked.subscriber,
        moment(made),
        moment(now),
        given.keywords,
        given.interest,
        given.region,
        given.location,
        given.k,
        given.spatial_weight,
        given.tags,
        given.expires,
        given.metadata,
        given.delivery,
        given.paused,
    )
    expires = None if given.expires is None else given.expires.timestamp()
    options = _encode(given.delivery) if given.delivery != _NO_OPTIONS else None
    owner = (checked.tenant, checked.id, checked.subscriber)
    paused = int(given.paused)
    return SubscriptionRow(
        number, *owner, given.kind, made, expires, sequence, None, None, _encode(kept), None, options, paused
    )


def paused_row(row: SubscriptionRow, is_paused: bool, sequence: int, now: float) -> SubscriptionRow:
    """The same subscription, hushed or listening again."""
    kept = _decode_out(row.body)
    kept.paused, kept.updated = is_paused, moment(now)
    return row._replace(body=_encode(kept), paused=int(is_paused), changed=sequence)


def subscription_out(row: SubscriptionRow) -> SubscriptionOut:
    kept = _decode_out(row.body)
    if row.place is not None:
        kept.region = _decode_place(row.place)
    return kept
