"""Read and validate subscriptions, given as objects or as a table. Unusable ones are rejected with a reason.

Rows of a table with a box and a list of keywords are read column by column; others become `Subscription` objects first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast import settings
from nearcast.columns.arrow import list_offsets
from nearcast.columns.clauses import take_lists
from nearcast.columns.identifiers import id_array
from nearcast.columns.messages import keyword_sets_of
from nearcast.columns.schemas import (
    BOX,
    SUBSCRIPTION_COLUMNS,
    check_columns,
    id_column,
    keyword_column,
    number_columns,
    text_column,
)
from nearcast.engine.clause_building import WORLD, ParsedSubscription, PlainSubscriptions
from nearcast.engine.reading import ReadingContext, Rejections, reject_bad_boxes
from nearcast.errors import NearcastError, SchemaError, SubscriptionError
from nearcast.model.normalise import Keyword
from nearcast.model.regions import Box, Region, region
from nearcast.model.spaces import Space
from nearcast.model.subscription import Subscription

_NO_WORDS = "neither keywords nor interest are given; give [] for every message of the region"


@dataclass(slots=True)
class ReadSubscriptions:
    """The usable subscriptions of one call, in two forms; the ids of all rows; the rejections."""

    ids: pa.Array
    plain: PlainSubscriptions | None
    parsed: list[ParsedSubscription]
    rejected: list[tuple[int, str]]


def read_subscription_objects(
    subscriptions: Sequence[Subscription], context: ReadingContext, id_kind: str | None
) -> ReadSubscriptions:
    rejections = Rejections(len(subscriptions))
    ids: list[int | str] = []
    parsed = []
    seen: set[int | str] = set()
    check_keywords = context.keywords.checker()
    for row, subscription in enumerate(subscriptions):
        try:
            if not isinstance(subscription, Subscription):
                raise SchemaError(f"row {row} is a {type(subscription).__name__}; expected a nearcast.Subscription")
            kind = "string" if isinstance(subscription.id, str) else "int"
            id_kind = id_kind or kind
            if kind != id_kind:
                raise SchemaError(f"the id {subscription.id!r} is of another kind than the ids before it: keep to one kind")
            if subscription.id in seen:
                raise SchemaError(_twice(subscription.id))
            seen.add(subscription.id)
            parsed.append(_parse_subscription(row, subscription, context, check_keywords))
            ids.append(subscription.id)
        except NearcastError as error:
            rejections.add(row, str(error))
            ids.append("-" if id_kind == "string" else 0)
    if id_kind == "string":
        ids = [str(identifier) for identifier in ids]
    return ReadSubscriptions(id_array(ids), None, parsed, rejections.as_list())


def _parse_subscription(
    row: int, subscription: Subscription, context: ReadingContext, check_keywords: Callable[[Iterable[Keyword]], None]
) -> ParsedSubscription:
    clauses = subscription.clauses(context.analysis)
    for clause in clauses:
        check_keywords(clause.required)
        check_keywords(clause.forbidden)
    if subscription.region is not None:
        subscription.region.check(context.space)
    return ParsedSubscription(row, clauses, subscription.region)


def read_subscription_table(table: pa.Table, context: ReadingContext) -> ReadSubscriptions:
    check_columns(table, SUBSCRIPTION_COLUMNS, "subscriptions")
    rejections = Rejections(table.num_rows)
    columns = _read_columns(table, rejections, context)
    _reject_bad_ids(rejections, columns.ids)
    is_parsed = np.asarray(columns.interests.is_valid()) | np.asarray(columns.regions.is_valid())
    parsed = _read_parsed_rows(columns, is_parsed, rejections, context)
    plain = _read_plain_rows(columns, ~is_parsed, rejections, context)
    return ReadSubscriptions(columns.ids, plain, parsed, rejections.as_list())


class _Columns(NamedTuple):
    """A table of subscriptions; missing columns are all null."""

    ids: pa.Array
    keywords: pa.Array
    interests: pa.Array
    regions: pa.Array
    boxes: list[NDArray[np.float64]]
    has_box: NDArray[np.bool_]

    def subscription(self, row: int, space: Space) -> Subscription:
        """One row as an object; NearcastError says what is wrong with it."""
        words, interest, shape = self.keywords[row].as_py(), self.interests[row].as_py(), self.regions[row].as_py()
        if interest is None and words is None:
            raise SubscriptionError(_NO_WORDS)
        where: Region | None = None
        if shape is not None:
            where = region(shape, space=space)
        elif self.has_box[row]:
            where = Box(*(float(bound[row]) for bound in self.boxes))
        # An empty list next to an interest is ignored; a list with words contradicts the interest.
        keywords = None if interest is not None and not words else words
        return Subscription(self.ids[row].as_py(), keywords=keywords, interest=interest, region=where)


def _read_columns(table: pa.Table, rejections: Rejections, context: ReadingContext) -> _Columns:
    keywords, interests = keyword_column(table), text_column(table, "interest")
    if keywords is None and interests is None:
        raise SchemaError(f"the table of subscriptions has the columns {table.column_names}; expected 'keywords' or 'interest'")
    nothing = pa.nulls(table.num_rows, pa.string())
    if keywords is None:
        keywords = pa.nulls(table.num_rows, pa.list_(pa.string()))
    context.keywords.check_type(keywords.type.value_type)
    boxes, has_box = _read_boxes(table, rejections, context.space)
    regions = text_column(table, "region")
    return _Columns(
        id_column(table),
        keywords,
        nothing if interests is None else interests,
        nothing if regions is None else regions,
        boxes,
        has_box,
    )


def _reject_bad_ids(rejections: Rejections, ids: pa.Array) -> None:
    if ids.null_count:
        rejections.add_where(np.asarray(ids.is_null()), lambda row: "the id is null")
    if pa.types.is_string(ids.type):
        rejections.add_where(np.asarray(pc.equal(ids, "").fill_null(False)), lambda row: "the id is ''; give a name")
    codes = np.asarray(ids.dictionary_encode().indices.fill_null(-1))
    if len(codes) and codes.max(initial=-1) + 1 < len(codes):
        _, first = np.unique(codes, return_index=True)
        is_repeated = np.ones(len(codes), bool)
        is_repeated[first] = False
        rejections.add_where(
            is_repeated & (codes >= 0),
            lambda row: _twice(ids[row].as_py()),
        )


def _read_boxes(table: pa.Table, rejections: Rejections, space: Space) -> tuple[list[NDArray[np.float64]], NDArray[np.bool_]]:
    """The four columns, and which rows have a box. Four nulls mean everywhere."""
    columns = number_columns(table, BOX)
    if columns is None:
        return [np.zeros(table.num_rows) for _ in BOX], np.zeros(table.num_rows, bool)
    boxes, has_null = columns
    n_null = sum(np.asarray(table[name].is_null()).astype(int) for name in BOX) if has_null.any() else np.zeros(len(has_null))
    rejections.add_where(has_null & (n_null < 4), lambda row: "some of x0, y0, x1, y1 are null; give all four or none")
    reject_bad_boxes(rejections, boxes, ~has_null, space)
    return boxes, ~has_null


def _read_parsed_rows(
    columns: _Columns, is_parsed: NDArray[np.bool_], rejections: Rejections, context: ReadingContext
) -> list[ParsedSubscription]:
    parsed = []
    check_keywords = context.keywords.checker()
    for row in np.flatnonzero(is_parsed & rejections.is_usable()).tolist():
        try:
            parsed.append(_parse_subscription(row, columns.subscription(row, context.space), context, check_keywords))
        except NearcastError as error:
            rejections.add(row, str(error))
    return parsed


def _read_plain_rows(
    columns: _Columns, is_plain: NDArray[np.bool_], rejections: Rejections, context: ReadingContext
) -> PlainSubscriptions:
    keywords = columns.keywords
    if keywords.null_count:
        rejections.add_where(is_plain & np.asarray(keywords.is_null()), lambda row: _NO_WORDS)
    list_start = list_offsets(keywords)
    members = keywords.values.slice(list_start[0], list_start[-1] - list_start[0])
    encoded = context.keywords.encode(members, grow=True)
    rejections.add_members(list_start, encoded.problems)
    required_start, required = keyword_sets_of(list_start, encoded.ids)
    most = settings.limit("max_subscription_keywords")
    n_keywords = np.diff(required_start)
    rejections.add_where(
        n_keywords > most, lambda row: f"the subscription has {n_keywords[row]} keywords; at most {most} are allowed"
    )
    rows = np.flatnonzero(is_plain & rejections.is_usable())
    boxes, has_box = columns.boxes, columns.has_box
    if len(rows) < len(is_plain):
        required_start, required = take_lists(required_start, required, rows)
        boxes, has_box = [bound[rows] for bound in boxes], has_box[rows]
    if not has_box.all():
        everywhere = WORLD[context.space].bounds
        boxes = [np.where(has_box, bound, widest) for bound, widest in zip(boxes, everywhere, strict=True)]
    return PlainSubscriptions(rows, required_start, required, boxes)


def _twice(identifier: object) -> str:
    return f"the id {identifier!r} comes twice in one batch; only its first row is used"
