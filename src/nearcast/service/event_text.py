"""Events as JSON, put together from pieces that are made once: those of the subscription, of the page, of the message."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.model.normalise import fold
from nearcast.model.spaces import Space
from nearcast.model.subscription import Subscription
from nearcast.service.shapes import Point, middle_of
from nearcast.service.standing import moment, subscription_out
from nearcast.service.wire import PlaceShape, PointShape
from nearcast.storage.batch import SubscriptionRow
from nearcast.storage.pages import ENDED, RANKED_IN, RANKED_OUT

TYPES = (
    "io.nearcast.match",
    "io.nearcast.entered",
    "io.nearcast.left",
    "io.nearcast.topk.in",
    "io.nearcast.topk.out",
    "io.nearcast.subscription.ended",
    "io.nearcast.dwelled",
)
"""By the kinds of `storage.pages`."""
_encode = msgspec.json.Encoder().encode


class Subject(NamedTuple):
    """What all events of a subscription have in common."""

    number: int
    id: str
    expires: float | None
    middle: Point | None
    keywords: frozenset[str] | None
    """Words to look for in each message; None: all `keywords_text`, always."""
    head: bytes
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
    source = f'","source":"/tenants/{row.tenant}","type":"'.encode()
    return Subject(row.number, kept.id, row.expires, middle, words, source, keywords_text, tail + b"}}")


class MessageFacts(NamedTuple):
    """What of a message differs from one subscription to the other."""

    id: str
    text: bytes
    place: Point
    words: frozenset[str] | None


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
    return MessageFacts(held.id, text, place, frozenset(words))


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
    sequence, kind = b"%d" % happening.sequence, happening.kind
    id = subject.id.encode()
    parts = [
        b'{"specversion":"1.0","id":"', sequence, b"-%d" % subject.number, subject.head, TYPES[kind].encode(),
        b'","subject":"', id, b'","time":"', happening.time_text, b'","sequence":"', sequence,
        b'","datacontenttype":"application/json","data":{"subscription":"', id, b'"',
    ]  # fmt: skip
    if message is not None:
        parts += (b',"message":', message.text)
        if subject.middle is not None:
            metres = Space.LONLAT.distance(*subject.middle, *message.place)
            parts.append(b',"distance":%.1f' % metres)
        if subject.keywords is None:
            parts.append(subject.keywords_text)
        elif message.words is not None:
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
