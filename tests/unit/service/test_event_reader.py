"""An inbox reads the same from memory and from the store, in pieces of any size; what is gone is told as a gap."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from pyroaring import BitMap

from nearcast.service.inbox import event_reader
from nearcast.service.inbox.event_reader import EventRow, InboxReading, NotInMemory, RecentPages
from nearcast.service.inbox.inboxes import Inboxes
from nearcast.storage.batch import Batch, SubscriptionRow
from nearcast.storage.pages import ENDED, ENTERED, MATCHED, Events, Page, Span
from nearcast.storage.store import Store, open_store
from nearcast.wire.api import Event

N_SUBSCRIPTIONS, N_PAGES = 5, 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "store.db"))
    rows = []
    for number in range(1, N_SUBSCRIPTIONS + 1):
        body = (
            b'{"id":"s%d","kind":"boolean","subscriber":"a","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"'
        )
        body = body % number + b',"interest":"oak OR elm","metadata":{"n":1}}'
        rows.append(SubscriptionRow(number, "t", f"s{number}", "a", "boolean", 1.0, None, 0, None, None, body, None, None))
    opened.write(Batch(subscriptions=rows))
    yield opened
    opened.close()


def fill(store: Store, recent: RecentPages) -> list[tuple[int, int]]:
    """Random pages; (sequence, number) of all their events."""
    dice, told, last = random.Random(9), [], 0
    for _ in range(N_PAGES):
        n = dice.randint(1, 4)
        span = Span(last + 1, last + 1, last + n + 1)
        text = b'{"id":"m%d","time":"2026-01-01T00:00:00Z","location":{"type":"Point","coordinates":[1,2]},"keywords":["Oak"]}'
        texts = [text % (last + 1 + at) for at in range(n)]
        rows = [
            (number, span.first + at, span.first + at, dice.choice((MATCHED, ENTERED)))
            for at in range(n)
            for number in dice.sample(range(1, N_SUBSCRIPTIONS + 1), dice.choice((0, 0, 1, 3)))
        ]
        if dice.random() < 0.2:
            rows.append((dice.randint(1, N_SUBSCRIPTIONS), span.last, 0, ENDED))
        told += [(row[1], row[0]) for row in rows]
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        rest = np.zeros(len(rows)), np.zeros(len(rows), np.int32)
        events = Events(columns[0], columns[1], columns[2], columns[3].astype(np.int8), *rest)
        page = Page.of(span, 1.0, texts, ["t"] * n, events)
        store.write(Batch(page=page, sequence=span.last))
        recent.add(page)
        recent.last = last = span.last
    return sorted(told)


def read_all(reading: InboxReading, numbers: BitMap, limit: int, only_memory: bool = False, after: int = 0) -> list[EventRow]:
    rows: list[EventRow] = []
    while True:
        page = reading.read(numbers, after, limit, 0, only_memory)
        assert page.cursor > after or not page.rows
        rows += page.rows
        after = page.cursor
        if not page.has_more:
            return rows


@pytest.mark.parametrize("most_bytes", [10**9, 5000, 0])
def test_pieces_of_any_size_give_the_whole_from_memory_and_store(store: Store, most_bytes: int) -> None:
    recent = RecentPages(most_bytes, 0)
    told = fill(store, recent)
    reading = InboxReading(store, recent)
    for numbers in (BitMap([1]), BitMap([2, 4]), BitMap(range(1, N_SUBSCRIPTIONS + 1)), BitMap([77])):
        expected = [row for row in told if row[1] in numbers]
        for limit in (1, 2, 7, 1000):
            rows = read_all(reading, numbers, limit)
            assert [(row.sequence, row.number) for row in rows] == expected
        for row in rows:
            event = msgspec.json.decode(row.json, type=Event)
            assert (event.sequence, event.subject, event.type) == (str(row.sequence), row.subscription, row.type)
            assert event.data.metadata == {"n": 1}
            if event.data.message is not None:
                assert event.data.message.id == row.message
                assert event.data.keywords == ["oak"]
    if most_bytes == 10**9:
        assert len(read_all(reading, BitMap([1]), 3, only_memory=True)) == sum(number == 1 for _, number in told)
    else:
        with pytest.raises(NotInMemory):
            reading.read(BitMap([1]), 0, 3, 0, True)


def test_a_cursor_that_is_too_old_is_told(store: Store) -> None:
    recent = RecentPages(0, 0)
    told = fill(store, recent)
    middle = store.pages_before(10**6, 99)[15].last
    store.remove_before(middle)
    reading = InboxReading(store, recent)
    everyone = BitMap(range(1, N_SUBSCRIPTIONS + 1))
    page = reading.read(everyone, 3, 1000, store.removed, False)
    assert (page.is_gap, page.oldest) == (True, middle)
    assert [(row.sequence, row.number) for row in page.rows] == [row for row in told if row[0] > middle]
    assert not reading.read(everyone, middle, 1000, store.removed, False).is_gap
    # Nothing that is not there is invented: the message of an event may be gone, the event is not.
    assert all(row.json for row in page.rows)


def test_pieces_end_when_they_are_large_and_the_cache_is_bounded_by_bytes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    recent = RecentPages(0, 0)
    told = fill(store, recent)
    everyone = BitMap(range(1, N_SUBSCRIPTIONS + 1))
    n_whole = len(InboxReading(store, recent).read(everyone, 0, 1000, 0, False).rows)
    for name, size in (("_PIECE_BYTES", 1), ("_PAGES_BYTES", 1), ("_CACHED_BYTES", 500)):
        monkeypatch.setattr(event_reader, name, size)
        reading = InboxReading(store, recent)
        rows = read_all(reading, everyone, 1000)
        assert [(row.sequence, row.number) for row in rows] == told
        piece = reading.read(everyone, 0, 1000, 0, False)
        if name == "_PIECE_BYTES":
            # At least one, and never a part of what has the same sequence.
            assert {row.sequence for row in piece.rows} == {told[0][0]}
        assert name == "_CACHED_BYTES" or len(piece.rows) < n_whole
        assert name != "_CACHED_BYTES" or len(reading._messages) < 10
        monkeypatch.undo()


class Disturbed:
    """A store in which something else happens, once, while it is read."""

    def __init__(self, store: Store, name: str, happens: Callable[[], None]) -> None:
        self._store, self._name, self._happens = store, name, happens

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name != self._name:
            return found

        def disturbed(*given: Any) -> Any:
            self._name = ""
            self._happens()
            return found(*given)

        return disturbed


def test_what_others_forget_meanwhile_is_not_lost(store: Store) -> None:
    recent = RecentPages(10**9, 0)
    told = fill(store, recent)
    reading = InboxReading(store, recent)
    reading.read(BitMap([1, 2]), 0, 1000, 0, False)
    reading._store = cast(Store, Disturbed(store, "subscriptions_of", lambda: reading.forget(1)))
    page = reading.read(BitMap([1, 2, 3]), 0, 1000, 0, False)
    assert [(row.sequence, row.number) for row in page.rows] == [row for row in told if row[1] <= 3]


def test_what_goes_while_it_is_read_is_told_as_a_gap(store: Store) -> None:
    told = fill(store, RecentPages(0, 0))
    middle = store.pages_before(10**6, 99)[15].last
    inboxes = Inboxes(store, 0)

    def remove() -> None:
        # As the writer does it, in its thread.
        inboxes.going = middle
        store.remove_before(middle)

    inboxes.reading._store = cast(Store, Disturbed(store, "next_page_for", remove))
    page = inboxes.read(BitMap(range(1, N_SUBSCRIPTIONS + 1)), 0, 1000, False)
    assert (page.is_gap, page.oldest) == (True, middle)
    assert [(row.sequence, row.number) for row in page.rows] == [row for row in told if row[0] > middle]
