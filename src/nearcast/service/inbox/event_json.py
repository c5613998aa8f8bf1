"""Events as JSON, put together from pieces that are made once: those of the subscription, of the page, of the message."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.model.normalise import fold
from nearcast.model.spaces import EARTH_RADIUS_M
from nearcast.model.subscription import Subscription
from nearcast.service.geometry import Point, middle_of
from nearcast.service.intake.subscriptions import subscription_out
from nearcast.service.times import moment
from nearcast.storage.batch import SubscriptionRow
from nearcast.storage.pages import ENDED, ENTERED, LEFT, MATCHED, RANKED_IN, RANKED_OUT
from nearcast.topics import records
from nearcast.wire.api import PlaceShape, PointShape

TYPES = (
    records.MATCH,
    "io.nearcast.entered",
    "io.nearcast.left",
    "io.nearcast.topk.in",
    "io.nearcast.topk.out",
    records.ENDED,
    "io.nearcast.dwelled",
)
"""By the kinds of `storage.pages`."""
_PLAIN = frozenset({MATCHED, ENTERED, LEFT})
_HEAD = b'{"specversion":"1.0","id":"%d%b%b","sequence":"%d%b'
_PLAIN_EVENT = b'%b,"message":%b,"distance":%.1f%b%b'
_encode = msgspec.json.Encoder().encode


class Spot(NamedTuple):
    """A place with what distances from it need, worked out once."""

    x: float
    latitude: float
    cosine: float

    def metres_to(self, other: Spot) -> float:
        """Plain form: `Space.LONLAT.distance`."""
        half_lat = math.sin((other.latitude - self.latitude) * 0.5)
        half_lon = math.sin((other.x - self.x) * 0.5)
        chord = half_lat * half_lat + self.cosine * other.cosine * half_lon * half_lon
        return 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, chord)))


def spot_of(point: Point) -> Spot:
    latitude = math.radians(point[1])
    return Spot(math.radians(point[0]), latitude, math.cos(latitude))


class Subject(NamedTuple):
    """What all events of a subscription have in common."""

    number: int
    id: str
    expires: float | None
    middle: Spot | None
    keywords: frozenset[str] | None
    """Words to look for in each message; None: all `keywords_text`, always."""
    heads: tuple[bytes, ...]
    """By kind: what is between the sequence and the time."""
    data: bytes
    """What is between the second sequence and the message."""
    keywords_text: bytes
    tail: bytes


def subject_of(row: SubscriptionRow) -> Subject:
    kept = subscription_out(row)
    tail = b',"metadata":' + _encode(kept.metadata) if kept.metadata else b""
    words: frozenset[str] | None = None
    keywords_text = b""
    if kept.kind == "ranked":
        words = frozenset(fold(word) for word in kept.keywords or ())
    elif kept.interest is not None:
        clauses = Subscription(0, interest=kept.interest).clauses(DEFAULT_ANALYSIS)
        words = frozenset(str(word) for clause in clauses for word in clause.required)
    elif kept.keywords:
        keywords_text = b',"keywords":' + _encode(kept.keywords)
    middle = middle_of(kept.region) if kept.location is None else (kept.location.coordinates[0], kept.location.coordinates[1])
    if kept.kind == "moving":
        # It is elsewhere now than when the event happened, and an event says the same whenever it is read.
        middle = None
    start, end = f'-{row.number}","source":"/tenants/{row.tenant}","type":"', f'","subject":"{kept.id}","time":"'
    heads = tuple(f"{start}{kind}{end}".encode() for kind in TYPES)
    data = f'","datacontenttype":"application/json","data":{{"subscription":"{kept.id}"'.encode()
    spot = None if middle is None else spot_of(middle)
    return Subject(row.number, kept.id, row.expires, spot, words, heads, data, keywords_text, tail + b"}}")


class MessageFacts(NamedTuple):
    """What of a message differs from one subscription to the other."""

    id: str
    text: bytes
    place: Spot
    words: frozenset[str]


class _Place(msgspec.Struct):
    id: str
    location: PlaceShape
    keywords: list[str] = []
    text: str | None = None


_decode_place = msgspec.json.Decoder(_Place).decode


def message_facts(text: bytes) -> MessageFacts:
    held = _decode_place(text)
    shape = held.location
    if isinstance(shape, PointShape):
        place = (shape.coordinates[0], shape.coordinates[1])
    else:
        place = ((shape.bbox[0] + shape.bbox[2]) / 2, (shape.bbox[1] + shape.bbox[3]) / 2)
    words = [fold(word) for word in held.keywords]
    if held.text is not None:
        words += DEFAULT_ANALYSIS.words(held.text)
    return MessageFacts(held.id, text, spot_of(place), frozenset(words))


class Happening(NamedTuple):
    """One event of the log, and its page's time as RFC 3339."""

    sequence: int
    kind: int
    score: float
    rank: int
    time: float
    time_text: bytes


def event_text(subject: Subject, happening: Happening, message: MessageFacts | None) -> bytes:
    """The JSON of a `wire.Event`."""
    sequence, kind = happening.sequence, happening.kind
    head = _HEAD % (sequence, subject.heads[kind], happening.time_text, sequence, subject.data)
    if message is not None and subject.keywords is None and subject.middle is not None and kind in _PLAIN:
        # Plain form: the one below. Most events are such, and a live stream makes one for each delivery.
        metres = subject.middle.metres_to(message.place)
        return _PLAIN_EVENT % (head, message.text, metres, subject.keywords_text, subject.tail)
    parts = [head]
    if message is not None:
        parts += (b',"message":', message.text)
        if subject.middle is not None:
            parts.append(b',"distance":%.1f' % subject.middle.metres_to(message.place))
        if subject.keywords is None:
            parts.append(subject.keywords_text)
        else:
            parts += (b',"keywords":', _encode(sorted(subject.keywords & message.words)))
    if kind in (RANKED_IN, RANKED_OUT):
        parts.append(b',"score":%.17g' % happening.score)
        if happening.rank:
            parts.append(b',"rank":%d' % happening.rank)
    if kind == ENDED:
        parts.append(b',"reason":"%s"' % _cause(subject, happening))
    parts.append(subject.tail)
    return b"".join(parts)


def time_text(seconds: float) -> bytes:
    return moment(seconds).isoformat(timespec="microseconds").replace("+00:00", "Z").encode()


def _cause(subject: Subject, happening: Happening) -> bytes:
    return b"expired" if subject.expires is not None and subject.expires <= happening.time else b"deleted"
