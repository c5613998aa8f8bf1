"""`Matcher`: boolean subscriptions, matched exactly; each message goes to every subscription it concerns, once.

The hot path is `match_table`: read → index.match → verify → ids.
"""

from __future__ import annotations

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
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.folder import read_folder, write_folder
from nearcast.columns.identifiers import Identifiers, id_array
from nearcast.columns.messages import MessageBatch
from nearcast.columns.schemas import delivery_table
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.arguments import listed, numbers_of
from nearcast.engine.clause_building import clauses_of_parsed, clauses_of_plain
from nearcast.engine.explanation import explain_match
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import Border
from nearcast.engine.reading_messages import EncodedMessages, read_message_objects, read_message_table
from nearcast.engine.reading_subscriptions import ReadSubscriptions, read_subscription_objects, read_subscription_table
from nearcast.engine.registry import create
from nearcast.engine.report import LastReport
from nearcast.engine.subscription_store import Filed, compacted, wants_compacting
from nearcast.engine.threads import BackgroundMerge, ReadWriteLock, run_in_threads, split_rows, usable_threads
from nearcast.engine.verification import Verifier
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
    """Registers boolean subscriptions and tells which of them each message concerns.

    Parameters
    ----------
    index
        A name of `nearcast.indexes()`, or "auto" for the best one.
    space
        "lonlat" (degrees, metres) or "plane" (any finite numbers).
    analysis
        How text becomes keywords; the same for messages and for quoted phrases of interests.
    history
        A table of past messages, as for `match_table`: indexes with a cost model build for such a stream.
    **parameters
        Options of the index.

    One thread may change subscriptions while others publish: a change waits for running matches, then is seen by all. When many
    changes have come, the index may bring itself into shape in a thread of its own; matching goes on meanwhile (see `settle`).
    """

    def __init__(
        self,
        index: str = "auto",
        space: str = "lonlat",
        analysis: Analysis | None = None,
        history: pa.Table | None = None,
        **parameters: Any,
    ) -> None:
        self._space = space_of(space)
        self._analysis = analysis or DEFAULT_ANALYSIS
        self._index = create(BOOLEAN_INDEXES, index, parameters)
        self._keywords = KeywordKind(self._analysis)
        self._ids = Identifiers()
        self._clauses = ClauseStore()
        self._shapes = ShapeStore()
        self._verifier = Verifier(self._space)
        self._lock = ReadWriteLock()
        self._merge = BackgroundMerge()
        self._history = history
        self._last_report = LastReport()

    @property
    def report(self) -> MatchReport:
        """What the last call of this thread did, and the rows it left out."""
        return self._last_report.value

    @property
    def _border(self) -> Border:
        return Border(self._space, self._keywords, self._analysis)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Register subscriptions; a known id replaces the old one. Bad ones are in `report.rejected`."""
        given = listed(subscriptions, Subscription, "subscriptions")
        with self._lock.writing():
            self._file(read_subscription_objects(given, self._border, self._ids.kind))

    def subscribe_table(self, table: pa.Table) -> None:
        """Register a table: id, keywords, x0, y0, x1, y1; optional interest and region (GeoJSON or WKT; wins over the box)."""
        with self._lock.writing():
            self._file(read_subscription_table(table, self._border))

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        """Forget subscriptions, by a list of ids or a column of a table; unknown ids are ignored."""
        with self._lock.writing():
            self._remove(numbers_of(ids, self._ids))
            self._clear_dead()
            self._merge_beside()
            self._last_report.value = MatchReport()

    @property
    def is_merging(self) -> bool:
        """Whether the index is bringing itself into shape in a thread of its own."""
        return self._merge.is_running

    def settle(self) -> None:
        """Wait until the index is in shape: for the merge under way, and for another one as long as it wants one."""
        while True:
            self._merge.wait()
            with self._lock.writing():
                self._merge_beside()
                # A merge ends with the lock that is held here, so one that was just started is still running.
                if not self._merge.is_running:
                    return

    def _file(self, read: ReadSubscriptions) -> None:
        plain_rows = read.plain.row if read.plain is not None else np.empty(0, np.int64)
        rows = np.concatenate([plain_rows, [item.row for item in read.parsed]]).astype(np.int64)
        numbers = self._ids.add(read.ids.take(number_column(rows)))
        self._remove(numbers)
        n_before = self._clauses.n_alive
        slots = [np.empty(0, np.int32)]
        if read.plain is not None and len(plain_rows):
            slots.append(self._clauses.add(clauses_of_plain(read.plain, numbers[: len(plain_rows)])))
        if read.parsed:
            owners = numbers[len(plain_rows) :]
            batch = clauses_of_parsed(read.parsed, owners, self._space, self._keywords, self._shapes)
            slots.append(self._clauses.add(batch))
        new = np.concatenate(slots)
        if len(new) > n_before:
            # Most of what there is, is new: building anew packs better than inserting one by one.
            self._build_index()
        elif len(new):
            self._index.insert(self._clauses, new)
        self._clear_dead()
        self._merge_beside()
        self._last_report.value = MatchReport(rejected=read.rejected)

    def _remove(self, numbers: NDArray[np.int32]) -> None:
        slots = self._clauses.remove(numbers)
        if len(slots):
            self._index.delete(self._clauses, slots)

    def _clear_dead(self) -> None:
        """File everything anew without the dead when they are in the majority."""
        if not wants_compacting(self._clauses):
            return
        self._ids, self._shapes, self._clauses = compacted(Filed(self._ids, self._shapes, self._clauses))
        self._build_index()

    def _merge_beside(self) -> None:
        """Start a merge of the index if it wants one; the writer holds the lock."""
        if self._index.wants_merge and not self._merge.is_running:
            self._merge.start(self._index.begin_merge(self._clauses), self._finish_merge)

    def _finish_merge(self, merged: Any) -> None:
        with self._lock.writing():
            self._index.finish_merge(self._clauses, merged)

    def _build_index(self) -> None:
        """Build with the history, read anew: words that came with later subscriptions count too."""
        history = None
        if self._history is not None:
            history = read_message_table(self._history, self._border).batch
        self._index.build(self._clauses, history)

    # --- messages ----------------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> list[Delivery]:
        """Match message objects; each delivery once, in no particular order. Bad ones are in `report.rejected`."""
        given = listed(messages, Message, "messages")
        with self._lock.reading():
            batch, rejected = read_message_objects(given, self._border)
            row, number, self._last_report.value = self._match(batch, rejected)
            subscription_ids = self._ids.take(number).to_pylist()
        return [Delivery(subscription, given[at].id) for subscription, at in zip(subscription_ids, row.tolist(), strict=True)]

    def match_table(self, table: pa.Table, threads: int | None = 1) -> pa.Table:
        """Match a table of messages (id; keywords or text; x, y or x0, y0, x1, y1) into message_id, subscription_id.

        `threads` share the rows of a large table; None = one for each core.
        """
        n_rows = table.num_rows if isinstance(table, pa.Table) else 0
        n_threads = usable_threads(threads, n_rows)
        pieces = split_rows(n_rows, n_threads)
        with self._lock.reading():
            if len(pieces) == 1:
                found, self._last_report.value = self._deliver(read_message_table(table, self._border))
                return found
            parts = run_in_threads(
                lambda first, n: self._deliver(read_message_table(table.slice(first, n), self._border)), pieces, n_threads
            )
        self._last_report.value = joined_reports([report for _, report in parts], [first for first, _ in pieces])
        return pa.concat_tables([found for found, _ in parts])

    def encode_table(self, table: pa.Table) -> EncodedMessages:
        """A table of messages read and turned into ids once, to be matched once or several times by this matcher."""
        with self._lock.reading():
            return read_message_table(table, self._border)

    def match_encoded(self, messages: EncodedMessages) -> pa.Table:
        """As `match_table`, for messages read before. Words that only later subscriptions brought are not seen in them."""
        with self._lock.reading():
            found, self._last_report.value = self._deliver(messages)
        return found

    def _deliver(self, messages: EncodedMessages) -> tuple[pa.Table, MatchReport]:
        """The deliveries of messages; somebody holds the lock."""
        batch = messages.batch
        if self._clauses.has_checks:
            row, number, report = self._match(batch, messages.rejected)
            return delivery_table(messages.ids.take(number_column(row)), self._ids.take(number)), report
        groups, work = self._index.match(self._clauses, batch)
        deliveries = deliver_groups(groups, batch.row, messages.ids, self._clauses, self._ids)
        return deliveries, MatchReport(len(batch), deliveries.num_rows, work.candidates, work.nodes, messages.rejected)

    def _match(
        self, batch: MessageBatch, rejected: list[tuple[int, str]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], MatchReport]:
        """The input row and the subscription number of each delivery."""
        groups, work = self._index.match(self._clauses, batch)
        message, number = self._verifier.deliveries(groups, self._clauses, self._shapes, batch)
        report = MatchReport(len(batch), len(number), work.candidates, work.nodes, rejected)
        return batch.row[message], number, report

    # --- insight -----------------------------------------------------------------------------------------------------

    def explain(self, message: Message, subscription_id: Id) -> Explanation:
        """Why the message does or does not reach the subscription, and the way through the index."""
        if not isinstance(message, Message):
            raise NearcastError(
                f"explain was given {message!r}; expected explain(message, subscription_id) with a nearcast.Message"
            )
        checked_id(subscription_id, "subscription", NearcastError)
        with self._lock.reading():
            batch, rejected = read_message_objects([message], self._border)
            if rejected:
                return Explanation(False, (f"the message is not usable: {rejected[0][1]}",))
            number = int(self._ids.find(id_array([subscription_id]))[0])
            slots = self._clauses.slots_of(number)
            if not slots:
                return Explanation(False, (f"there is no subscription {subscription_id!r}",))
            matched, reasons, slot = explain_match(self._clauses, self._shapes, self._keywords, self._space, batch, slots)
            path = self._index.explain(self._clauses, batch, slot)
            return Explanation(matched, tuple(reasons), tuple(path))

    def cells(self, box: Box, most: int = 2000) -> pa.Table:
        """The fullest cells of the index that meet a box: x0, y0, x1, y1, level, load. None where it keeps no cells."""
        with self._lock.reading():
            found = self._index.cells(box, most)
        return pa.table(found._asdict() if found is not None else {name: [] for name in IndexCells._fields})

    def stats(self) -> dict[str, int | float | str]:
        """Sizes: subscriptions, clauses, keywords, bytes (everything the matcher holds), and those of the index."""
        with self._lock.reading():
            own = {f"index_{name}" if name == "bytes" else name: value for name, value in self._index.stats().items()}
            held = (self._ids.n_bytes, self._clauses.n_bytes, self._shapes.n_bytes, self._keywords.space.n_bytes)
            return {
                "index": self._index.name,
                "subscriptions": self._clauses.n_subscriptions,
                "clauses": self._clauses.n_alive,
                "copies": self._clauses.n_alive / max(1, self._clauses.n_subscriptions),
                "keywords": self._keywords.n,
                "bytes": sum(held) + int(own["index_bytes"]),
                "depth": 1,
                **own,
            }

    # --- on disk -----------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write everything to a folder of arrays; an existing saved folder is replaced as a whole."""
        with self._lock.reading():
            parts = {
                "keywords": self._keywords.space.arrays(),
                "ids": self._ids.arrays(),
                "clauses": self._clauses.arrays(),
                "shapes": self._shapes.arrays(),
                "index": self._index.arrays(),
            }
            facts = {
                "space": self._space.value,
                "analysis": self._analysis.to_dict(),
                "keyword_kind": self._keywords.name,
                "id_kind": self._ids.kind,
                "index": self._index.facts(),
            }
            arrays = {f"{part}.{name}": array for part, given in parts.items() for name, array in given.items()}
            write_folder(folder, _FOLDER_KIND, facts, arrays)

    @classmethod
    def open(cls, folder: str | Path) -> Matcher:
        """A saved matcher, memory-mapped: opening takes milliseconds at any size. Changes to it leave the folder as it is."""
        facts, arrays = read_folder(folder, _FOLDER_KIND)
        analysis = Analysis.from_dict(facts["analysis"])
        matcher = cls(facts["index"]["name"], facts["space"], analysis, **facts["index"]["parameters"])

        def part(name: str) -> dict[str, NDArray[Any]]:
            return {key[len(name) + 1 :]: array for key, array in arrays.items() if key.startswith(f"{name}.")}

        matcher._keywords = KeywordKind.from_arrays(facts["keyword_kind"], part("keywords"), analysis)
        matcher._ids = Identifiers.from_arrays(facts["id_kind"], part("ids"))
        matcher._clauses = ClauseStore(part("clauses"))
        matcher._shapes = ShapeStore(part("shapes"))
        matcher._index.restore(part("index"))
        return matcher
