"""Every body that crosses the network under `/v1`: requests, answers, events, errors.

Structs are decoded and encoded by msgspec; the OpenAPI document is made from them. Times are RFC 3339 with a zone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$")]
"""Ids of subscriptions, messages, webhooks, keys, subscribers, tenants."""
Cursor = Annotated[str, Meta(min_length=1, max_length=20, pattern=r"^[0-9]+$")]
"""A place in the log of events: everything up to it has been read. "0" is the beginning."""
Word = Annotated[str, Meta(min_length=1, max_length=256)]
Tag = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Position = Annotated[list[float], Meta(min_length=2, max_length=3)]
Ring = Annotated[list[Position], Meta(min_length=3)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]

Kind = Literal["boolean", "moving", "ranked"]
Role = Literal["publisher", "subscriber", "admin"]
EventType = Literal[
    "io.nearcast.match",
    "io.nearcast.entered",
    "io.nearcast.left",
    "io.nearcast.dwelled",
    "io.nearcast.topk.in",
    "io.nearcast.topk.out",
    "io.nearcast.subscription.ended",
    "io.nearcast.gap",
]


# --- places ------------------------------------------------------------------------------------------------------------


class PointShape(Struct, tag_field="type", tag="Point", forbid_unknown_fields=True, gc=False):
    """GeoJSON Point: [longitude, latitude]."""

    coordinates: Position


class PolygonShape(Struct, tag_field="type", tag="Polygon", forbid_unknown_fields=True, omit_defaults=True):
    """GeoJSON Polygon; either winding; rings across the antimeridian are split."""

    coordinates: Annotated[list[Ring], Meta(min_length=1)]
    bbox: Annotated[list[float], Meta(min_length=4, max_length=6)] | None = None


class MultiPolygonShape(Struct, tag_field="type", tag="MultiPolygon", forbid_unknown_fields=True, omit_defaults=True):
    """GeoJSON MultiPolygon."""

    coordinates: Annotated[list[Annotated[list[Ring], Meta(min_length=1)]], Meta(min_length=1)]
    bbox: Annotated[list[float], Meta(min_length=4, max_length=6)] | None = None


class CircleShape(Struct, tag_field="type", tag="Circle", forbid_unknown_fields=True):
    """Everything within `radius` metres of a point. GeoJSON has no circle; this is ours."""

    coordinates: Position
    radius: Annotated[float, Meta(ge=0, le=20_100_000)]


class BoxShape(Struct, tag_field="type", tag="Box", forbid_unknown_fields=True):
    """[west, south, east, north], borders included."""

    bbox: Annotated[list[float], Meta(min_length=4, max_length=4)]


RegionShape = PolygonShape | MultiPolygonShape | CircleShape | BoxShape
"""Where a subscription listens."""
PlaceShape = PointShape | BoxShape
"""Where a message is."""


# --- subscriptions -----------------------------------------------------------------------------------------------------


class RateLimit(Struct, frozen=True, forbid_unknown_fields=True):
    """At most `events` notifications in `seconds`; the others are counted as suppressed."""

    events: Count
    seconds: Seconds


class DeliveryOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How notifications of one subscription are pushed. The inbox always holds every event."""

    webhook: Name | None = None
    rate_limit: RateLimit | None = None
    digest_seconds: Seconds | None = None
    deduplicate_seconds: Seconds | None = None
    max_notifications: Count | None = None
    dwell_seconds: Seconds | None = None
    exit_margin_m: Annotated[float, Meta(ge=0, le=1_000_000)] | None = None
    exit_seconds: Seconds | None = None
    tells_first_seen: bool = True


