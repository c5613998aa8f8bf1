"""`Ranker`: for every subscription the k most relevant messages of a sliding window, at every moment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from nearcast.columns.folder import read_folder, write_folder
from nearcast.columns.growing import aligned_copy
from nearcast.columns.identifiers import Identifiers, id_array
from nearcast.engine.arguments import as_list as _listed
from nearcast.engine.arguments import numbers_of_ids
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext
from nearcast.engine.registry import create, index_class
from nearcast.engine.report import LastReport
from nearcast.engine.threads import ReadWriteLock, checked_threads
from nearcast.errors import NearcastError
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.delivery import Explanation, MatchReport, RankChange
from nearcast.model.inputs import Id, checked_id
from nearcast.model.message import Message, read_time
from nearcast.model.normalise import Keyword
from nearcast.model.regions import Box
from nearcast.model.spaces import space_of
from nearcast.model.subscription import RankedSubscription
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.explanation import KeywordInfo, explain_message, ranker_stats
from nearcast.ranked.factory import make_engine, saved_buffer
from nearcast.ranked.index import DistanceScale, RankedIndex
from nearcast.ranked.indexes import RANKED_INDEXES, WINDOW_INDEXES
from nearcast.ranked.rank_changes import RankChanges, change_objects, change_table
from nearcast.ranked.reading import (
    ArrivingRows,
    RankedSubscriptionRows,
    read_arriving_objects,
    read_arriving_table,
    read_ranked_objects,
    read_ranked_table,
    reject_duplicate_ids,
)
from nearcast.ranked.saving import by_name, by_part, engine_arrays, engine_facts, restore_engine, window_facts, window_of
from nearcast.ranked.score_parameters import WordWeights, max_distance_of
from nearcast.ranked.subscriptions import table_of_shards
from nearcast.ranked.thread_shards import engine_in_shards

_FOLDER_KIND = "ranker"
_CHANGES = ("tick", "net")


class Ranker:
    """Keeps the best k messages of every ranked subscription and reports which enter (+1) and leave (-1) each list.

    Parameters
    ----------
    window
        `CountWindow(n)`: the last n messages; `TimeWindow(seconds)`: those of the last seconds, by their own times.
    index
        A name of `nearcast.indexes("ranked")`, or "auto" for the best one.
    buffer
        "floor", "cost_skyband", "skyband", "kmax" or "auto": which messages are kept beyond the best k. "floor" goes with
        "impact_grid", the others with the other indexes.
    space
        "lonlat" (degrees, metres) or "plane" (any finite numbers).
    bounds
        (x0, y0, x1, y1) or a `Box` around everything; its diagonal is the default of `max_distance` in the plane.
    max_distance
        Where proximity is 0. Default in lonlat: half the circumference of the Earth.
    idf, n_documents
        In how many of how many documents each word is: {word: count}. None: every word weighs 1.
    changes
        "tick": all changes of every tick; "net": only the differences between the beginning and the end of a call.
    window_index
        "window_grid", "window_ir_tree" or "auto": how the window is searched when lists are filled.
    threads
        Subscriptions are divided over this many threads, each with its own copy of the window.
    buffer_parameters, parameters
        Options of the buffer and of the index.

    A tick is the arrival of one message and the expiry of the messages that it pushes out. `report` describes the last call.
    """

    def __init__(
        self,
        window: CountWindow | TimeWindow,
        index: str = "auto",
        buffer: str = "auto",
        space: str = "lonlat",
        bounds: Box | Sequence[float] | None = None,
        max_distance: float | None = None,
        idf: Mapping[Keyword, int] | None = None,
        n_documents: int | None = None,
        changes: str = "tick",
        window_index: str = "auto",
        analysis: Analysis | None = None,
        threads: int = 1,
        buffer_parameters: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        if not isinstance(window, CountWindow | TimeWindow):
            raise NearcastError(f"window was given as {window!r}; expected nc.CountWindow(n) or nc.TimeWindow(seconds)")
        if changes not in _CHANGES:
            raise NearcastError(f"changes={changes!r} is unknown; give 'tick' or 'net'")
        self._window, self._space = window, space_of(space)
        self._analysis = analysis or DEFAULT_ANALYSIS
        self._keywords = KeywordKind(self._analysis)
        self._weights = WordWeights(idf, n_documents)
        self._ids = Identifiers()
        distances = DistanceScale(self._space.is_lonlat, max_distance_of(self._space, bounds, max_distance))
        self._engine = engine_in_shards(
            checked_threads(threads),
            lambda: make_engine(
                window,
                self._make_index(index, parameters),
                (buffer, buffer_parameters or {}),
                index_class(WINDOW_INDEXES, window_index)(distances),
                is_net=changes == "net",
            ),
        )
        self._lock = ReadWriteLock()
        self._last_report = LastReport()

    def _make_index(self, name: str, parameters: Mapping[str, Any]) -> RankedIndex:
        return create(RANKED_INDEXES, name, parameters)

    @property
    def report(self) -> MatchReport:
        """What the last call of this thread did, and the rows it left out."""
        return self._last_report.value

    @property
    def now(self) -> float | None:
        """The largest time seen, in seconds since 1970; None before the first."""
        return self._engine.now if math.isfinite(self._engine.now) else None

    @property
    def tick(self) -> int:
        """The sequence number of the last arrival, -1 before the first."""
        return self._engine.tick

    @property
    def _border(self) -> ReadingContext:
        return ReadingContext(self._space, self._keywords, self._analysis)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, subscriptions: Iterable[RankedSubscription]) -> list[RankChange]:
        """Register subscriptions; a known id replaces the old one. Their lists are filled from the window at once."""
        listed = _listed(subscriptions, RankedSubscription, "subscriptions")
        with self._lock.writing():
            return change_objects(self._file(read_ranked_objects(listed, self._border, self._ids.kind)))

    def subscribe_table(self, table: pa.Table) -> pa.Table:
        """As `subscribe`, for a table: id, keywords, x, y, and k (20) and spatial_weight (0.5) if they differ."""
        with self._lock.writing():
            return self._file(read_ranked_table(table, self._border))

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        """Remove subscriptions, by a list of ids or a column of a table.

        Unknown ids are ignored, and no changes are reported.
        """
        with self._lock.writing():
            self._engine.remove(numbers_of_ids(ids, self._ids))
            self._last_report.value = MatchReport()

    def _file(self, read: RankedSubscriptionRows) -> pa.Table:
        batch = read.batch._replace(number=self._ids.add(read.ids))
        return self._with_report(self._engine.put(batch, self._weights.of(self._keywords)), MatchReport(rejected=read.rejected))

    # --- messages ----------------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> list[RankChange]:
        """Add messages, one tick each. Bad ones are listed in `report.rejected` and make no tick."""
        listed = _listed(messages, Message, "messages")
        with self._lock.writing():
            return change_objects(self._arrive(read_arriving_objects(listed, self._border, self._is_timed)))

    def publish_table(self, table: pa.Table) -> pa.Table:
        """As `publish`, for a table: id; keywords or text; x, y; time."""
        with self._lock.writing():
            return self._arrive(read_arriving_table(table, self._border, self._is_timed))

    def advance(self, now: float | datetime) -> list[RankChange]:
        """Set the clock forward; messages that fall out of a time window leave. An earlier time changes nothing."""
        return change_objects(self.advance_table(now))

    def advance_table(self, now: float | datetime) -> pa.Table:
        """As `advance`, with the changes as a table."""
        seconds = read_time(now, "now")
        with self._lock.writing():
            return self._with_report(self._engine.advance(seconds), MatchReport())

    def refresh_idf(self, idf: Mapping[Keyword, int] | None, n_documents: int | None = None) -> list[RankChange]:
        """Use another table of word frequencies, also for messages of the window.

        A message whose score changes leaves and enters.
        """
        weights = WordWeights(idf, n_documents)
        with self._lock.writing():
            self._weights = weights
            return change_objects(self._with_report(self._engine.apply_word_weights(weights.of(self._keywords)), MatchReport()))

    @property
    def _is_timed(self) -> bool:
        return isinstance(self._window, TimeWindow)

    def _arrive(self, read: ArrivingRows) -> pa.Table:
        reject_duplicate_ids(read, self._window, self._engine)
        report = MatchReport(messages=len(read.row), rejected=read.rejected)
        if not self._is_timed:
            # No message expires by it in a count window; `now` reports it.
            self._engine.note_time(float(np.fmax.reduce(read.time, initial=-math.inf)))
        return self._with_report(self._engine.arrive(read.messages, self._weights.of(self._keywords)), report)

    # --- results -----------------------------------------------------------------------------------------------------

    def top(self, subscription_id: Id) -> list[tuple[Id, float]]:
        """The best messages of a subscription with their scores, best first; none if there is no such subscription."""
        table = self.top_table([subscription_id])
        return list(zip(table["message_id"].to_pylist(), table["score"].to_pylist(), strict=True))

    def top_table(self, ids: Iterable[Id] | None = None) -> pa.Table:
        """The lists of several subscriptions, or of all: subscription_id, message_id, score, in order."""
        with self._lock.reading():
            engine = self._engine
            numbers = engine.alive() if ids is None else numbers_of_ids(ids, self._ids)
            subscription, number, score = engine.lists(numbers[engine.are_alive(numbers)])
            ids_of = {"subscription_id": self._ids.take(subscription), "message_id": engine.window.ids_of(number)}
            return pa.table({**ids_of, "score": score})

    # --- insight and disk --------------------------------------------------------------------------------------------

    def subscription_table(self) -> pa.Table:
        """All subscriptions as `subscribe_table` takes them: id, keywords, x, y, k, spatial_weight."""
        with self._lock.reading():
            return table_of_shards(self._engine.shards, self._ids, self._keywords)

    def explain(self, message: Message, subscription_id: Id) -> Explanation:
        """Why the message is, or is not, among the best of the subscription: words, distance, rank, and place in the index."""
        if not isinstance(message, Message):
            raise NearcastError(f"explain was given {message!r} first; expected a nearcast.Message, then a subscription id")
        id = checked_id(subscription_id, "subscription", NearcastError)
        # The words of the message may be new to the vocabulary.
        with self._lock.writing():
            known = self._ids.find(id_array([id]))
            if not self._engine.are_alive(known)[0]:
                return Explanation(False, (f"there is no subscription {id!r}",))
            engine, number = self._engine.holder_of(int(known[0]))
            read = read_arriving_objects([message], self._border, self._is_timed)
            if read.rejected:
                return Explanation(False, (f"the message is not usable: {read.rejected[0][1]}",))
            words = KeywordInfo(self._keywords.space.name, self._weights.of(self._keywords))
            return explain_message(engine, number, self._space, words, read.messages, message)

    def stats(self) -> dict[str, int | float | str]:
        """Sizes: subscriptions, messages in the window, keywords, bytes in total and by part, and figures of the index."""
        with self._lock.reading():
            return ranker_stats(self._engine, self._ids, self._keywords)

    def save(self, folder: str | Path) -> None:
        """Write everything to a folder of arrays; an existing saved folder is replaced as a whole."""
        with self._lock.reading():
            shards = self._engine.shards
            facts = {
                "window": window_facts(self._window),
                "space": self._space.value,
                "idf": self._weights.facts(),
                "analysis": self._analysis.to_dict(),
                "keyword_kind": self._keywords.name,
                "id_kind": self._ids.kind,
                **engine_facts(shards[0]),
                "threads": len(shards),
            }
            shared = {"keywords": self._keywords.space.arrays(), "ids": self._ids.arrays()}
            write_folder(folder, _FOLDER_KIND, facts, by_name([shared, *map(engine_arrays, shards)]))

    @classmethod
    def open(
        cls,
        folder: str | Path,
        index: str | None = None,
        is_mapped: bool = True,
        changes: str | None = None,
        **parameters: Any,
    ) -> Self:
        """A saved ranker. Changes to it do not change the folder.

        With `index`, its subscriptions are filed in that index, with these parameters. `is_mapped`: map the arrays from disk
        instead of reading them. `changes` replaces the saved value.
        """
        if parameters and index is None:
            raise NearcastError(f"{sorted(parameters)} were given without index=..., which is what files subscriptions again")
        facts, arrays = read_folder(folder, _FOLDER_KIND)
        arrays = arrays if is_mapped else {name: aligned_copy(array) for name, array in arrays.items()}
        analysis = Analysis.from_dict(facts["analysis"])
        buffer, buffer_parameters = saved_buffer(index, facts["buffer"])
        ranker = cls(
            window_of(facts["window"]),
            index or facts["index"]["name"],
            buffer,
            facts["space"],
            max_distance=facts["max_distance"],
            changes=facts["changes"] if changes is None else changes,
            window_index=facts["window_index"],
            analysis=analysis,
            threads=facts["threads"],
            buffer_parameters=buffer_parameters,
            **(parameters if index else facts["index"]["parameters"]),
        )
        shared, *shards = by_part(arrays, 1 + facts["threads"])
        ranker._weights = WordWeights.from_facts(facts["idf"])
        ranker._keywords = KeywordKind.from_arrays(facts["keyword_kind"], shared["keywords"], analysis)
        ranker._ids = Identifiers.from_arrays(facts["id_kind"], shared["ids"])
        for engine, parts in zip(ranker._engine.shards, shards, strict=True):
            is_same_buffer = engine.buffers.kind.name == facts["buffer"]["name"]
            restore_engine(engine, facts["message_id_kind"], parts, index is None, is_same_buffer)
        return ranker

    def _with_report(self, changes: RankChanges, report: MatchReport) -> pa.Table:
        report.nodes_visited, report.candidates = self._engine.take_counters().tolist()
        report.matches = len(changes.tick)
        self._last_report.value = report
        return change_table(changes, self._ids)
