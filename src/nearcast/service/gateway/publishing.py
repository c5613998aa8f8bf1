"""The way to a pipeline: what the store has kept goes to its topics, and deliveries come back from one.

The store is the outbox. After each commit, everything behind the mark `handed` goes to the topics, and only then are those who
sent it answered: acknowledged means in the store and in the topic. The mark is kept with the next commit. A server that dies in
between hands the last things over again: a subscription that is put twice is the same, and what a message causes twice is told
once (`gateway_engines`).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nearcast.errors import TopicError
from nearcast.model.regions import Box
from nearcast.service.intake.messages import UNREADABLE, Posted, posted_of
from nearcast.service.intake.subscriptions import Standing, standing_of
from nearcast.storage.pages import Page
from nearcast.storage.store import Store
from nearcast.topics.files import FileTopic
from nearcast.topics.records import MATCH, Record, ended_record, in_groups, message_record, put_record, read_record
from nearcast.topics.topic import TopicAddress, open_topic

log = logging.getLogger(__name__)
HANDED = "handed"
"""The fact that says up to which sequence everything is in the topics."""
POSITION = "deliveries"
"""The fact that says how far the deliveries have been taken."""
_PAGES_AT_ONCE = 16
_RECORD_BYTES = 8 << 20
_READ_AT_ONCE = 20_000
_WAIT_S = 0.5
_RETRY_S = 2.0


class Gateway:
    """`hand_over` belongs to the writer's thread, `read` to the thread that takes deliveries."""

    def __init__(self, address: TopicAddress, store: Store) -> None:
        self._address, self._store = address, store
        self._subscriptions, self._messages, self._deliveries = (
            open_topic(address.part(name)) for name in ("subscriptions", "messages", "deliveries")
        )
        known = store.fact(HANDED)
        # A store that served before hands over all subscriptions; its messages have had their effect.
        self._handed = store.sequence if known is None else int(known)
        """Messages up to this sequence are in their topic,"""
        self._filed = int(known or 0)
        """and changes of subscriptions up to this one."""
        self._position = store.fact(POSITION) or ""
        self._next_try = 0.0
        self._failure: TopicError | None = None

    @property
    def handed(self) -> int | None:
        """Up to which sequence everything is in the topics; None before the first time."""
        return min(self._handed, self._filed) or None

    # --- there -------------------------------------------------------------------------------------------------------

    def hand_over(self, up_to: int) -> None:
        """Bring everything up to a sequence into the topics. Raises TopicError; it is tried again with the next call."""
        if self.handed is not None and self.handed >= up_to:
            return
        if self._failure is not None and time.monotonic() < self._next_try:
            # A broker that does not answer takes its time to do so; the next requests need not wait for it again.
            raise self._failure
        try:
            self._hand_subscriptions()
            while pages := self._store.pages_from(self._handed + 1, _PAGES_AT_ONCE):
                for page in pages:
                    for records in in_groups(_message_records(page), _RECORD_BYTES):
                        self._messages.append(records)
                    self._handed = page.last
        except TopicError as error:
            self._failure, self._next_try = error, time.monotonic() + _RETRY_S
            raise
        self._handed = self._filed = up_to
        self._failure = None

    def _hand_subscriptions(self) -> None:
        """All that changed, before any message that came with or after them."""
        change = str(self._store.sequence)
        rows = self._store.changed_subscriptions(self._filed, "boolean")
        put = (put_record(f"/tenants/{row.tenant}", change, subscription_row(standing_of(row))) for row in rows)
        gone = (ended_record("/", change, str(number)) for number in self._store.gone_numbers(self._filed))
        for records in in_groups(_both(put, gone), _RECORD_BYTES):
            self._subscriptions.append(records)

    def forget_before(self, moment: float) -> None:
        """Remove old messages and deliveries of topics in files. Kafka has its own retention; changes are kept."""
        if not self._address.is_kafka:
            try:
                for name in ("messages", "deliveries"):
                    FileTopic(Path(self._address.part(name).name)).remove_before(moment)
            except (TopicError, OSError) as error:
                log.error("old files of a topic could not be removed: %s", error)

    # --- and back ----------------------------------------------------------------------------------------------------

    def read(self) -> tuple[list[tuple[int, int]], str]:
        """The next deliveries as (subscription, message), and the position behind them; waits a little for the first."""
        piece = self._deliveries.read(self._position, _READ_AT_ONCE, _WAIT_S)
        return [*_pairs(piece.values)], piece.position

    def took(self, position: str) -> None:
        """What was read up to a position is kept."""
        self._position = position

    def close(self) -> None:
        for topic in (self._subscriptions, self._messages, self._deliveries):
            topic.close()


def subscription_row(standing: Standing) -> dict[str, Any]:
    """A subscription as the pipeline files it."""
    row: dict[str, Any] = {"id": str(standing.number)}
    row |= {"keywords": standing.words} if standing.interest is None else {"interest": standing.interest}
    if isinstance(standing.region, Box):
        row |= zip(("x0", "y0", "x1", "y1"), standing.region.bounds, strict=True)
    elif standing.region is not None:
        row["region"] = json.dumps(standing.region.__geo_interface__)
    return row


def message_row(sequence: int, posted: Posted) -> dict[str, Any]:
    """A message as the pipeline matches it."""
    x0, y0, x1, y1 = posted.box
    place = {"x": x0, "y": y0} if (x0, y0) == (x1, y1) else {"x0": x0, "y0": y0, "x1": x1, "y1": y1}
    return {"id": str(sequence), "keywords": posted.words, **place}


def _message_records(page: Page) -> Iterator[Record]:
    for sequence in range(page.message_first, page.message_first + page.n_messages):
        held = page.message(sequence)
        assert held is not None
        try:
            yield message_record(f"/tenants/{held[1]}", message_row(sequence, posted_of(*held)))
        except UNREADABLE as error:
            log.warning("the message at %d cannot be read and is not handed over: %s", sequence, error)


def _pairs(values: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    for value in values:
        received = read_record(value)
        if received.type == MATCH:
            subscription, message = str(received.data.get("subscription")), str(received.data.get("message_id"))
            if subscription.isdecimal() and message.isdecimal():
                yield int(subscription), int(message)


def _both(first: Iterable[Record], second: Iterable[Record]) -> Iterator[Record]:
    yield from first
    yield from second