class SubscriptionIn(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A standing interest.

    boolean, moving: `keywords` (all) or `interest` (an expression), and `region` (absent: everywhere).
    ranked: `keywords`, `location`, `k`, `spatial_weight`.
    `tags`: only messages that carry all of them. `metadata` comes back with every event.
    `paused`: it is kept, and hears nothing.
    """

    kind: Kind = "boolean"
    id: Name | None = None
    subscriber: Name | None = None
    keywords: Annotated[list[Word], Meta(max_length=200)] | None = None
    interest: Annotated[str, Meta(min_length=1, max_length=20_000)] | None = None
    region: RegionShape | None = None
    location: PointShape | None = None
    k: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    spatial_weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    tags: Annotated[list[Tag], Meta(max_length=16)] = []
    expires: datetime | None = None
    metadata: dict[str, Any] = {}
    delivery: DeliveryOptions = DeliveryOptions()
    paused: bool = False


class SubscriptionChange(Struct, forbid_unknown_fields=True):
    """What can be changed without giving the whole subscription again.

    A paused one hears nothing. When it goes on, a boolean one gets the messages from then on; a moving or ranked one is told
    again what its result is.
    """

    paused: bool


class SubscriptionOut(Struct, omit_defaults=True):
    """A subscription as it is kept. `region` of a moving one is where it is now."""

    id: str
    kind: Kind
    subscriber: str
    created: datetime
    updated: datetime
    keywords: list[str] | None = None
    interest: str | None = None
    region: RegionShape | None = None
    location: PointShape | None = None
    k: int | None = None
    spatial_weight: float | None = None
    tags: list[str] = []
    expires: datetime | None = None
    metadata: dict[str, Any] = {}
    delivery: DeliveryOptions = DeliveryOptions()
    paused: bool = False


class SubscriptionPage(Struct):
    """Subscriptions in the order of their creation; `next` continues the list and is absent on the last page."""

    subscriptions: list[SubscriptionOut]
    next: str | UnsetType = UNSET


# --- messages and moves ------------------------------------------------------------------------------------------------


class MessageIn(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What a publisher sends.

    `keywords` and `text` may both be given: the words of the text are added. `lifetime` (seconds) or `expires`; absent: the
    default of the server. `audience`: only subscribers whose middle is in it get it, moving ones while it is; such a message is
    not ranked.
    """

    location: PlaceShape
    id: Name | None = None
    keywords: Annotated[list[Word], Meta(max_length=4096)] | None = None
    text: Annotated[str, Meta(max_length=100_000)] | None = None
    tags: Annotated[list[Tag], Meta(max_length=16)] = []
    time: datetime | None = None
    expires: datetime | None = None
    lifetime: Seconds | None = None
    audience: RegionShape | None = None
    payload: Any = None


class MessageOut(Struct, omit_defaults=True):
    """A message as it is kept and delivered."""

    id: str
    time: datetime
    location: PlaceShape
    keywords: list[str] = []
    text: str | None = None
    tags: list[str] = []
    expires: datetime | None = None
    audience: RegionShape | None = None
    payload: Any = None


class MessageReceipt(Struct, omit_defaults=True):
    """The message is on disk with its deliveries. `is_repeat`: it was there already (same idempotency key or id)."""

    id: str
    cursor: str
    is_repeat: bool = False


class MoveIn(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Where a moving subscription is now: a new `region`, or a new centre for the region it has.

    A `time` before that of the last move of the subscription is late: the move is kept out. `accuracy_m` of the position:
    leaving counts only when it is certain by that much.
    """

    subscription: Name
    region: RegionShape | None = None
    location: PointShape | None = None
    time: datetime | None = None
    accuracy_m: Annotated[float, Meta(ge=0, le=1_000_000)] | None = None


class MoveResult(Struct, omit_defaults=True):
    """What became of one move."""

    subscription: str
    status: Literal["moved", "late"]
    entered: int = 0
    left: int = 0


class LineResult(Struct, omit_defaults=True):
    """What became of one line of a bulk request; `line` counts from 0. A bad line does not stop the others."""

    line: int
    status: Literal["ok", "repeat", "late", "error"]
    id: str | None = None
    cursor: str | None = None
    error: ErrorBody | None = None


class BulkResult(Struct):
    """Every line that is not plainly ok, and how many there were. `cursor` is that of the last one kept."""

    accepted: int
    rejected: int
    cursor: str
    results: list[LineResult]


# --- inbox and events --------------------------------------------------------------------------------------------------


class EventData(Struct, omit_defaults=True):
    """What an event tells.

    `distance` in metres from the middle of the region (ranked: the location) to the message, absent for moving ones; `keywords`
    are the words of the subscription that the message has; `score` and `rank` (1 = best) for ranked ones.
    """

    subscription: str
    message: MessageOut | None = None
    distance: float | None = None
    keywords: list[str] = []
    score: float | None = None
    rank: int | None = None
    metadata: dict[str, Any] = {}
    reason: str | None = None


class Event(Struct, kw_only=True):
    """A CloudEvents 1.0 envelope; `sequence` is the cursor of this event. `subject` is the subscription.

    Only where events are pushed: `suppressed` were kept back since the push before, `digestsize` ends a digest of so many (of
    which the first are there), after `lastnotification` no more are pushed.
    """

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    type: EventType
    subject: str
    time: datetime
    sequence: str
    datacontenttype: Literal["application/json"] = "application/json"
    data: EventData
    suppressed: int | UnsetType = UNSET
    digestsize: int | UnsetType = UNSET
    lastnotification: bool | UnsetType = UNSET


class InboxPage(Struct):
    """Events after a cursor, oldest first.

    `cursor` is where to go on; `is_gap`: events after the given cursor are gone (retention), these are the oldest kept.
    """

    events: list[Event]
    cursor: str
    has_more: bool
    is_gap: bool


class LiveFrame(Struct):
    """Events that go out together, oldest first. Everything up to `cursor` has been sent; without events it is a heartbeat."""

    cursor: str
    events: list[Event]


class LiveAck(Struct, forbid_unknown_fields=True):
    """All a live client may say: everything up to `ack` has been dealt with."""

    ack: Cursor


class Ack(Struct, forbid_unknown_fields=True):
    """Everything up to the cursor has been dealt with. It never goes back."""

    cursor: Cursor


class AckResult(Struct):
    """The cursor that counts now."""

    cursor: str


# --- insight -----------------------------------------------------------------------------------------------------------


class TopEntry(Struct):
    """One message of a top list."""

    rank: int
    score: float
    message: MessageOut


class TopList(Struct):
    """The best messages of a ranked subscription, best first."""

    subscription: str
    entries: list[TopEntry]


class CurrentList(Struct):
    """The living messages in the result of a moving subscription."""

    subscription: str
    messages: list[MessageOut]


class ExplainIn(Struct, forbid_unknown_fields=True):
    """A message (a draft, or the id of one that is kept) and a subscription."""

    subscription: Name
    message: MessageIn | None = None
    message_id: Name | None = None


class ExplainOut(Struct):
    """Why the message does or does not reach the subscription, and the way through the index."""

    matched: bool
    reasons: list[str]
    path: list[str]


class DryRunIn(Struct, forbid_unknown_fields=True):
    """A draft subscription, to be tried on the last messages."""

    subscription: SubscriptionIn
    messages: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class DryRunOut(Struct):
    """How many of the tried messages would have been delivered, some of them, and the work one such message costs."""

    tried: int
    hits: int
    messages: list[MessageOut]
    candidates: int
    clauses: int


class StatsOut(Struct):
    """Sizes of this tenant; those of engines that all tenants share are for admins of the tenant `default`."""

    subscriptions: int
    cursor: str
    oldest_cursor: str
    engines: dict[str, dict[str, float | str]]


class Health(Struct):
    """`status` is "ok", "starting" or "failing"; `reason` says why it is not ok."""

    status: Literal["ok", "starting", "failing"]
    reason: str | None = None


# --- keys, errors ----------------------------------------------------------------------------------------------------


class KeyIn(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A new API key. `subscriber`: whom it acts for (role subscriber); absent: the name of the key."""

    name: Name
    roles: Annotated[list[Role], Meta(min_length=1, max_length=3)]
    subscriber: Name | None = None
    expires: datetime | None = None


class KeyOut(Struct, omit_defaults=True):
    """An API key; its secret is shown once, in the answer that makes it."""

    id: str
    name: str
    tenant: str
    roles: list[Role]
    subscriber: str
    created: datetime
    expires: datetime | None = None
    secret: str | None = None


class KeyList(Struct):
    keys: list[KeyOut]


class AuditEntry(Struct, omit_defaults=True):
    """Who did what."""

    time: datetime
    key: str
    action: str
    target: str
    detail: str = ""


class AuditPage(Struct):
    entries: list[AuditEntry]
    next: str | UnsetType = UNSET


class ErrorBody(Struct, omit_defaults=True):
    """`code` for programs, `message` for people (what was given, what was expected, what to do), `where` the field."""

    code: str
    message: str
    where: str | None = None


class ErrorOut(Struct):
    """The one shape of every error."""

    error: ErrorBody
