"""`MovingMatcher`: subscriptions that travel, messages that live for a while; every call tells what it changes.

State is never kept per subscription: its result is what the index finds now. A call reports the difference between the results
before and after it, so what comes and goes within one call is not reported.
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
from nearcast.engine.arguments import listed, numbers_of
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
from nearcast.moving.changes import Changes, change_objects, consecutive, difference
from nearcast.moving.indexes import MOVING_INDEXES, MOVING_SAFE_AUTO
from nearcast.moving.reading import ReadMoves, TimedMessages, read_move_table, read_moves, read_timed_objects, read_timed_table
from nearcast.moving.safe_regions.protocol import Positions, SafeRegionProtocol
from nearcast.moving.state import MovingState, open_state, save_state
from nearcast.moving.updates import arrive, expire, move


class MovingMatcher:
    """Keeps the result of every travelling subscription exact, by messages that enter (+1) and leave (-1) it.

    Parameters
    ----------
    index
        A name of `nearcast.indexes("moving")`, or "auto" for the best one.
    space
        "lonlat" (degrees, metres) or "plane" (any finite numbers).
    analysis
        How text becomes keywords; the same for messages and for quoted phrases of interests.
    safe_region
        Whether subscribers may be silent while they stay in the regions that `safe_regions` gives: circles and boxes (True), or
        cells of a grid ("cells", in the plane: larger regions for more work).
    positions
        Then needed: a function that is given a list of ids, during `publish`, and gives {id: region}, where they are now.
    **parameters
        Options of the index.

    Time is that of the messages: `now` is the largest time seen. A message is alive while now < expires. `report` tells of the
    last call. Calls that change something wait for each other; `current`, `explain`, `stats` and `save` run beside each other.
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
        self._silent = SafeRegionProtocol(positions, safe_region) if safe_region else None
        self._lock = ReadWriteLock()

    @property
    def now(self) -> float | None:
        """The largest time seen, in seconds since 1970; None before the first."""
        now = self._state.messages.now
        return now if math.isfinite(now) else None

    @property
    def report(self) -> MatchReport:
        """What the last call did, and the rows it left out."""
        return self._state.report

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, subscriptions: Iterable[Subscription]) -> list[Change]:
        """Register subscriptions; a known id replaces the old one. Changes of their results: living messages enter at once."""
        given, state = listed(subscriptions, Subscription, "subscriptions"), self._state
        with self._lock.writing():
            return change_objects(
                self._put(read_subscription_objects(given, state.subscriptions.context, state.subscriptions.ids.kind))
            )

    def subscribe_table(self, table: pa.Table) -> pa.Table:
        """As `subscribe`, for a table as `Matcher.subscribe_table` takes it; returns subscription_id, message_id, change."""
        with self._lock.writing():
            return self._put(read_subscription_table(table, self._state.subscriptions.context))

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        """Forget subscriptions, by a list of ids or a column of a table; unknown ids are ignored, and nothing is reported."""
        with self._lock.writing():
            state = self._state
            numbers = numbers_of(ids, state.subscriptions.ids)
            if self._silent is not None:
                self._silent.forget(state, numbers)
            state.remove(numbers)
            state.compact()
            state.report = MatchReport()

    def subscription_ids(self) -> pa.Array:
        """The ids of all subscriptions, as a column."""
        with self._lock.reading():
            numbers = np.arange(self._state.subscriptions.ids.n, dtype=np.int32)
            return self._state.subscriptions.ids.take(numbers[self._state.subscriptions.clauses.spans(numbers)[1] > 0])

    def take_over(self, others: Sequence[tuple[MovingMatcher, pa.Array]]) -> None:
        """Forget all subscriptions, and take over those with these ids from matchers of the same space, where they are.

        Nothing is reported; messages and clock stay. This matcher may be among the others, which nobody else uses meanwhile.
        """
        if self._silent is not None:
            raise NearcastError("this matcher gives safe regions, which cannot be taken over; make one without safe_region")
        with self._lock.writing():
            stores = [(other._state.subscriptions, other._state.subscriptions.ids.find(ids)) for other, ids in others]
            self._state.subscriptions.gather(stores)
            self._state.index.build(self._state.subscriptions.clauses, self._state.messages)
            self._state.report = MatchReport()

    def _put(self, read: ReadSubscriptions) -> pa.Table:
        state, store = self._state, self._state.subscriptions
        state.report = MatchReport(rejected=read.rejected)
        numbers = store.numbers_of(read)
        if self._silent is not None:
            self._silent.forget(state, numbers)
        before = state.results(numbers)
        state.remove(numbers)
        n_before = store.clauses.n_alive
        new = store.put(read, numbers)
        if len(new) > n_before:
            # Most subscriptions are new: a build packs better than single insertions.
            state.index.build(store.clauses, state.messages)
        elif len(new):
            state.index.insert(store.clauses, state.messages, new)
        return self._reported(difference(before, state.results(numbers)))

    # --- messages ----------------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> list[Change]:
        """Take in messages: what is due by their times leaves, and they enter. Bad ones are in `report.rejected`."""
        given, state = listed(messages, Message, "messages"), self._state
        with self._lock.writing():
            return change_objects(self._arrive(read_timed_objects(given, state.subscriptions.context, state.messages.ids)))

    def publish_table(self, table: pa.Table) -> pa.Table:
        """As `publish`, for a table: id; keywords or text; x, y or x0, y0, x1, y1; optional time and expires."""
        state = self._state
        with self._lock.writing():
            return self._arrive(read_timed_table(table, state.subscriptions.context, state.messages.ids))

    def _arrive(self, read: TimedMessages) -> pa.Table:
        contacted = None if self._silent is None else self._silent.contact(self._state, read.batch)
        changes, n_gone = arrive(self._state, read)
        return self._reported(changes if contacted is None else consecutive(contacted, changes), n_gone)

    def advance(self, now: float | datetime) -> list[Change]:
        """Set the clock forward; messages that expire leave. An earlier time than `now` changes nothing."""
        return change_objects(self.advance_table(now))

    def advance_table(self, now: float | datetime) -> pa.Table:
        """As `advance`, with the changes as a table."""
        seconds = read_time(now, "now")
        with self._lock.writing():
            self._state.report = MatchReport()
            gone, left = expire(self._state, seconds)
            return self._reported(Changes(left, NO_PAIRS, is_by_message=True), len(gone))

    # --- moving ------------------------------------------------------------------------------------------------------

    def move(self, moves: Mapping[Id, object]) -> list[Change]:
        """Give subscriptions new regions (None: everywhere). Unknown ids and bad regions are in `report.rejected`."""
        with self._lock.writing():
            return change_objects(self._move(read_moves(moves, self._state.subscriptions)))

    def move_table(self, table: pa.Table) -> pa.Table:
        """As `move`, for a table: id, x0, y0, x1, y1, or region (GeoJSON or WKT); of several rows of one id the last counts."""
        with self._lock.writing():
            return self._move(read_move_table(table, self._state.subscriptions))

    def _move(self, read: ReadMoves) -> pa.Table:
        if self._silent is not None:
            others = [number for number, _ in read.others]
            self._silent.heard_of(self._state, np.concatenate([read.number, others]).astype(np.int32))
        return self._reported(move(self._state, read))

    # --- safe regions ------------------------------------------------------------------------------------------------

    def safe_regions(self, ids: Iterable[Id]) -> dict[Id, Region]:
        """For each subscription, where the middle of its region may go without a report; unknown ids are left out.

        It counts until the next report of the subscription, or until `positions` is asked for it. A circle or box without
        extent: every move must be reported (so for other regions than circles and boxes).
        """
        with self._lock.writing():
            return self._silent_subscribers().regions(self._state, numbers_of(ids, self._state.subscriptions.ids))

    @property
    def traffic(self) -> Traffic:
        """How many reports, contacts and safe regions went between subscribers and here; the changes themselves apart."""
        return self._silent_subscribers().traffic

    def _silent_subscribers(self) -> SafeRegionProtocol:
        if self._silent is None:
            raise NearcastError("this matcher gives no safe regions; make it with safe_region=True and positions=")
        return self._silent

    def _reported(self, changes: Changes, n_gone: int = 0) -> pa.Table:
        """The changes as a table; then, with all ids told, the dead are cleared away."""
        state = self._state
        table = changes.to_table(state.subscriptions.ids, state.messages)
        state.report.matches = len(changes)
        state.forget_dead(n_gone)
        state.compact()
        return table

    # --- insight -----------------------------------------------------------------------------------------------------

    def current(self, subscription_id: Id) -> set[Id]:
        """The ids of the living messages in the result of a subscription; none if there is no such subscription."""
        id = checked_id(subscription_id, "subscription", NearcastError)
        with self._lock.reading():
            _, message = self._state.results(self._state.subscriptions.ids.find(id_array([id]))).pairs()
            return set(self._state.messages.ids.take(message).to_pylist())

    def current_table(self, ids: Iterable[Id] | None = None) -> pa.Table:
        """The results of several subscriptions, or of all: subscription_id, message_id. Unknown ids have none."""
        with self._lock.reading():
            own, messages = self._state.subscriptions.ids, self._state.messages
            numbers = np.arange(own.n, dtype=np.int32) if ids is None else numbers_of(ids, own)
            number, message = self._state.results(numbers).pairs()
            return pa.table({"subscription_id": own.take(number), "message_id": messages.ids.take(message)})

    def explain(self, message: Message, subscription_id: Id) -> Explanation:
        """Why the message does or does not belong to the subscription where it is now, and the way through the index."""
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
        """Sizes: subscriptions, living messages, clauses, keywords, bytes (of all arrays), and those of the index."""
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
        """Write everything to a folder of arrays; an existing saved folder is replaced as a whole."""
        with self._lock.reading():
            save_state(folder, self._state)

    @classmethod
    def open(cls, folder: str | Path, *, safe_region: bool | str = False, positions: Positions | None = None) -> MovingMatcher:
        """A saved matcher. Changes to it leave the folder as it is. It has made no promises: everyone reports first."""
        matcher = cls(safe_region=safe_region, positions=positions)
        matcher._state = open_state(folder)
        return matcher
