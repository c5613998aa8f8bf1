"""The short ways give what the long ways give: messages kept as they came, distances, events put together from pieces."""

from __future__ import annotations

import random

import msgspec
import pytest

from nearcast.model.spaces import Space
from nearcast.service.inbox.event_json import Happening, event_text, message_facts, spot_of, subject_of, time_text
from nearcast.service.intake.decoding import MESSAGES
from nearcast.service.intake.messages import check_message, clock_of, given_id, message_out, sequence_of_given, text_of
from nearcast.service.limits import read_limits
from nearcast.service.problems import Problem
from nearcast.storage.batch import SubscriptionRow
from nearcast.storage.pages import ENDED, ENTERED, MATCHED, RANKED_IN
from nearcast.wire.api import Event

PLACE = '"location":{"type":"Point","coordinates":[13.4,52.5]}'
CLOCK = clock_of(1_800_000_000.25, read_limits())


@pytest.mark.parametrize(
    "line",
    [
        f'{{{PLACE},"keywords":["a","B"]}}',
        f'  {{ "keywords" : [] , {PLACE} }}  ',
        f'{{{PLACE},"text":"Größe \\"und\\" \\u00e9 }}","tags":["x"],"payload":{{"a":[1,{{}}]}}}}',
        f'{{{PLACE},"id":null,"time":null,"payload":null,"keywords":["null"]}}',
        '{"location":{"type":"Box","bbox":[1,2,3,4]},"keywords":["a"],"audience":{"type":"Circle","coordinates":[1,2],"radius":5}}',
        f'{{{PLACE},"keywords":["a"],"id":"own","lifetime":5}}',
        f'{{{PLACE},"keywords":["a"],"keywords":["b"],"time":"2026-01-02T03:04:05+02:00"}}',
        f'{{\r\n  {PLACE},\n\t"keywords":\r["a"]\n}}\n',
    ],
)
def test_a_message_kept_as_it_came_is_the_message_that_was_written_anew(line: str) -> None:
    body = line.encode()
    given = MESSAGES.one(body)
    as_it_came, anew = check_message("t", given, CLOCK, body), check_message("t", given, CLOCK)
    assert message_out(text_of(as_it_came, 77)) == message_out(text_of(anew, 77))
    assert as_it_came._replace(body=b"") == anew._replace(body=b"")
    assert not {*b"\r\n"} & {*as_it_came.body}
    assert message_out(text_of(anew, 77)).id == (given.id or given_id(77))


def test_ids_that_the_server_gives_lead_back_to_their_sequence() -> None:
    for sequence in (1, 15, 16, 2**40):
        assert sequence_of_given(given_id(sequence)) == sequence
    assert sequence_of_given("mine") is None
    assert sequence_of_given("m-zz") is None


def test_lines_are_told_apart() -> None:
    found, texts = MESSAGES.lines(b'\n{"location"}\n \r\n{' + PLACE.encode() + b"}\n\xff\n", 9)
    assert [isinstance(one, Problem) for one in found] == [True, False, True]
    assert len(texts) == 3
    with pytest.raises(Problem) as told:
        MESSAGES.lines(b"{}\n{}\n{}", 2)
    assert told.value.status == 413


def test_distances_are_those_of_the_space() -> None:
    dice = random.Random(1)
    for _ in range(200):
        a, b = ((dice.uniform(-180, 180), dice.uniform(-90, 90)) for _ in range(2))
        assert spot_of(a).metres_to(spot_of(b)) == pytest.approx(Space.LONLAT.distance(*a, *b), abs=1e-3)


@pytest.mark.parametrize("kind", [MATCHED, ENTERED, RANKED_IN, ENDED])
@pytest.mark.parametrize(
    "body",
    [
        b'"keywords":["Oak"],"region":{"type":"Circle","coordinates":[13,52],"radius":9},"metadata":{"n":[1]}',
        b'"interest":"oak OR elm","region":{"type":"Box","bbox":[12,51,14,53]}',
        b'"keywords":[]',
        b'"keywords":["oak"],"location":{"type":"Point","coordinates":[13,52]}',
    ],
)
def test_an_event_put_together_is_one_of_the_wire(kind: int, body: bytes) -> None:
    start = b'{"id":"s","kind":"boolean","subscriber":"a","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z",'
    row = SubscriptionRow(7, "t", "s", "a", "boolean", 1.0, 5.0, 1, None, None, start + body + b"}", None, None)
    message = (
        None
        if kind == ENDED
        else message_facts(b'{"id":"m","time":"2026-01-01T00:00:00Z",%b,"keywords":["OAK"]}' % PLACE.encode())
    )
    happening = Happening(9, kind, 0.25, 3 if kind == RANKED_IN else 0, 6.0, time_text(6.0))
    event = msgspec.json.decode(event_text(subject_of(row), happening, message), type=Event, strict=True)
    assert (event.id, event.sequence, event.subject, event.source) == ("9-7", "9", "s", "/tenants/t")
    assert event.time.timestamp() == 6.0
    assert (event.data.score, event.data.rank) == ((0.25, 3) if kind == RANKED_IN else (None, None))
    assert event.data.reason == ("expired" if kind == ENDED else None)
    if message is None:
        return
    assert event.data.message is not None
    assert event.data.message.id == "m"
    has_place = b"[]" not in body
    expected = pytest.approx(Space.LONLAT.distance(13, 52, 13.4, 52.5), abs=0.1) if has_place else None
    assert event.data.distance == expected
    assert [word.lower() for word in event.data.keywords] == (["oak"] if has_place else [])
