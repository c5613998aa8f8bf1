"""Open inboxes: who reads which subscriptions, what has become of them, and where events are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from pyroaring import BitMap

from nearcast.service.commit.changing import Applied
from nearcast.service.inbox.event_reader import EventPage, InboxReading, RecentPages
from nearcast.service.inbox.wakeups import Feed, Watchers
from nearcast.service.policies.delivery_limits import DeliveryPolicy
from nearcast.service.policies.options import policy_of_options
from nearcast.storage.batch import SubscriptionRow
from nearcast.storage.store import Store
from nearcast.wire.api import DeliveryOptions

_decode_options = msgspec.json.Decoder(DeliveryOptions).decode


@dataclass(slots=True, eq=False)
class Inbox:
    """Some subscriptions of one subscriber, or all of them (`ids` None), also those it makes later."""

    tenant: str
    subscriber: str
    ids: tuple[str, ...] | None
    feed: Feed

    def cursor_name(self, name: str) -> str:
        """What the store keeps a cursor of this inbox under."""
        return "/".join((self.subscriber, ",".join(self.ids or ()), name))


class Inboxes:
    """Everything about readers; touched on the event loop only, but for `read`."""

    def __init__(self, store: Store, recent_bytes: int) -> None:
        self.recent = RecentPages(recent_bytes, store.sequence)
        self.reading = InboxReading(store, self.recent)
        self.removed = store.removed
        """Events up to this one may be gone."""
        self.going = self.removed
        """As `removed`, set by the writer's thread before any goes."""
        self._watchers = Watchers()
        self._open: dict[tuple[str, str], set[Inbox]] = {}
        self._options: dict[int, tuple[DeliveryPolicy | None, str | None]] = {}
        ended = []
        for number, options, end in store.subscription_options():
            self._note_options(number, options)
            if end is not None:
                ended.append((end, number))
        # When those ended that have options, oldest first: they count until retention takes their last events.
        self._ended = {number: end for end, number in sorted(ended)}

    @property
    def n_open(self) -> int:
        # Copied at once: figures are also gathered in other threads.
        return sum(map(len, list(self._open.values())))

    def open(self, tenant: str, subscriber: str, ids: Iterable[str] | None, numbers: BitMap) -> Inbox:
        inbox = Inbox(tenant, subscriber, None if ids is None else tuple(ids), Feed(numbers))
        inbox.feed.latest = self.recent.last
        self._open.setdefault((tenant, subscriber), set()).add(inbox)
        self._watchers.add(inbox.feed, numbers)
        return inbox

    def extend(self, inbox: Inbox, numbers: BitMap) -> None:
        """More subscriptions for an open inbox, with what has come for them."""
        if inbox not in self._open.get((inbox.tenant, inbox.subscriber), ()):
            return
        inbox.feed.numbers |= numbers
        self._watchers.add(inbox.feed, numbers)
        inbox.feed.tell(self.recent.last)

    def close(self, inbox: Inbox) -> None:
        self._watchers.remove(inbox.feed, inbox.feed.numbers)
        inbox.feed.close()
        others = self._open.get((inbox.tenant, inbox.subscriber), set())
        others.discard(inbox)
        if not others:
            self._open.pop((inbox.tenant, inbox.subscriber), None)

    def close_all(self) -> None:
        for inbox in [inbox for some in self._open.values() for inbox in some]:
            self.close(inbox)

    def committed(self, applied: Applied) -> None:
        """Something is on disk: readers may have it now."""
        for row in applied.new_rows:
            self._note_row(row)
        for number, end in _endings(applied):
            if number in self._options:
                self._ended[number] = end
        for place in applied.batch.places:
            self.reading.forget(place.number)
        page = applied.batch.page
        if page is not None:
            self.recent.add(page)
        self.recent.last = max(self.recent.last, applied.sequence)
        if page is not None:
            self._watchers.tell(page.reached, page.last)

    def forget_before(self, removed: int) -> None:
        """Retention has taken everything up to a sequence: what ended by then tells nothing any more."""
        self.removed = removed
        while self._ended:
            number = next(iter(self._ended))
            if self._ended[number] > removed:
                break
            del self._ended[number]
            self._options.pop(number, None)

    def _note_row(self, row: SubscriptionRow) -> None:
        self.reading.forget(row.number)
        self._note_options(row.number, row.options)
        for inbox in self._open.get((row.tenant, row.subscriber), ()):
            if inbox.ids is None and row.number not in inbox.feed.numbers:
                inbox.feed.numbers.add(row.number)
                self._watchers.add(inbox.feed, (row.number,))

    def _note_options(self, number: int, options: bytes | None) -> None:
        if options is None:
            self._options.pop(number, None)
        else:
            decoded = _decode_options(options)
            self._options[number] = policy_of_options(decoded), decoded.webhook

    def policy_of(self, number: int) -> DeliveryPolicy | None:
        found = self._options.get(number)
        return None if found is None else found[0]

    def webhook_of(self, number: int) -> str | None:
        found = self._options.get(number)
        return None if found is None else found[1]

    def read(self, numbers: BitMap, after: int, limit: int, only_memory: bool) -> EventPage:
        while True:
            going = self.going
            page = self.reading.read(numbers, after, limit, going, only_memory)
            # What went meanwhile may be missing: then it is told as a gap.
            if self.going == going or after >= self.going:
                return page


def _endings(applied: Applied) -> list[tuple[int, int]]:
    """(number, sequence) of those that end, also of those that were made in the same commit."""
    return [*applied.batch.ended, *((row.number, row.ended) for row in applied.batch.subscriptions if row.ended is not None)]
