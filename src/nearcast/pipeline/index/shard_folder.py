"""A shard as a folder: the matcher's arrays, the subscriptions it shares with others, the words it is found by. Pure Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.boolean.engine import Matcher
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.vocabulary import Vocabulary
from nearcast.errors import PipelineError
from nearcast.pipeline.plan.clause_view import view_clauses
from nearcast.pipeline.plan.routing import WordOrder, child_of_words, file_subscriptions, reach_lists, reach_matrix
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import word_nodes

MATCHER, SHARED, WORDS = "matcher", "shared.parquet", "words.parquet"
REACH = "shards"  # the column with all shards of a subscription or of a message


class SharedSubscriptions:
    """Which shards hold the subscriptions that live in several of them."""

    def __init__(self, n_shards: int) -> None:
        self._ids = Identifiers()
        self._reach = np.zeros((0, n_shards), bool)

    def add(self, ids: pa.Array, lists: pa.Array) -> None:
        """Note the shards of subscriptions, replacing what was known of them."""
        numbers = self._ids.add(ids)
        missing = self._ids.n - len(self._reach)
        self._reach = np.concatenate([self._reach, np.zeros((missing, self._reach.shape[1]), bool)])
        self._reach[numbers] = reach_matrix(lists, self._reach.shape[1])

    def forget(self, ids: pa.Array) -> None:
        numbers = self._ids.find(ids)
        self._reach[numbers[numbers >= 0]] = False

    def reach(self, ids: pa.Array) -> NDArray[np.bool_]:
        """The shards of each subscription; none at all for those that live in one shard only."""
        numbers = self._ids.find(ids)
        found = np.zeros((len(ids), self._reach.shape[1]), bool)
        found[numbers >= 0] = self._reach[numbers[numbers >= 0]]
        return found

    def table(self) -> pa.Table:
        """What `add` needs to make the same again."""
        rows = np.flatnonzero(self._reach.any(axis=1)).astype(np.int32)
        ids = self._ids.take(rows) if self._ids.kind is not None else pa.array([], pa.int64())
        return pa.table({"id": ids, REACH: reach_lists(self._reach[rows])})


@dataclass(slots=True)
class OpenShard:
    """A matcher with what it takes to report each delivery once over all shards."""

    number: int
    matcher: Matcher
    shared: SharedSubscriptions

    def change(self, removed: pa.Array, rows: pa.Table) -> None:
        """Forget the subscriptions `removed` and file `rows` (with their column of shards)."""
        self.matcher.unsubscribe(removed.to_pylist())
        self.shared.forget(removed)
        if rows.num_rows:
            self.matcher.subscribe_table(rows.drop_columns([REACH]))
            _raise_rejected(self.matcher)
            _note_shared(self.shared, rows)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.matcher.save(folder / MATCHER)
        pq.write_table(self.shared.table(), folder / SHARED)

    @classmethod
    def open(cls, number: int, n_shards: int, folder: Path) -> OpenShard:
        shared = SharedSubscriptions(n_shards)
        noted = pq.read_table(folder / SHARED)
        if noted.num_rows:
            shared.add(noted["id"].combine_chunks(), noted[REACH].combine_chunks())
        return cls(number, Matcher.open(folder / MATCHER), shared)


def empty_shard(number: int, plan: ShardPlan, index: str, parameters: Mapping[str, Any], history: pa.Table | None) -> OpenShard:
    matcher = Matcher(index, plan.space, plan.analysis, history, **parameters)
    return OpenShard(number, matcher, SharedSubscriptions(plan.n_shards))


def build_shard(
    number: int, rows: pa.Table, plan: ShardPlan, index: str, parameters: Mapping[str, Any], history: pa.Table | None
) -> OpenShard:
    """File the rows of one shard; they were validated when they were routed."""
    shard = empty_shard(number, plan, index, parameters, history)
    shard.matcher.subscribe_table(rows.drop_columns([REACH]))
    _raise_rejected(shard.matcher)
    _note_shared(shard.shared, rows)
    return shard


@dataclass(slots=True)
class RoutedRows:
    """Subscriptions with the column of their shards, the words they are filed under, and the rows that cannot be used."""

    rows: pa.Table
    words: pa.Table
    has_wordless: bool
    rejected: list[tuple[int, str]]


def route_rows(subscriptions: pa.Table, plan: ShardPlan, order: WordOrder) -> RoutedRows:
    """Where each usable row of a table of subscriptions lives."""
    view = view_clauses(subscriptions, plan.border)
    filed = file_subscriptions(plan.root, plan.n_shards, view, order)
    rows = subscriptions.take(pa.array(view.row)).append_column(REACH, reach_lists(filed.reach))
    tables = []
    for node, (place, words) in enumerate(zip(word_nodes(plan.root), filed.words, strict=True)):
        named = keyword_names(plan, words)
        child = child_of_words(place, order, words)
        tables.append(pa.table({"node": np.full(len(words), node, np.int32), "child": child, "keyword": named}))
    return RoutedRows(rows, words_table(plan, tables), filed.has_wordless, view.rejected)


def keyword_names(plan: ShardPlan, words: NDArray[np.int32]) -> pa.Array:
    """Keywords by their ids in the plan, as a column: strings, or the caller's numbers."""
    space = plan.keywords.space
    if isinstance(space, Vocabulary):
        return space.words().take(pa.array(words)).cast(pa.string())
    return pa.array([int(space.name(word)) for word in words.tolist()], pa.int32())


def words_table(plan: ShardPlan, tables: list[pa.Table]) -> pa.Table:
    """Tables of (node, child, keyword) as one, each row once."""
    keyword = pa.int32() if plan.keywords.name == "numbers" else pa.string()
    schema = pa.schema({"node": pa.int32(), "child": pa.int32(), "keyword": keyword})
    whole = pa.concat_tables([schema.empty_table(), *[table.cast(schema) for table in tables if table.num_rows]])
    return whole.group_by(["node", "child", "keyword"]).aggregate([])


def _note_shared(shared: SharedSubscriptions, rows: pa.Table) -> None:
    several = rows.filter(pc.greater(pc.list_value_length(rows[REACH]), 1))
    if several.num_rows:
        shared.add(several["id"].combine_chunks(), several[REACH].combine_chunks())


def _raise_rejected(matcher: Matcher) -> None:
    if matcher.report.rejected:
        row, reason = matcher.report.rejected[0]
        raise PipelineError(
            f"{len(matcher.report.rejected)} routed subscriptions were rejected; the first, row {row}: {reason}; "
            "the table changed between two steps: run nearcast pipeline index again"
        )
