"""A message between wire, engines and log: checked, timed, and written as it will be delivered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from nearcast import settings
from nearcast.errors import NearcastError
from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.model.normalise import fold, normalise
from nearcast.model.regions import Box, Region
from nearcast.service.geometry import given_region, place_of, region_of
from nearcast.service.intake.tenant_keywords import check_words, tag_words, tenant_word
from nearcast.service.limits import Limits
from nearcast.service.problems import Problem, unusable
from nearcast.service.times import moment, seconds_of
from nearcast.storage.store import Store
from nearcast.wire.api import MessageIn, MessageOut, PointShape

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(MessageOut).decode
# Ids that the server gives are sequences in another dress, so that they need no index.
_GIVEN = "m-"
# Those of tenant and tags come on top.
_MOST_WORDS = settings.limit("max_message_keywords") - 20
_NO_ID = b'{"id":"",'
_PAGES_AT_ONCE = 64
UNREADABLE = (NearcastError, msgspec.DecodeError, RecursionError)
"""What reading a kept message may raise that this version would not have taken."""


class Posted(NamedTuple):
    """A message ready to be matched. `id` None: it gets one by its sequence. `body` is its JSON without the id."""

    tenant: str
    id: str | None
    body: bytes
    words: list[str]
    box: tuple[float, float, float, float]
    expires: float
    audience: Region | None


class Clock(NamedTuple):
    """One moment, for all messages of a request."""

    now: float
    default_expires: float
    last_expires: float
    start: bytes
    """JSON of the time of a message that tells none."""
    end: bytes
    """JSON of when a message expires that does not say."""


def clock_of(now: float, limits: Limits) -> Clock:
    expires = now + limits.default_lifetime_s
    start, end = (_encode(moment(seconds)) for seconds in (now, expires))
    return Clock(now, expires, now + limits.retention_s, b'"time":' + start, b',"expires":' + end + b"}")


def check_message(tenant: str, given: MessageIn, clock: Clock, line: bytes | None = None) -> Posted:
    """Everything that can be wrong with a message is told here, as a Problem.

    `line` is the JSON it was decoded from: if nothing is to be changed in it, it is kept as it came.
    """
    try:
        shape = given.location
        x, y = shape.coordinates[:2] if isinstance(shape, PointShape) else (1000.0, 0.0)
        is_point = -180.0 <= x <= 180.0 and -90.0 <= y <= 90.0
        box = (x, y, x, y) if is_point else place_of(shape).bounds
        words = words_of(tenant, given.keywords, given.text, given.tags)
        audience = None if given.audience is None else given_region(given.audience)
        is_plain = given.time is None and given.expires is None and given.lifetime is None and given.id is None
        line = None if line is None else line.strip()
        # A null may be an id or a time that is not there; it must not stand beside the one that is added. A line break would
        # end an event of a stream.
        if is_plain and line is not None and b"null" not in line and b"\n" not in line and b"\r" not in line:
            # Plain form: encode a MessageOut, as below.
            body = b"".join((clock.start, b",", line[1:-1], clock.end))
            return Posted(tenant, None, body, words, box, clock.default_expires, audience)
        happened, expires = _times(given, clock)
    except Problem:
        raise
    except NearcastError as error:
        raise unusable(str(error)) from None
    if given.id is not None and given.id.startswith(_GIVEN):
        raise unusable(f"the id {given.id!r} begins with {_GIVEN!r}, as those that the server gives; choose another", "id")
    times = moment(happened), moment(expires)
    words_kept = given.keywords or []
    kept = MessageOut("", times[0], shape, words_kept, given.text, given.tags, times[1], given.audience, given.payload)
    return Posted(tenant, given.id, _encode(kept)[len(_NO_ID) :], words, box, expires, audience)


def _times(given: MessageIn, clock: Clock) -> tuple[float, float]:
    happened = clock.now
    if given.time is not None:
        if given.time.utcoffset() is None:
            raise unusable(f"time={given.time.isoformat()!r} has no time zone; add Z or an offset", "time")
        happened = seconds_of(given.time, "time")
    expires = clock.default_expires if given.lifetime is None else clock.now + given.lifetime
    if given.expires is not None:
        if given.lifetime is not None:
            raise unusable("expires and lifetime are both given; expected one of them", "expires")
        if given.expires.utcoffset() is None:
            raise unusable(f"expires={given.expires.isoformat()!r} has no time zone; add Z or an offset", "expires")
        expires = seconds_of(given.expires, "expires")
        if expires <= clock.now:
            raise unusable(f"expires={given.expires.isoformat()!r} is past; expected a time to come", "expires")
    if expires > clock.last_expires:
        most = round(clock.last_expires - clock.now)
        raise unusable(f"the message would live longer than {most} s, which is what this server keeps", "expires")
    return happened, expires


def words_of(tenant: str, keywords: list[str] | None, text: str | None, tags: list[str]) -> list[str]:
    """What is matched: the keywords, the words of the text, and the words of tenant and tags."""
    words = keywords or []
    if not "".join(words).isascii():
        # They may grow past the limit; engines would refuse them when it is too late to tell.
        check_words(map(normalise, words))
    if text is not None:
        words = [*words, *DEFAULT_ANALYSIS.words(text)]
    if len(words) > _MOST_WORDS and len({fold(word) for word in words}) > _MOST_WORDS:
        raise unusable(f"the message has more than {_MOST_WORDS} distinct words; send fewer", "text")
    return [*words, tenant_word(tenant), *tag_words(tags)] if tags else [*words, tenant_word(tenant)]


def text_of(posted: Posted, sequence: int) -> bytes:
    """The message as it is kept and delivered."""
    return b'{"id":"%s",%s' % ((posted.id or given_id(sequence)).encode(), posted.body)


def given_id(sequence: int) -> str:
    """The id of a message that came without one."""
    return f"{_GIVEN}{sequence:x}"


def sequence_of_given(id: str) -> int | None:
    """The sequence behind an id that `given_id` made, or None."""
    if not id.startswith(_GIVEN):
        return None
    try:
        sequence = int(id[len(_GIVEN) :], 16)
    except ValueError:
        return None
    # Another spelling of a number is another id, and a store holds no larger ones.
    return sequence if 0 < sequence < 2**63 and given_id(sequence) == id else None


def id_key(tenant: str, id: str) -> bytes:
    """What the store finds a given id by."""
    return hashlib.blake2b(f"{tenant}\0{id}".encode(), digest_size=16).digest()


def message_out(text: bytes) -> MessageOut:
    return _decode(text)


def place_box(message: MessageOut) -> Box:
    return place_of(message.location)


def messages_back(store: Store, since: float) -> Iterator[tuple[int, bytes, str, float]]:
    """(sequence, text, tenant, time) of messages, newest first, of pages not older than a time."""
    before = 2**62
    while True:
        pages = store.pages_before(before, _PAGES_AT_ONCE)
        for page in pages:
            if page.time < since:
                return
            for sequence in range(page.message_first + page.n_messages - 1, page.message_first - 1, -1):
                held = page.message(sequence)
                assert held is not None
                yield sequence, *held, page.time
            before = page.first
        if len(pages) < _PAGES_AT_ONCE:
            return


def posted_of(text: bytes, tenant: str) -> Posted:
    """A message of the log, as engines take it."""
    kept = message_out(text)
    words = words_of(tenant, kept.keywords, kept.text, kept.tags)
    expires = kept.expires.timestamp() if kept.expires is not None else float("inf")
    audience = None if kept.audience is None else region_of(kept.audience)
    return Posted(tenant, kept.id, text, words, place_box(kept).bounds, expires, audience)
