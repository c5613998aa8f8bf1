"""A shard as a folder: the arrays of its matcher, the subscriptions it shares with other shards, its words. No Spark."""

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
from nearcast.pipeline.plan.routing import WordOrder, child_of_words, file_subscriptions, shard_lists, shard_matrix
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import word_nodes

MATCHER, SHARED, WORDS = "matcher", "shared.parquet", "words.parquet"
SHARD_LIST = "shards"  # the column with the target shards of a subscription or of a message


class SharedSubscriptions:
    """The target shards of those subscriptions that are in several shards."""

    def __init__(self, n_shards: int) -> None:
        self._ids = Identifiers()
        self._target_shards = np.zeros((0, n_shards), bool)

    def add(self, ids: pa.Array, lists: pa.Array) -> None:
        """Set the target shards of subscriptions."""
        numbers = self._ids.add(ids)
        missing = self._ids.n - len(self._target_shards)
        self._target_shards = np.concatenate([self._target_shards, np.zeros((missing, self._target_shards.shape[1]), bool)])
        self._target_shards[numbers] = shard_matrix(lists, self._target_shards.shape[1])

    def remove(self, ids: pa.Array) -> None:
        numbers = self._ids.find(ids)
        self._target_shards[numbers[numbers >= 0]] = False

    def target_shards(self, ids: pa.Array) -> NDArray[np.bool_]:
        """The target shards of each subscription; none for those that are in one shard only."""
        numbers = self._ids.find(ids)
        target_shards = np.zeros((len(ids), self._target_shards.shape[1]), bool)
        target_shards[numbers >= 0] = self._target_shards[numbers[numbers >= 0]]
        return target_shards

    def table(self) -> pa.Table:
        """The contents as a table with the arguments of `add`."""
        rows = np.flatnonzero(self._target_shards.any(axis=1)).astype(np.int32)
        ids = self._ids.take(rows) if self._ids.kind is not None else pa.array([], pa.int64())
        return pa.table({"id": ids, SHARD_LIST: shard_lists(self._target_shards[rows])})


@dataclass(slots=True)
class OpenShard:
    """A matcher, and what is needed so that each delivery is reported by one shard only."""

    number: int
    matcher: Matcher
    shared: SharedSubscriptions

    def change(self, removed: pa.Array, rows: pa.Table) -> None:
        """Remove the subscriptions `removed` and add `rows` (with their column of shards)."""
        self.matcher.unsubscribe(removed.to_pylist())
        self.shared.remove(removed)
        if rows.num_rows:
            self.matcher.subscribe_table(rows.drop_columns([SHARD_LIST]))
            _raise_rejected(self.matcher)
            _add_shared(self.shared, rows)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.matcher.save(folder / MATCHER)
        pq.write_table(self.shared.table(), folder / SHARED)

    @classmethod
    def open(cls, number: int, n_shards: int, folder: Path) -> OpenShard:
        shared = SharedSubscriptions(n_shards)
        table = pq.read_table(folder / SHARED)
        if table.num_rows:
            shared.add(table["id"].combine_chunks(), table[SHARD_LIST].combine_chunks())
        return cls(number, Matcher.open(folder / MATCHER), shared)


def empty_shard(number: int, plan: ShardPlan, index: str, parameters: Mapping[str, Any], history: pa.Table | None) -> OpenShard:
    matcher = Matcher(index, plan.space, plan.analysis, history, **parameters)
    return OpenShard(number, matcher, SharedSubscriptions(plan.n_shards))


def build_shard(
    number: int, rows: pa.Table, plan: ShardPlan, index: str, parameters: Mapping[str, Any], history: pa.Table | None
) -> OpenShard:
    """A shard with these rows, which were validated when they were routed."""
    shard = empty_shard(number, plan, index, parameters, history)
    shard.matcher.subscribe_table(rows.drop_columns([SHARD_LIST]))
    _raise_rejected(shard.matcher)
    _add_shared(shard.shared, rows)
    return shard


@dataclass(slots=True)
class RoutedRows:
    """Subscriptions with the column of their shards, the words under which they are filed, and the rejected rows."""

    rows: pa.Table
    words: pa.Table
    has_wordless: bool
    rejected: list[tuple[int, str]]


def route_rows(subscriptions: pa.Table, plan: ShardPlan, order: WordOrder) -> RoutedRows:
    """The target shards of each usable row of a table of subscriptions."""
    view = view_clauses(subscriptions, plan.border)
    assignment = file_subscriptions(plan.root, plan.n_shards, view, order)
    rows = subscriptions.take(pa.array(view.row)).append_column(SHARD_LIST, shard_lists(assignment.target_shards))
    tables = []
    for number, (node, words) in enumerate(zip(word_nodes(plan.root), assignment.words, strict=True)):
        child = child_of_words(node, order, words)
        columns = {"node": np.full(len(words), number, np.int32), "child": child, "keyword": keyword_names(plan, words)}
        tables.append(pa.table(columns))
    return RoutedRows(rows, words_table(plan, tables), assignment.has_wordless, view.rejected)


def keyword_names(plan: ShardPlan, words: NDArray[np.int32]) -> pa.Array:
    """The keywords of ids of the plan, as a column: strings, or numbers of the caller."""
    space = plan.keywords.space
    if isinstance(space, Vocabulary):
        return space.words().take(pa.array(words)).cast(pa.string())
    return pa.array([int(space.name(word)) for word in words.tolist()], pa.int32())


def words_table(plan: ShardPlan, tables: list[pa.Table]) -> pa.Table:
    """The union of tables of (node, child, keyword), each row once."""
    keyword = pa.int32() if plan.keywords.name == "numbers" else pa.string()
    schema = pa.schema({"node": pa.int32(), "child": pa.int32(), "keyword": keyword})
    whole = pa.concat_tables([schema.empty_table(), *[table.cast(schema) for table in tables if table.num_rows]])
    return whole.group_by(["node", "child", "keyword"]).aggregate([])


def _add_shared(shared: SharedSubscriptions, rows: pa.Table) -> None:
    several = rows.filter(pc.greater(pc.list_value_length(rows[SHARD_LIST]), 1))
    if several.num_rows:
        shared.add(several["id"].combine_chunks(), several[SHARD_LIST].combine_chunks())


def _raise_rejected(matcher: Matcher) -> None:
    if matcher.report.rejected:
        row, reason = matcher.report.rejected[0]
        raise PipelineError(
            f"{len(matcher.report.rejected)} routed subscriptions were rejected; the first, row {row}: {reason}; "
            "the table changed between two steps; run again: nearcast pipeline index"
        )
