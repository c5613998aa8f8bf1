"""`Matcher`: boolean subscriptions, matched exactly; each message is delivered to every matching subscription, once.

The hot path is `match_table`: read → `index.match` → verify → ids.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.boolean.deliveries import deliver_groups
from nearcast.boolean.index import IndexCells
from nearcast.boolean.indexes import BOOLEAN_INDEXES
from nearcast.columns.arrow import number_column
from nearcast.columns.folder import joined_parts, read_folder, split_parts, write_folder
from nearcast.columns.messages import MessageBatch
from nearcast.columns.schemas import delivery_table
from nearcast.engine.arguments import as_list, numbers_of_ids
from nearcast.engine.reading_messages import EncodedMessages, read_message_objects, read_message_table
from nearcast.engine.reading_subscriptions import ReadSubscriptions, read_subscription_objects, read_subscription_table
from nearcast.engine.registry import create
from nearcast.engine.report import LastReport
from nearcast.engine.subscription_store import SubscriptionStore
from nearcast.engine.threads import BackgroundMerge, ReadWriteLock, run_in_threads, split_rows, usable_threads
from nearcast.errors import NearcastError
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.delivery import Delivery, Explanation, MatchReport, joined_reports
from nearcast.model.inputs import Id, checked_id
from nearcast.model.message import Message
from nearcast.model.regions import Box
from nearcast.model.spaces import space_of
from nearcast.model.subscription import Subscription

_FOLDER_KIND = "matcher"


class Matcher:
    """Registers boolean subscriptions and finds those that match each message.

    Parameters
    ----------
    index
        A name of `nearcast.indexes()`, or "auto" for the best one.
    space
        "lonlat" (degrees, metres) or "plane" (any finite numbers).
    analysis
        How text becomes keywords; the same for messages and for quoted phrases of interests.
    history
        A table of past messages, as for `match_table`: indexes with a cost model are built for such messages.
    **parameters
        Options of the index.

    One thread may change subscriptions while others publish: a change waits for running matches, then all see it. After many
    changes the index may merge them in a background thread, while matching continues (see `wait_for_merge`).
    """

    def __init__(
        self,
        index: str = "auto",
        space: str = "lonlat",
        analysis: Analysis | None = None,
        history: pa.Table | None = None,
        **parameters: Any,
    ) -> None:
        self._subscriptions = SubscriptionStore(space_of(space), analysis or DEFAULT_ANALYSIS)
        self._index = create(BOOLEAN_INDEXES, index, parameters)
        self._lock = ReadWriteLock()
        self._merge = BackgroundMerge()
        self._history = history
        self._last_report = LastReport()

    @property
    def report(self) -> MatchReport:
        """What the last call of this thread did, and the rows it rejected."""
        return self._last_report.value

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Register subscriptions; a known id replaces the old subscription. Bad ones are in `report.rejected`."""
        subscription_list = as_list(subscriptions, Subscription, "subscriptions")
        with self._lock.writing():
            self._put(read_subscription_objects(subscription_list, self._subscriptions.context, self._subscriptions.ids.kind))

    def subscribe_table(self, table: pa.Table) -> None:
        """Register a table: id, keywords, x0, y0, x1, y1; optional interest and region (GeoJSON or WKT; wins over the box)."""
        with self._lock.writing():
            self._put(read_subscription_table(table, self._subscriptions.context))

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        """Remove subscriptions, by a list of ids or a column of a table; unknown ids are ignored."""
        with self._lock.writing():
            self._remove(numbers_of_ids(ids, self._subscriptions.ids))
            self._compact()
            self._start_merge()
            self._last_report.value = MatchReport()

    @property
    def is_merging(self) -> bool:
        """Whether a background thread merges changes into the index."""
        return self._merge.is_running

    def wait_for_merge(self) -> None:
        """Wait until nothing is left to merge: for the running merge, and for further ones if the index wants them."""
        while True:
            self._merge.wait()
            with self._lock.writing():
                self._start_merge()
                # A merge ends with the lock that is held here, so one that was just started is still running.
                if not self._merge.is_running:
                    return

    def settle(self) -> None:
        """The old name of `wait_for_merge`."""
        warnings.warn("Matcher.settle is deprecated; use Matcher.wait_for_merge", DeprecationWarning, stacklevel=2)
        self.wait_for_merge()

    def _put(self, read: ReadSubscriptions) -> None:
        store = self._subscriptions
        numbers = store.numbers_of(read)
        self._remove(numbers)
        n_before = store.clauses.n_alive
        new = store.put(read, numbers)
        if len(new) > n_before:
            # Most subscriptions are new: a build packs better than single insertions.
            self._build_index()
        elif len(new):
            self._index.insert(store.clauses, new)
        self._compact()
        self._start_merge()
        self._last_report.value = MatchReport(rejected=read.rejected)

    def _remove(self, numbers: NDArray[np.int32]) -> None:
        slots = self._subscriptions.remove(numbers)
        if len(slots):
            self._index.delete(self._subscriptions.clauses, slots)

    def _compact(self) -> None:
        if self._subscriptions.compact():
            self._build_index()

    def _start_merge(self) -> None:
        """Start a merge if the index wants one; the writer holds the lock."""
        if self._index.wants_merge and not self._merge.is_running:
            self._merge.start(self._index.begin_merge(self._subscriptions.clauses), self._finish_merge)

    def _finish_merge(self, merged: Any) -> None:
        with self._lock.writing():
            self._index.finish_merge(self._subscriptions.clauses, merged)

    def _build_index(self) -> None:
        """Build with the history, which is read again: keywords of later subscriptions count too."""
        history = None
        if self._history is not None:
            history = read_message_table(self._history, self._subscriptions.context).batch
        self._index.build(self._subscriptions.clauses, history)

    # --- messages ----------------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> list[Delivery]:
        """Match message objects; each delivery once, in no particular order. Bad ones are in `report.rejected`."""
        message_list = as_list(messages, Message, "messages")
        with self._lock.reading():
            batch, rejected = read_message_objects(message_list, self._subscriptions.context)
            row, number, self._last_report.value = self._match(batch, rejected)
            subscription_ids = self._subscriptions.ids.take(number).to_pylist()
        pairs = zip(subscription_ids, row.tolist(), strict=True)
        return [Delivery(subscription, message_list[position].id) for subscription, position in pairs]

    def match_table(self, table: pa.Table, threads: int | None = 1) -> pa.Table:
        """Match a table of messages (id; keywords or text; x, y or x0, y0, x1, y1) into message_id, subscription_id.

        `threads` share the rows of a large table; None = one for each core.
        """
        n_rows = table.num_rows if isinstance(table, pa.Table) else 0
        n_threads = usable_threads(threads, n_rows)
        parts_of_table = split_rows(n_rows, n_threads)
        with self._lock.reading():
            if len(parts_of_table) == 1:
                messages = read_message_table(table, self._subscriptions.context)
                deliveries, self._last_report.value = self._deliver(messages)
                return deliveries
            parts = run_in_threads(
                lambda first, n: self._deliver(read_message_table(table.slice(first, n), self._subscriptions.context)),
                parts_of_table,
                n_threads,
            )
        self._last_report.value = joined_reports([report for _, report in parts], [first for first, _ in parts_of_table])
        return pa.concat_tables([deliveries for deliveries, _ in parts])

    def encode_table(self, table: pa.Table) -> EncodedMessages:
        """Read a table of messages once, for one or several calls of `match_encoded` of this matcher."""
        with self._lock.reading():
            return read_message_table(table, self._subscriptions.context)

    def match_encoded(self, messages: EncodedMessages) -> pa.Table:
        """As `match_table`, for messages read before. Keywords of subscriptions that came later are not seen in them."""
        with self._lock.reading():
            deliveries, self._last_report.value = self._deliver(messages)
        return deliveries

    def _deliver(self, messages: EncodedMessages) -> tuple[pa.Table, MatchReport]:
        """The deliveries of messages; the caller holds the lock."""
        batch = messages.batch
        if self._subscriptions.clauses.has_checks:
            row, number, report = self._match(batch, messages.rejected)
            return delivery_table(messages.ids.take(number_column(row)), self._subscriptions.ids.take(number)), report
        groups, work = self._index.match(self._subscriptions.clauses, batch)
        deliveries = deliver_groups(groups, batch.row, messages.ids, self._subscriptions.clauses, self._subscriptions.ids)
        return deliveries, MatchReport(len(batch), deliveries.num_rows, work.candidates, work.nodes, messages.rejected)

    def _match(
        self, batch: MessageBatch, rejected: list[tuple[int, str]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], MatchReport]:
        """The input row and the subscription number of each delivery."""
        groups, work = self._index.match(self._subscriptions.clauses, batch)
        message, number = self._subscriptions.deliveries(groups, batch)
        report = MatchReport(len(batch), len(number), work.candidates, work.nodes, rejected)
        return batch.row[message], number, report

    # --- insight -----------------------------------------------------------------------------------------------------

    def explain(self, message: Message, subscription_id: Id) -> Explanation:
        """Why the message does or does not reach the subscription, and its path through the index."""
        if not isinstance(message, Message):
            raise NearcastError(
                f"explain was given {message!r}; expected explain(message, subscription_id) with a nearcast.Message"
            )
        checked_id(subscription_id, "subscription", NearcastError)
        with self._lock.reading():
            batch, rejected = read_message_objects([message], self._subscriptions.context)
            if rejected:
                return Explanation(False, (f"the message is not usable: {rejected[0][1]}",))
            matched, reasons, slot = self._subscriptions.explain(batch, subscription_id)
            path = [] if slot is None else self._index.explain(self._subscriptions.clauses, batch, slot)
            return Explanation(matched, tuple(reasons), tuple(path))

    def cells(self, box: Box, most: int = 2000) -> pa.Table:
        """The fullest cells of the index that meet a box: x0, y0, x1, y1, level, load. No rows if the index has no cells."""
        with self._lock.reading():
            cells = self._index.cells(box, most)
        return pa.table(cells._asdict() if cells is not None else {name: [] for name in IndexCells._fields})

    def stats(self) -> dict[str, int | float | str]:
        """Sizes: subscriptions, clauses, keywords, bytes (of the whole matcher), and those of the index."""
        with self._lock.reading():
            clauses, keywords = self._subscriptions.clauses, self._subscriptions.keywords
            sizes = {f"index_{name}" if name == "bytes" else name: value for name, value in self._index.stats().items()}
            return {
                "index": self._index.name,
                "subscriptions": clauses.n_subscriptions,
                "clauses": clauses.n_alive,
                "copies": clauses.n_alive / max(1, clauses.n_subscriptions),
                "keywords": keywords.n,
                "bytes": self._subscriptions.n_bytes + int(sizes["index_bytes"]),
                "depth": 1,
                **sizes,
            }

    # --- on disk -----------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write everything to a folder of arrays; an existing saved folder is replaced as a whole."""
        with self._lock.reading():
            store = self._subscriptions
            facts = {**store.facts(), "index": self._index.facts()}
            write_folder(folder, _FOLDER_KIND, facts, joined_parts({**store.arrays(), "index": self._index.arrays()}))

    @classmethod
    def open(cls, folder: str | Path) -> Matcher:
        """A saved matcher, memory-mapped: opening takes milliseconds at any size. Changes do not reach the folder."""
        facts, arrays = read_folder(folder, _FOLDER_KIND)
        parts = split_parts(arrays, ("keywords", "ids", "clauses", "shapes", "index"))
        matcher = cls(facts["index"]["name"], facts["space"], **facts["index"]["parameters"])
        matcher._subscriptions = SubscriptionStore.from_saved(facts, parts)
        matcher._index.restore(parts["index"])
        return matcher
