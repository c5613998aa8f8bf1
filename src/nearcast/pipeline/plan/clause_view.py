"""Subscriptions and messages as routing sees them: boxes and keywords, of clauses and of messages."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import list_offsets
from nearcast.columns.messages import keyword_sets_of
from nearcast.columns.schemas import BOX, POINT, keyword_column, number_columns
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.clause_building import clauses_of_parsed, clauses_of_plain
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext
from nearcast.engine.reading_subscriptions import read_subscription_table
from nearcast.errors import SchemaError


@dataclass(slots=True)
class ClauseView:
    """The clauses of a table of subscriptions.

    Clause `c` belongs to row `row[subscription[c]]` of the table and requires `word[word_start[c]:word_start[c + 1]]`.
    """

    row: NDArray[np.int64]
    id_hash: NDArray[np.int64]
    subscription: NDArray[np.int32]
    word_start: NDArray[np.int64]
    word: NDArray[np.int32]
    boxes: NDArray[np.float64]  # float64[4, n_clauses]
    rejected: list[tuple[int, str]]

    @property
    def n_subscriptions(self) -> int:
        return len(self.row)


def view_clauses(subscriptions: pa.Table, border: ReadingContext) -> ClauseView:
    """The clauses of the usable rows. Adds unknown words to `border.keywords`."""
    read = read_subscription_table(subscriptions, border)
    plain_rows = read.plain.row if read.plain is not None else np.empty(0, np.int64)
    rows = np.concatenate([plain_rows, [item.row for item in read.parsed]]).astype(np.int64)
    numbers = np.arange(len(rows), dtype=np.int32)
    batches = []
    if read.plain is not None and len(plain_rows):
        batches.append(clauses_of_plain(read.plain, numbers[: len(plain_rows)]))
    if read.parsed:
        parsed_numbers = numbers[len(plain_rows) :]
        batches.append(clauses_of_parsed(read.parsed, parsed_numbers, border.space, border.keywords, ShapeStore()))
    starts, n_words = [np.zeros(1, np.int64)], 0
    for batch in batches:
        starts.append(batch.required_start[1:] + n_words)
        n_words += len(batch.required)
    return ClauseView(
        rows,
        id_hashes(read.ids.take(pa.array(rows))),
        np.concatenate([np.empty(0, np.int32), *[batch.subscription for batch in batches]]),
        np.concatenate(starts),
        np.concatenate([np.empty(0, np.int32), *[batch.required for batch in batches]]),
        np.concatenate([np.empty((4, 0)), *[np.stack([batch.x0, batch.y0, batch.x1, batch.y1]) for batch in batches]], axis=1),
        read.rejected,
    )


@dataclass(slots=True)
class MessageView:
    """Message `m` has the known keywords `word[word_start[m]:word_start[m + 1]]` and the box `boxes[:, m]`."""

    word_start: NDArray[np.int64]
    word: NDArray[np.int32]
    boxes: NDArray[np.float64]  # float64[4, n_messages]

    @property
    def n_messages(self) -> int:
        return int(self.boxes.shape[1])


def view_messages(messages: pa.Table, keywords: KeywordKind) -> MessageView:
    """Clean messages (see `prepare/cleaning.py`) with those of their keywords that `keywords` has."""
    lists = keyword_column(messages)
    coordinates = number_columns(messages, BOX if "x0" in messages.column_names else POINT)
    if lists is None or coordinates is None:
        raise SchemaError(f"the messages have the columns {messages.column_names}; expected keywords and a location")
    columns = coordinates[0] if len(coordinates[0]) == 4 else [*coordinates[0], *coordinates[0]]
    start = list_offsets(lists)
    members = lists.values.slice(start[0], start[-1] - start[0])
    word_start, word = keyword_sets_of(start, keywords.encode(members, grow=False).ids)
    return MessageView(word_start, word, np.stack(columns))


def id_hashes(ids: pa.Array) -> NDArray[np.int64]:
    """A hash of each id, not negative, and the same in every process."""
    if pa.types.is_integer(ids.type):
        mixed = ids.to_numpy(zero_copy_only=False).astype(np.uint64)
        # The finaliser of splitmix64: neighbouring numbers end up far apart.
        with np.errstate(over="ignore"):
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1), np.int64)
    return np.array([zlib.crc32(value.encode()) for value in ids.to_pylist()], np.int64)
