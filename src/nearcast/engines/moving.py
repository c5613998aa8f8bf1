"""`MovingMatcher`: subscriptions that travel, messages that live for a while; every call tells what it changes.

State is never kept per subscription: its result is what the index finds now. A call reports the difference between the results
before and after it, so what comes and goes within one call is not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.folder import read_folder, write_folder
from nearcast.columns.identifiers import Identifiers, id_array
from nearcast.columns.live_messages import LiveMessages
from nearcast.columns.messages import MessageBatch
from nearcast.columns.shapes import ShapeStore
from nearcast.engines.boolean import _listed, _move_shapes
from nearcast.engines.border import Border
from nearcast.engines.explaining import explain_match
from nearcast.engines.filing import clauses_of_parsed, clauses_of_plain
from nearcast.engines.keyword_kind import KeywordKind
from nearcast.engines.locks import ReadWriteLock
from nearcast.engines.moving_changes import NO_PAIRS, Changes, Pairs, cancelled, change_objects, difference, joined
from nearcast.engines.moving_messages import TimedMessages, read_timed_objects, read_timed_table
from nearcast.engines.moving_regions import ReadMoves, circle_in_place, moved_clauses, read_move_table, read_moves
from nearcast.engines.reading_messages import read_message_objects
from nearcast.engines.reading_subscriptions import ReadSubscriptions, read_subscription_objects, read_subscription_table
from nearcast.engines.verify import Verifier
from nearcast.errors import NearcastError
from nearcast.indexes.base import Matches
from nearcast.indexes.moving_base import Boxes, Found, nowhere
from nearcast.indexes.registry import create_moving_index
from nearcast.kernels.checks import PLAIN
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.delivery import Change, Explanation, MatchReport
from nearcast.model.ids import Id, checked_id
from nearcast.model.message import Message, read_time
from nearcast.model.regions import Box, Region
from nearcast.model.spaces import space_of
from nearcast.model.subscription import Subscription

_FOLDER_KIND = "moving matcher"
# The dead are cleared away when they outnumber the living, but not before there are this many.
_LEAST_DEAD = 1024


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
    **parameters
        Options of the index.

    Time is that of the messages: `now` is the largest time seen. A message is alive while now < expires. `report` tells of the
    last call. Calls that change something wait for each other; `current`, `explain`, `stats` and `save` run beside each other.
    """

    def __init__(self, index: str = "auto", space: str = "lonlat", analysis: Analysis | None = None, **parameters: Any) -> None:
        self._space = space_of(space)
        self._analysis = analysis or DEFAULT_ANALYSIS
        self._index = create_moving_index(index, parameters)
        self._keywords = KeywordKind(self._analysis)
        self._ids = Identifiers()
        self._clauses = ClauseStore()
        self._shapes = ShapeStore()
        self._messages = LiveMessages()
        self._verifier = Verifier(self._space)
        self._lock = ReadWriteLock()
        self.report = MatchReport()

    @property
    def now(self) -> float | None:
        """The largest time seen, in seconds since 1970; None before the first."""
        return self._messages.now if math.isfinite(self._messages.now) else None

    @property
    def _border(self) -> Border:
        return Border(self._space, self._keywords, self._analysis)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, subscriptions: Iterable[Subscription]) -> list[Change]:
        """Register subscriptions; a known id replaces the old one. Changes of their results: living messages enter at once."""
        listed = _listed(subscriptions, Subscription, "subscriptions")
        with self._lock.writing():
            return change_objects(self._file(read_subscription_objects(listed, self._border, self._ids.kind)))

    def subscribe_table(self, table: pa.Table) -> pa.Table:
        """As `subscribe`, for a table as `Matcher.subscribe_table` takes it; returns subscription_id, message_id, change."""
        with self._lock.writing():
            return self._file(read_subscription_table(table, self._border))

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        """Forget subscriptions; unknown ids are ignored, and nothing is reported."""
        wanted = [checked_id(value, "subscription", NearcastError) for value in _listed(ids, (int, str), "ids")]
        with self._lock.writing():
            kind = str if self._ids.kind == "string" else int
            known = id_array([value for value in wanted if isinstance(value, kind)])
            self._remove(np.unique(self._ids.find(known)))
            self._clear_dead()
            self.report = MatchReport()

    def _file(self, read: ReadSubscriptions) -> pa.Table:
        self.report = MatchReport(rejected=read.rejected)
        plain_rows = read.plain.row if read.plain is not None else np.empty(0, np.int64)
        rows = np.concatenate([plain_rows, [item.row for item in read.parsed]]).astype(np.int64)
        numbers = self._ids.add(read.ids.take(pa.array(rows)))
        before = self._results(numbers)
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
            self._index.build(self._clauses, self._messages)
        elif len(new):
            self._index.insert(self._clauses, self._messages, new)
        return self._reported(difference(before, self._results(numbers)))

    def _remove(self, numbers: NDArray[np.int32]) -> None:
        slots = self._clauses.remove(numbers)
        if len(slots):
            self._index.delete(self._clauses, self._messages, slots)

    # --- messages ----------------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> list[Change]:
        """Take in messages: what is due by their times leaves, and they enter. Bad ones are in `report.rejected`."""
        listed = _listed(messages, Message, "messages")
        with self._lock.writing():
            return change_objects(self._arrive(read_timed_objects(listed, self._border)))

    def publish_table(self, table: pa.Table) -> pa.Table:
        """As `publish`, for a table: id; keywords or text; x, y or x0, y0, x1, y1; optional time and expires."""
        with self._lock.writing():
            return self._arrive(read_timed_table(table, self._border))

    def advance(self, now: float | datetime) -> list[Change]:
        """Set the clock forward; messages that expire leave. An earlier time than `now` changes nothing."""
        return change_objects(self.advance_table(now))

    def advance_table(self, now: float | datetime) -> pa.Table:
        """As `advance`, with the changes as a table."""
        seconds = read_time(now, "now")
        with self._lock.writing():
            self.report = MatchReport()
            return self._reported(Changes(self._expire(seconds)[1], NO_PAIRS))

    def _expire(self, now: float) -> tuple[NDArray[np.int32], Pairs]:
        """End what is due; returns its slots and the results it leaves."""
        gone = self._messages.due(now)
        if len(gone) == 0:
            return gone, NO_PAIRS
        batch = self._messages.batch(gone, self._keywords.n)
        return gone, self._matched(self._index.match(self._clauses, batch), gone, batch)

    def _arrive(self, read: TimedMessages) -> pa.Table:
        self._reject_other_kind(read)
        self.report = MatchReport(messages=len(read.batch))
        now = float(np.fmax.reduce(read.time, initial=self._messages.now))
        gone, left = self._expire(now)
        # Dead on arrival: never part of a result.
        read.keep(read.expires > now)
        self._reject_living(read)
        self.report.messages, self.report.rejected = len(read.batch), read.rejected
        if len(read.batch) == 0:
            return self._reported(Changes(left, NO_PAIRS))
        slots = self._messages.add(read.ids, read.batch, read.expires)
        matches = self._index.arrive(self._clauses, self._messages, slots, read.batch)
        changes = Changes(left, self._matched(matches, slots, read.batch))
        old = dict(zip(self._messages.ids(gone).to_pylist(), gone.tolist(), strict=True))
        same = {slot: old[id] for id, slot in zip(read.ids, slots.tolist(), strict=True) if id in old} if old else {}
        return self._reported(cancelled(changes, same) if same else changes)

    def _reject_other_kind(self, read: TimedMessages) -> None:
        kinds = set(map(type, read.ids))
        if len(kinds) == 1 and (str in kinds) == (self._messages.kind == "string") and self._messages.kind is not None:
            return
        reasons = {}
        for at, id in enumerate(read.ids):
            kind = "string" if isinstance(id, str) else "int"
            self._messages.kind = self._messages.kind or kind
            if kind != self._messages.kind:
                reasons[at] = f"the id {id!r} is of another kind than the ids of the messages before it: keep to one kind"
        read.reject(reasons)

    def _reject_living(self, read: TimedMessages) -> None:
        reasons, seen = {}, set(read.ids)
        if len(seen) == len(read.ids) and not self._messages.has_any(seen):
            return
        seen.clear()
        for at, id in enumerate(read.ids):
            if self._messages.has(id):
                reasons[at] = f"a message with the id {id!r} is still alive; give each living message an id of its own"
            elif id in seen:
                reasons[at] = f"the id {id!r} comes twice in one batch; only its first message is used"
            seen.add(id)
        read.reject(reasons)

    # --- moving ------------------------------------------------------------------------------------------------------

    def move(self, moves: Mapping[Id, object]) -> list[Change]:
        """Give subscriptions new regions (None: everywhere). Unknown ids and bad regions are in `report.rejected`."""
        with self._lock.writing():
            return change_objects(self._move(read_moves(moves, self._ids, self._clauses, self._space)))

    def move_table(self, table: pa.Table) -> pa.Table:
        """As `move`, for a table: id, x0, y0, x1, y1, or region (GeoJSON or WKT); of several rows of one id the last counts."""
        with self._lock.writing():
            return self._move(read_move_table(table, self._ids, self._clauses, self._space))

    def _move(self, read: ReadMoves) -> pa.Table:
        self.report = MatchReport(rejected=read.rejected)
        first, count = self._clauses.spans(read.number)
        is_plain = (count == 1) & (self._clauses.checks().check[first] == PLAIN)
        to = Boxes(*(side[is_plain] for side in read.boxes))
        parts = [Changes(NO_PAIRS, NO_PAIRS)]
        if is_plain.any():
            moved = self._index.move(self._clauses, self._messages, first[is_plain], to)
            parts.append(Changes(self._found(moved.left), self._found(moved.entered)))
        rest = [
            (int(read.number[at]), Box(*(float(side[at]) for side in read.boxes))) for at in np.flatnonzero(~is_plain).tolist()
        ]
        parts.append(self._reshape([*rest, *read.others]))
        return self._reported(joined(parts))

    def _reshape(self, moves: list[tuple[int, Region]]) -> Changes:
        """Give regions to subscriptions that are more than a box, or become so."""
        numbers = np.array([number for number, _ in moves], np.int32)
        before = self._results(numbers)
        anew: list[tuple[int, Region]] = []
        slots: list[int] = []
        bounds: list[tuple[float, float, float, float]] = []
        for number, where in moves:
            box = circle_in_place(self._clauses, self._shapes, number, where, self._space)
            if box is None:
                anew.append((number, where))
                continue
            own = self._clauses.slots_of(number)
            slots += own
            bounds += [box.bounds] * len(own)
            checks = self._clauses.checks()
            self._shapes.move_circle(int(checks.shape[checks.check[own[0]]]), where)  # type: ignore[arg-type]
        if slots:
            to = Boxes(*np.array(bounds, np.float64).T.copy())
            self._index.refile(self._clauses, self._messages, np.array(slots, np.int32), to)
        if anew:
            batch = moved_clauses(self._clauses, self._shapes, self._space, anew)
            self._remove(np.array([number for number, _ in anew], np.int32))
            self._index.insert(self._clauses, self._messages, self._clauses.add(batch))
        return difference(before, self._results(numbers))

    # --- results -----------------------------------------------------------------------------------------------------

    def current(self, subscription_id: Id) -> set[Id]:
        """The ids of the living messages in the result of a subscription; none if there is no such subscription."""
        id = checked_id(subscription_id, "subscription", NearcastError)
        with self._lock.reading():
            found = self._results(self._ids.find(id_array([id])))
            return set(self._messages.ids(found.message).to_pylist())

    def current_table(self, ids: Iterable[Id] | None = None) -> pa.Table:
        """The results of several subscriptions, or of all: subscription_id, message_id. Unknown ids have none."""
        wanted = None if ids is None else [checked_id(value, "subscription", NearcastError) for value in ids]
        with self._lock.reading():
            all_numbers = np.arange(self._ids.n, dtype=np.int32)
            numbers = all_numbers if wanted is None else np.unique(self._ids.find(id_array(wanted)))
            found = self._results(numbers)
            return pa.table({"subscription_id": self._ids.take(found.number), "message_id": self._messages.ids(found.message)})

    def _results(self, numbers: NDArray[np.int32]) -> Pairs:
        """What is in the results of these subscriptions now."""
        first, count = self._clauses.spans(numbers)
        slots = np.repeat(first, count)
        slots += np.arange(len(slots), dtype=np.int32) - np.repeat(np.cumsum(count) - count, count).astype(np.int32)
        if len(slots) == 0 or self._messages.n_alive == 0:
            return NO_PAIRS
        return self._found(self._index.look(self._clauses, self._messages, slots, nowhere(len(slots))))

    def _found(self, found: Found) -> Pairs:
        """The results behind pairs of clauses and messages: checks applied, each subscription and message once."""
        if not self._clauses.has_checks:
            self._count(found.nodes_visited, found.candidates)
            return Pairs(self._clauses.checks().owner[found.clause], found.message)
        slots, message = np.unique(found.message, return_inverse=True)
        order = np.argsort(message, kind="stable")
        matches = Matches(message[order].astype(np.int32), found.clause[order], found.nodes_visited, found.candidates)
        return self._matched(matches, slots, self._messages.batch(slots, self._keywords.n))

    def _matched(self, matches: Matches, slots: NDArray[np.int32], batch: MessageBatch) -> Pairs:
        """As `_found`; message m of the matches is message m of the batch, at `slots[m]`."""
        self._count(matches.nodes_visited, matches.candidates)
        message, number = self._verifier.deliveries(matches, self._clauses, self._shapes, batch)
        return Pairs(number, slots[message])

    def _count(self, nodes: int, candidates: int) -> None:
        self.report.nodes_visited += nodes
        self.report.candidates += candidates

    def _reported(self, changes: Changes) -> pa.Table:
        """The changes as a table; then, with all ids told, the dead are cleared away."""
        table = changes.to_table(self._ids, self._messages)
        self.report.matches = len(changes)
        if self._messages.n_dead > max(_LEAST_DEAD, self._messages.n_alive):
            self._index.purge(self._clauses, self._messages)
            self._messages.release()
        self._clear_dead()
        return table

    def _clear_dead(self) -> None:
        """File all subscriptions anew without the dead clauses when these are in the majority."""
        n_dead = self._clauses.n - self._clauses.n_alive
        if n_dead <= max(_LEAST_DEAD, self._clauses.n_alive):
            return
        numbers, batch = self._clauses.alive_batch()
        ids, shapes, clauses = Identifiers(), ShapeStore(), ClauseStore()
        ids.kind = self._ids.kind
        ids.add(self._ids.take(numbers))
        _move_shapes(batch, self._shapes, shapes)
        clauses.add(batch)
        self._ids, self._shapes, self._clauses = ids, shapes, clauses
        self._index.build(self._clauses, self._messages)

    # --- insight -----------------------------------------------------------------------------------------------------

    def explain(self, message: Message, subscription_id: Id) -> Explanation:
        """Why the message does or does not belong to the subscription where it is now, and the way through the index."""
        with self._lock.reading():
            batch, rejected = read_message_objects([message], self._border)
            if rejected:
                return Explanation(False, (f"the message is not usable: {rejected[0][1]}",))
            slots = self._clauses.slots_of(int(self._ids.find(id_array([subscription_id]))[0]))
            if not slots:
                return Explanation(False, (f"there is no subscription {subscription_id!r}",))
            matched, reasons, slot = explain_match(self._clauses, self._shapes, self._keywords, self._space, batch, slots)
            path = self._index.explain(self._clauses, batch, slot)
            if message.expires is not None and message.expires <= self._messages.now:
                matched, reasons = False, [f"the message expired at {message.expires!r}; now is {self.now!r}", *reasons]
            return Explanation(matched, tuple(reasons), tuple(path))

    def stats(self) -> dict[str, int | float | str]:
        """Sizes: subscriptions, living messages, clauses, keywords, bytes (of all arrays), and those of the index."""
        with self._lock.reading():
            own = {f"index_{name}" if name == "bytes" else name: value for name, value in self._index.stats().items()}
            held = (self._ids, self._clauses, self._shapes, self._keywords.space, self._messages)
            return {
                "index": self._index.name,
                "subscriptions": self._clauses.n_subscriptions,
                "messages": self._messages.n_alive,
                "clauses": self._clauses.n_alive,
                "copies": self._clauses.n_alive / max(1, self._clauses.n_subscriptions),
                "keywords": self._keywords.n,
                "bytes": sum(part.n_bytes for part in held) + int(own["index_bytes"]),
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
                "messages": self._messages.arrays(),
                "index": self._index.arrays(),
            }
            facts = {
                "space": self._space.value,
                "analysis": self._analysis.to_dict(),
                "keyword_kind": self._keywords.name,
                "id_kind": self._ids.kind,
                "message_id_kind": self._messages.kind,
                "now": self.now,
                "index": self._index.facts(),
            }
            arrays = {f"{part}.{name}": array for part, given in parts.items() for name, array in given.items()}
            write_folder(folder, _FOLDER_KIND, facts, arrays)

    @classmethod
    def open(cls, folder: str | Path) -> MovingMatcher:
        """A saved matcher. Changes to it leave the folder as it is."""
        facts, arrays = read_folder(folder, _FOLDER_KIND)
        analysis = Analysis.from_dict(facts["analysis"])
        matcher = cls(facts["index"]["name"], facts["space"], analysis, **facts["index"]["parameters"])

        def part(name: str) -> dict[str, NDArray[Any]]:
            return {key[len(name) + 1 :]: array for key, array in arrays.items() if key.startswith(f"{name}.")}

        matcher._keywords = KeywordKind.from_arrays(facts["keyword_kind"], part("keywords"), analysis)
        matcher._ids = Identifiers.from_arrays(facts["id_kind"], part("ids"))
        matcher._clauses = ClauseStore(part("clauses"))
        matcher._shapes = ShapeStore(part("shapes"))
        now = -math.inf if facts["now"] is None else facts["now"]
        matcher._messages = LiveMessages.from_arrays(now, facts["message_id_kind"], part("messages"))
        matcher._index.restore(part("index"))
        return matcher
