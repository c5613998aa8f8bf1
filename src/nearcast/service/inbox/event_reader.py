"""Reads inboxes: events of some subscriptions after a cursor, from memory if they are recent, else from the store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from pyroaring import BitMap

from nearcast.service.inbox.event_json import (
    TYPES,
    Happening,
    MessageFacts,
    Subject,
    event_text,
    message_facts,
    subject_of,
    time_text,
)
from nearcast.storage.pages import ENDED, Page
from nearcast.storage.store import Store

# What is known of a subscription costs about a kilobyte; of a message as much, and its text and words.
_CACHED = 30_000
_CACHED_BYTES = 64_000_000
_WORD_BYTES = 80
# A piece of an inbox ends with the event that makes it so large, and is put together from pages of so much.
_PIECE_BYTES = 4_000_000
_PAGES_BYTES = 64_000_000


_Found = tuple[int, int, int, int, float, int, Page]
"""Sequence, number, message, kind, score, rank, and the page they are in."""


class EventRow(NamedTuple):
    """One event of an inbox: the JSON of its `wire.Event`, and what policies look at."""

    sequence: int
    """Grows; with the subscription it names the event for good."""
    number: int
    """The subscription inside the broker; never used again after it ends."""
    subscription: str
    type: str
    message: str
    """The id of the message; "" for the end of a subscription."""
    time: float
    """When the event happened, seconds since 1970."""
    json: bytes


class EventPage(NamedTuple):
    """A piece of an inbox, ordered by sequence."""

    rows: list[EventRow]
    cursor: int
    """Go on after this one: everything up to it is in `rows` or did not concern the inbox."""
    has_more: bool
    is_gap: bool
    """Events between the cursor that was given and `oldest` are gone."""
    oldest: int


class RecentPages:
    """The newest pages, as much as memory allows; the event loop adds, any thread reads."""

    def __init__(self, most_bytes: int, sequence: int) -> None:
        self._most_bytes = most_bytes
        self._n_bytes = 0
        # Taken by readers as one: all pages that begin after the sequence are in the list. It only grows; what is left out is
        # left out of a new one.
        self._held: tuple[int, list[Page]] = (sequence, [])
        self.last = sequence
        """The last sequence that is on disk."""

    @property
    def since(self) -> int:
        """Pages that begin after this one are all here."""
        return self._held[0]

    def add(self, page: Page) -> None:
        since, pages = self._held
        pages.append(page)
        self._n_bytes += page.n_bytes
        if self._n_bytes > self._most_bytes:
            n_gone = 0
            # Rather many at a time, since the others are copied.
            while n_gone < len(pages) - 1 and self._n_bytes > 0.9 * self._most_bytes:
                self._n_bytes -= pages[n_gone].n_bytes
                since = pages[n_gone].last
                n_gone += 1
            self._held = since, pages[n_gone:]

    def after(self, sequence: int) -> list[Page] | None:
        """Pages with events after a sequence, oldest first; None if some are only in the store."""
        since, pages = self._held
        if sequence < since:
            return None
        first = len(pages)
        while first > 0 and pages[first - 1].last > sequence:
            first -= 1
        return pages[first:]

    def page_with(self, sequence: int) -> Page | None:
        _, pages = self._held
        at = bisect_right(pages, sequence, key=lambda page: page.first) - 1
        return pages[at] if at >= 0 and sequence <= pages[at].last else None


class NotInMemory(Exception):  # noqa: N818  # not an error: the reader goes to the store instead
    """What is asked for is only in the store."""


class InboxReading:
    """Reads for any number of inboxes. The caches are shared; a lost race costs only work."""

    def __init__(self, store: Store, recent: RecentPages) -> None:
        self._store, self._recent = store, recent
        self._subjects: dict[int, Subject] = {}
        self._messages: dict[int, MessageFacts] = {}
        self._n_cached_bytes = 0

    def forget(self, number: int) -> None:
        """A subscription has changed: what is known of it is old."""
        self._subjects.pop(number, None)

    def read(self, numbers: BitMap, after: int, limit: int, removed: int, only_memory: bool) -> EventPage:
        """Events in order; raises NotInMemory instead of asking the store if `only_memory`."""
        is_gap, up_to = after < removed, self._recent.last
        after = max(after, removed)
        found: list[_Found] = []
        n_bytes = 0
        for page in self._pages(numbers, after, up_to, only_memory):
            hits = page.reached & numbers
            found_here = [
                (sequence, number, message, kind, score, rank, page)
                for number in hits
                for sequence, message, kind, score, rank in page.events_of(number, after)
            ]
            if len(hits) > 1:
                found_here.sort(key=lambda row: row[:2])
            found += found_here
            n_bytes += page.n_bytes
            if len(found) >= limit or n_bytes >= _PAGES_BYTES:
                # Events of one sequence are never torn apart: a cursor could not tell between them.
                end = min(limit, len(found))
                while end < len(found) and found[end][0] == found[end - 1][0]:
                    end += 1
                has_more = end < len(found) or page.last < up_to
                cursor = page.last if end == len(found) else found[end - 1][0]
                return self._piece(found[:end], EventPage([], cursor, has_more, is_gap, removed), only_memory)
        return self._piece(found, EventPage([], max(up_to, after), False, is_gap, removed), only_memory)

    def _piece(self, found: list[_Found], whole: EventPage, only_memory: bool) -> EventPage:
        """As many as the size allows; `whole` tells of all of them but the rows."""
        rows, n_taken = self._rows(found, only_memory)
        if n_taken == len(found):
            return whole._replace(rows=rows)
        return whole._replace(rows=rows, cursor=found[n_taken - 1][0], has_more=True)

    def _pages(self, numbers: BitMap, after: int, up_to: int, only_memory: bool) -> Iterator[Page]:
        while after < up_to:
            pages = self._recent.after(after)
            if pages is not None:
                for page in pages:
                    if page.first <= up_to and page.reached.intersect(numbers):
                        yield page
                return
            if only_memory:
                raise NotInMemory
            found = self._store.next_page_for(numbers, after, up_to)
            if found is None:
                return
            yield found
            after = found.last

    def _rows(self, found: list[_Found], only_memory: bool) -> tuple[list[EventRow], int]:
        """Rows until they are large together, and how many of those that were found they stand for."""
        subjects = self._know({row[1] for row in found}, only_memory)
        rows: list[EventRow] = []
        n_bytes, before = 0, 0
        page_before, text = None, b""
        for n_taken, (sequence, number, message, kind, score, rank, page) in enumerate(found):
            if n_bytes >= _PIECE_BYTES and sequence != before:
                return rows, n_taken
            before = sequence
            if page is not page_before:
                page_before, text = page, time_text(page.time)
            subject = subjects.get(number)
            if subject is None:
                # Gone by retention, with everything it had.
                continue
            held = None if kind == ENDED else self._message(message, page, only_memory)
            happening = Happening(sequence, kind, score, rank, page.time, text)
            json = event_text(subject, happening, held)
            rows.append(EventRow(sequence, number, subject.id, TYPES[kind], held.id if held else "", page.time, json))
            n_bytes += len(json)
        return rows, len(found)

    def _know(self, numbers: set[int], only_memory: bool) -> dict[int, Subject]:
        """Of this reader alone: others may forget what it needs at any time."""
        known = {number: subject for number in numbers if (subject := self._subjects.get(number)) is not None}
        unknown = numbers - known.keys()
        if not unknown:
            return known
        if only_memory:
            raise NotInMemory
        if len(self._subjects) > _CACHED:
            self._subjects.clear()
        for row in self._store.subscriptions_of(sorted(unknown)):
            known[row.number] = self._subjects[row.number] = subject_of(row)
        return known

    def _message(self, sequence: int, page: Page, only_memory: bool) -> MessageFacts | None:
        held = self._messages.get(sequence)
        if held is not None:
            return held
        home = page if page.first <= sequence <= page.last else self._recent.page_with(sequence)
        if home is None:
            if only_memory:
                raise NotInMemory
            home = self._store.page_with(sequence)
        text = None if home is None else home.message(sequence)
        if text is None:
            return None
        if len(self._messages) > _CACHED or self._n_cached_bytes > _CACHED_BYTES:
            self._messages.clear()
            self._n_cached_bytes = 0
        try:
            facts = self._messages[sequence] = message_facts(text[0])
        except (msgspec.DecodeError, RecursionError):
            # It can be read by nobody; the other events of the inbox must be.
            return None
        self._n_cached_bytes += len(facts.text) + _WORD_BYTES * len(facts.words)
        return facts
