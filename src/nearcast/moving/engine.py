"""`MovingMatcher`: subscriptions that travel, messages that live for a while. Every call returns the changes of the results.

No result is stored: it is what the index finds now. A call reports the difference between the results before and after it. A
message that enters a result and leaves it within one call is not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.columns.identifiers import id_array
from nearcast.engine.arguments import as_list, numbers_of_ids
from nearcast.engine.groups import NO_PAIRS
from nearcast.engine.reading_messages import read_message_objects
from nearcast.engine.reading_subscriptions import ReadSubscriptions, read_subscription_objects, read_subscription_table
from nearcast.engine.registry import create
from nearcast.engine.subscription_store import SubscriptionStore
from nearcast.engine.threads import ReadWriteLock
from nearcast.errors import NearcastError
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.delivery import Change, Explanation, MatchReport, Traffic
from nearcast.model.inputs import Id, checked_id
from nearcast.model.message import Message, read_time
from nearcast.model.regions import Region
from nearcast.model.spaces import space_of
from nearcast.model.subscription import Subscription
from nearcast.moving.changes import Changes, change_objects, combined, difference
from nearcast.moving.indexes import MOVING_INDEXES, MOVING_SAFE_AUTO
from nearcast.moving.reading import MoveBatch, TimedMessages, read_move_table, read_moves, read_timed_objects, read_timed_table
from nearcast.moving.safe_regions.protocol import Positions, SafeRegionProtocol
from nearcast.moving.state import MovingState, open_state, save_state
from nearcast.moving.updates import arrive, expire, move


class MovingMatcher:
    """Reports the messages that enter (+1) and leave (-1) the result of every moving subscription, exactly.

    Parameters
    ----------
    index
        A name of `nearcast.indexes("moving")`, or "auto" for the best one.
    space
        "lonlat" (degrees, metres) or "plane" (any finite numbers).
    analysis
        How text becomes keywords; the same for messages and for quoted phrases of interests.
    safe_region
        True or "cells": subscribers need not report while they stay in the region that `safe_regions` returns. True: circles
        and boxes. "cells": grid cells, which are larger regions for more work, in the plane only.
    positions
        Needed with `safe_region`: a function that takes a list of ids and returns {id: region}, where they are now. `publish`
        calls it.
    **parameters
        Options of the index.

    The clock is that of the messages: `now` is the largest time seen. A message is alive while now < expires. `report` is
    about the last call of this thread. Calls that change something run one after the other; `current`, `explain`, `stats` and
    `save` may run at the same time.
    """

    def __init__(
        self,
        index: str = "auto",
        space: str = "lonlat",
        analysis: Analysis | None = None,
        *,
        safe_region: bool | str = False,
        positions: Positions | None = None,
        **parameters: Any,
    ) -> None:
        store = SubscriptionStore(space_of(space), analysis or DEFAULT_ANALYSIS)
        name = MOVING_SAFE_AUTO if safe_region and index == "auto" else index
        self._state = MovingState(store, create(MOVING_INDEXES, name, parameters))
        self._protocol = SafeRegionProtocol(positions, safe_region) if safe_region else None
        self._lock = ReadWriteLock()

    @property
    def now(self) -> float | None:
        """The largest time seen, in seconds since 1970; None before the first."""
        now = self._state.messages.now
        return now if math.isfinite(now) else None

    @property
    def report(self) -> MatchReport:
        """What the last call of this thread did, and the rows it rejected."""
        return self._state.report

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, subscriptions: Iterable[Subscription]) -> list[Change]:
        """Add subscriptions, or replace those with a known id; returns the changes. Live messages enter new results at once."""
        objects, store = as_list(subscriptions, Subscription, "subscriptions"), self._state.subscriptions
        with self._lock.writing():
            return change_objects(self._put(read_subscription_objects(objects, store.context, store.ids.kind)))

    def subscribe_table(self, table: pa.Table) -> pa.Table:
        """As `subscribe`, for a table as in `Matcher.subscribe_table`; returns subscription_id, message_id, change."""
        with self._lock.writing():
            return self._put(read_subscription_table(table, self._state.subscriptions.context))

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        """Remove subscriptions by a list or column of ids. Unknown ids are ignored; no changes are reported."""
        with self._lock.writing():
            state = self._state
            numbers = numbers_of_ids(ids, state.subscriptions.ids)
            if self._protocol is not None:
                self._protocol.cancel(state, numbers)
            state.remove(numbers)
            state.compact()
            state.report = MatchReport()

    def subscription_ids(self) -> pa.Array:
        """The ids of all subscriptions, as a column."""
        with self._lock.reading():
            numbers = np.arange(self._state.subscriptions.ids.n, dtype=np.int32)
            return self._state.subscriptions.ids.take(numbers[self._state.subscriptions.clauses.spans(numbers)[1] > 0])

    def take_over(self, others: Sequence[tuple[MovingMatcher, pa.Array]]) -> None:
        """Replace all subscriptions by those with these ids from other matchers of the same space, with their positions.

        No changes are reported; messages and clock stay. This matcher may be one of the others. Nobody else may use them
        meanwhile.
        """
        if self._protocol is not None:
            raise NearcastError("this matcher has safe regions, which cannot be taken over; make one without safe_region")
        with self._lock.writing():
            stores = [(other._state.subscriptions, other._state.subscriptions.ids.find(ids)) for other, ids in others]
            self._state.subscriptions.gather(stores)
            self._state.index.build(self._state.subscriptions.clauses, self._state.messages)
            self._state.report = MatchReport()

    def _put(self, new: ReadSubscriptions) -> pa.Table:
        state, store = self._state, self._state.subscriptions
        state.report = MatchReport(rejected=new.rejected)
        numbers = store.numbers_of(new)
        if self._protocol is not None:
            self._protocol.cancel(state, numbers)
        before = state.results(numbers)
        state.remove(numbers)
        n_before = store.clauses.n_alive
        slots = store.put(new, numbers)
        if len(slots) > n_before:
            # Most clauses are new: a build packs better than single insertions.
            state.index.build(store.clauses, state.messages)
        elif len(slots):
            state.index.insert(store.clauses, state.messages, slots)
        return self._reported(difference(before, state.results(numbers)))

    # --- messages ----------------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> list[Change]:
        """Add messages and set the clock to their times; returns the changes. Bad messages are in `report.rejected`."""
        objects, state = as_list(messages, Message, "messages"), self._state
        with self._lock.writing():
            return change_objects(self._arrive(read_timed_objects(objects, state.subscriptions.context, state.messages.ids)))

    def publish_table(self, table: pa.Table) -> pa.Table:
        """As `publish`, for a table: id; keywords or text; x, y or x0, y0, x1, y1; optional time and expires."""
        state = self._state
        with self._lock.writing():
            return self._arrive(read_timed_table(table, state.subscriptions.context, state.messages.ids))

    def _arrive(self, read: TimedMessages) -> pa.Table:
        moved = None if self._protocol is None else self._protocol.ask_positions(self._state, read.batch)
        changes, n_expired = arrive(self._state, read)
        return self._reported(changes if moved is None else combined(moved, changes), n_expired)

    def advance(self, now: float | datetime) -> list[Change]:
        """Set the clock forward; messages that expire leave. An earlier time than `now` changes nothing."""
        return change_objects(self.advance_table(now))

    def advance_table(self, now: float | datetime) -> pa.Table:
        """As `advance`, with the changes as a table."""
        seconds = read_time(now, "now")
        with self._lock.writing():
            self._state.report = MatchReport()
            expired, left = expire(self._state, seconds)
            return self._reported(Changes(left, NO_PAIRS, is_by_message=True), len(expired))

    # --- moving ------------------------------------------------------------------------------------------------------

    def move(self, moves: Mapping[Id, object]) -> list[Change]:
        """Give subscriptions new regions (None: everywhere). Unknown ids and bad regions are in `report.rejected`."""
        with self._lock.writing():
            return change_objects(self._move(read_moves(moves, self._state.subscriptions)))

    def move_table(self, table: pa.Table) -> pa.Table:
        """As `move`, for a table: id, x0, y0, x1, y1, or region (GeoJSON or WKT). The last row of an id counts."""
        with self._lock.writing():
            return self._move(read_move_table(table, self._state.subscriptions))

    def _move(self, read: MoveBatch) -> pa.Table:
        if self._protocol is not None:
            others = [number for number, _ in read.others]
            self._protocol.on_report(self._state, np.concatenate([read.number, others]).astype(np.int32))
        return self._reported(move(self._state, read))

    # --- safe regions ------------------------------------------------------------------------------------------------

    def safe_regions(self, ids: Iterable[Id]) -> dict[Id, Region]:
        """For each subscription, where the middle of its region may go without a report. Unknown ids are left out.

        A safe region is valid until the next report of the subscription, or until `positions` is called with its id. One
        without extent means that every move must be reported; regions that are neither circles nor boxes always get such a one.
        """
        with self._lock.writing():
            return self._required_protocol().regions(self._state, numbers_of_ids(ids, self._state.subscriptions.ids))

    @property
    def traffic(self) -> Traffic:
        """How many reports, requests for positions and safe regions were sent. Changes are not counted."""
        return self._required_protocol().traffic

    def _required_protocol(self) -> SafeRegionProtocol:
        if self._protocol is None:
            raise NearcastError("this matcher has no safe regions; make it with safe_region=True and positions=")
        return self._protocol

    def _reported(self, changes: Changes, n_expired: int = 0) -> pa.Table:
        """Write the changes as a table. Then dead messages and clauses can be dropped: their ids are in the table."""
        state = self._state
        table = changes.to_table(state.subscriptions.ids, state.messages)
        state.report.matches = len(changes)
        state.collect_dead(n_expired)
        state.compact()
        return table

    # --- insight -----------------------------------------------------------------------------------------------------

    def current(self, subscription_id: Id) -> set[Id]:
        """The ids of the live messages in the result of a subscription; empty if there is no such subscription."""
        id = checked_id(subscription_id, "subscription", NearcastError)
        with self._lock.reading():
            _, message = self._state.results(self._state.subscriptions.ids.find(id_array([id]))).pairs()
            return set(self._state.messages.ids.take(message).to_pylist())

    def current_table(self, ids: Iterable[Id] | None = None) -> pa.Table:
        """The results of these subscriptions, or of all: subscription_id, message_id. Unknown ids are ignored."""
        with self._lock.reading():
            subscription_ids, message_ids = self._state.subscriptions.ids, self._state.messages.ids
            every = np.arange(subscription_ids.n, dtype=np.int32)
            number, message = self._state.results(every if ids is None else numbers_of_ids(ids, subscription_ids)).pairs()
            return pa.table({"subscription_id": subscription_ids.take(number), "message_id": message_ids.take(message)})

    def explain(self, message: Message, subscription_id: Id) -> Explanation:
        """Why the message is or is not in the result of the subscription now, and its path through the index."""
        with self._lock.reading():
            state = self._state
            batch, rejected = read_message_objects([message], state.subscriptions.context)
            if rejected:
                return Explanation(False, (f"the message is not usable: {rejected[0][1]}",))
            matched, reasons, slot = state.subscriptions.explain(batch, subscription_id)
            path = [] if slot is None else state.index.explain(state.subscriptions.clauses, batch, slot)
            if message.expires is not None and message.expires <= state.messages.now:
                matched, reasons = False, [f"the message expired at {message.expires!r}; now is {self.now!r}", *reasons]
            return Explanation(matched, tuple(reasons), tuple(path))

    def stats(self) -> dict[str, int | float | str]:
        """Sizes: subscriptions, live messages, clauses, keywords, bytes (of all arrays), and those of the index."""
        with self._lock.reading():
            store, index, messages = self._state.subscriptions, self._state.index, self._state.messages
            sizes = {f"index_{name}" if name == "bytes" else name: value for name, value in index.stats().items()}
            return {
                "index": index.name,
                "subscriptions": store.clauses.n_subscriptions,
                "messages": messages.n_alive,
                "clauses": store.clauses.n_alive,
                "copies": store.clauses.n_alive / max(1, store.clauses.n_subscriptions),
                "keywords": store.keywords.n,
                "bytes": store.n_bytes + messages.n_bytes + int(sizes["index_bytes"]),
                "depth": 1,
                **sizes,
            }

    def save(self, folder: str | Path) -> None:
        """Write everything to a folder of arrays, which replaces an existing saved folder as a whole."""
        with self._lock.reading():
            save_state(folder, self._state)

    @classmethod
    def open(cls, folder: str | Path, *, safe_region: bool | str = False, positions: Positions | None = None) -> MovingMatcher:
        """Open a saved matcher. Changes to it do not change the folder. Safe regions are not saved: everyone reports first."""
        matcher = cls(safe_region=safe_region, positions=positions)
        matcher._state = open_state(folder)
        return matcher
