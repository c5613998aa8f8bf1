"""Read messages, given as objects or as a table, into a `MessageBatch`. Unusable ones are rejected with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast import settings
from nearcast.columns.arrow import list_offsets
from nearcast.columns.clauses import take_lists
from nearcast.columns.messages import MessageBatch, counted_sets_of, keyword_sets_of
from nearcast.columns.schemas import (
    BOX,
    MESSAGE_COLUMNS,
    POINT,
    check_columns,
    id_column,
    keyword_column,
    number_columns,
    text_column,
)
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext, Rejections, reject_bad_boxes
from nearcast.errors import NearcastError, SchemaError
from nearcast.kernels.layouts import MessageArrays
from nearcast.model.analysis import Analysis
from nearcast.model.message import Message
from nearcast.model.normalise import Keyword
from nearcast.model.spaces import Space


@dataclass(slots=True)
class EncodedMessages:
    """Messages ready to match: the ids of all rows, the usable messages as a batch, and the rejections."""

    ids: pa.Array
    batch: MessageBatch
    rejected: list[tuple[int, str]]


def read_message_objects(
    messages: Sequence[Message], context: ReadingContext, grow: bool = False, counted: bool = False
) -> tuple[MessageBatch, list[tuple[int, str]]]:
    """The usable messages as a batch, and the rejections.

    With `grow`, unknown words are added; with `counted`, the batch says how often each word is in its message.
    """
    space, kind, analysis = context
    rejections = Rejections(len(messages))
    words: list[Keyword] = []
    list_start = np.zeros(len(messages) + 1, np.int64)
    boxes = np.zeros((4, len(messages)), np.float64)
    check_kind = kind.checker()
    for row, message in enumerate(messages):
        try:
            if not isinstance(message, Message):
                raise SchemaError(f"row {row} is a {type(message).__name__}; expected a nearcast.Message")
            box = message.box
            if space.is_lonlat:
                space.check_point(box.x0, box.y0)
                space.check_point(box.x1, box.y1)
            words_of_message = message.words(analysis)
            # Before the first subscription the kind is not decided, and nothing can match.
            if grow or kind.name is not None:
                check_kind(words_of_message)
            words.extend(words_of_message)
            boxes[:, row] = box.bounds
        except NearcastError as error:
            rejections.add(row, str(error))
        list_start[row + 1] = len(words)
    ids = kind.add(words) if grow else kind.find(words)
    return _make_batch(rejections, list_start, ids, list(boxes), kind, counted)


def read_message_table(table: pa.Table, context: ReadingContext, grow: bool = False, counted: bool = False) -> EncodedMessages:
    """As `read_message_objects`, column by column."""
    space, kind, analysis = context
    check_columns(table, MESSAGE_COLUMNS, "messages")
    rejections = Rejections(table.num_rows)
    message_ids = id_column(table)
    if message_ids.null_count:
        rejections.add_where(np.asarray(message_ids.is_null()), lambda row: "the id is null")
    boxes = _read_boxes(table, rejections, space)
    lists = _read_word_lists(table, rejections, analysis)
    kind.check_type(lists.type.value_type)
    list_start = list_offsets(lists)
    if lists.null_count:
        rejections.add_where(
            np.asarray(lists.is_null()), lambda row: "the keywords are null; give [] for a message without words"
        )
    members = lists.values.slice(list_start[0], list_start[-1] - list_start[0])
    encoded = kind.encode(members, grow)
    rejections.add_members(list_start, encoded.problems)
    _reject_too_many(rejections, list_start, members, settings.limit("max_message_keywords"))
    batch, rejected = _make_batch(rejections, list_start, encoded.ids, boxes, kind, counted)
    return EncodedMessages(message_ids, batch, rejected)


def _read_boxes(table: pa.Table, rejections: Rejections, space: Space) -> list[NDArray[np.float64]]:
    point, box = number_columns(table, POINT), number_columns(table, BOX)
    if (point is None) == (box is None):
        raise SchemaError(
            f"the table of messages has the columns {table.column_names}; expected x, y (points) or x0, y0, x1, y1"
        )
    if point is not None:
        (x, y), is_null = point
        boxes = [x, y, x, y]
    else:
        assert box is not None
        boxes, is_null = box
    rejections.add_where(is_null, lambda row: "a coordinate is null")
    reject_bad_boxes(rejections, boxes, ~is_null, space)
    return boxes


def _read_word_lists(table: pa.Table, rejections: Rejections, analysis: Analysis) -> pa.Array:
    keywords, texts = keyword_column(table), text_column(table, "text")
    if (keywords is None) == (texts is None):
        raise SchemaError(f"the table of messages has the columns {table.column_names}; expected either 'keywords' or 'text'")
    if keywords is not None:
        return keywords
    lists: list[list[str]] = []
    for row, text in enumerate(texts.to_pylist() if texts is not None else ()):
        words: list[str] = []
        try:
            if text is None:
                raise SchemaError("the text is null")
            words = analysis.words(text)
        except NearcastError as error:
            rejections.add(row, str(error))
        lists.append(words)
    return pa.array(lists, pa.list_(pa.string()))


def _reject_too_many(rejections: Rejections, list_start: NDArray[np.int64], members: pa.Array, most: int) -> None:
    for row in np.flatnonzero(np.diff(list_start) > most).tolist():
        keywords = members.slice(list_start[row] - list_start[0], list_start[row + 1] - list_start[row])
        n_distinct = len(keywords.unique())
        if n_distinct > most:
            rejections.add(row, f"the message has {n_distinct} distinct keywords; at most {most} are allowed")


def _make_batch(
    rejections: Rejections,
    list_start: NDArray[np.int64],
    ids: NDArray[np.int32],
    boxes: Iterable[NDArray[np.float64]],
    kind: KeywordKind,
    counted: bool,
) -> tuple[MessageBatch, list[tuple[int, str]]]:
    """Make a batch: drop rejected rows and turn keyword lists into sorted sets."""
    rows = np.flatnonzero(rejections.is_usable())
    count: NDArray[np.int32] | None = None
    if counted:
        set_start, members, count = counted_sets_of(list_start, ids)
    else:
        set_start, members = keyword_sets_of(list_start, ids)
    if len(rows) < len(list_start) - 1:
        count = None if count is None else take_lists(set_start, count, rows)[1]
        set_start, members = take_lists(set_start, members, rows)
        boxes = [box[rows] for box in boxes]
    arrays = MessageArrays(set_start, members, *boxes)
    return MessageBatch(arrays, rows, kind.n, count), rejections.as_list()
