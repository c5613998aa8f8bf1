"""Subscriptions, as objects or as a table, into clauses ready to be filed; what cannot be used is rejected with a reason.

Rows of a table with a box and a list of keywords go column by column; the others become `Subscription` objects first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast import settings
from nearcast.columns.arrow import list_offsets
from nearcast.columns.clauses import ClauseBatch, take_lists
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
from nearcast.columns.shapes import ShapeStore
from nearcast.engines.keyword_kind import KeywordKind
from nearcast.engines.rejections import Rejections, reject_bad_boxes
from nearcast.errors import NearcastError, SchemaError
from nearcast.kernels.shapes import NO_SHAPE
from nearcast.model.analysis import Analysis
from nearcast.model.dnf import Clause
from nearcast.model.normalise import Keyword
from nearcast.model.regions import Box, Region, region
from nearcast.model.spaces import Space
from nearcast.model.subscription import Subscription

_WORLD = {
    Space.LONLAT: Box(-180.0, -90.0, 180.0, 90.0),
    Space.PLANE: Box(-sys.float_info.max, -sys.float_info.max, sys.float_info.max, sys.float_info.max),
}


@dataclass(slots=True)
class ParsedSubscription:
    """A subscription with its alternatives spelled out; `row` is its place in the input."""

    row: int
    clauses: tuple[Clause, ...]
    region: Region | None


@dataclass(slots=True)
class PlainSubscriptions:
    """Subscriptions that are one clause each: a box and keyword ids."""

    row: NDArray[np.int64]
    required_start: NDArray[np.int64]
    required: NDArray[np.int32]
    boxes: list[NDArray[np.float64]]


@dataclass(slots=True)
class ReadSubscriptions:
    """The usable rows of one call, in two forms, with the ids of all rows."""

    ids: pa.Array
    plain: PlainSubscriptions | None
    parsed: list[ParsedSubscription]
    rejected: list[tuple[int, str]]


def read_subscription_objects(
    subscriptions: Sequence[Subscription], space: Space, kind: KeywordKind, analysis: Analysis, id_kind: str | None
) -> ReadSubscriptions:
    rejections = Rejections(len(subscriptions))
    ids: list[int | str] = []
    parsed = []
    seen = set()
    check_kind = kind.checker()
    for row, subscription in enumerate(subscriptions):
        try:
            if not isinstance(subscription, Subscription):
                raise SchemaError(f"row {row} is a {type(subscription).__name__}; expected a nearcast.Subscription")
            given_kind = "string" if isinstance(subscription.id, str) else "int"
            id_kind = id_kind or given_kind
            if given_kind != id_kind:
                raise SchemaError(f"the id {subscription.id!r} is of another kind than the ids before it: keep to one kind")
            if subscription.id in seen:
                raise SchemaError(f"the id {subscription.id!r} comes twice in one batch; only its first row is used")
            parsed.append(_parsed(row, subscription, space, check_kind, analysis))
            seen.add(subscription.id)
            ids.append(subscription.id)
        except NearcastError as error:
            rejections.add(row, str(error))
            ids.append("-" if id_kind == "string" else 0)
    if id_kind == "string":
        ids = [str(identifier) for identifier in ids]
    return ReadSubscriptions(id_array(ids), None, parsed, rejections.listed())


def _parsed(
    row: int, subscription: Subscription, space: Space, check_kind: Callable[[Iterable[Keyword]], None], analysis: Analysis
) -> ParsedSubscription:
    clauses = subscription.clauses(analysis)
    for clause in clauses:
        check_kind(clause.required)
        check_kind(clause.forbidden)
    if subscription.region is not None:
        subscription.region.check(space)
    return ParsedSubscription(row, clauses, subscription.region)


def read_subscription_table(table: pa.Table, space: Space, kind: KeywordKind, analysis: Analysis) -> ReadSubscriptions:
    check_columns(table, SUBSCRIPTION_COLUMNS, "subscriptions")
    rejections = Rejections(table.num_rows)
    ids = id_column(table)
    _reject_bad_ids(rejections, ids)
    keywords, interests, regions = keyword_column(table), text_column(table, "interest"), text_column(table, "region")
    if keywords is None and interests is None:
        raise SchemaError(f"the table of subscriptions has the columns {table.column_names}; expected 'keywords' or 'interest'")
    if keywords is None:
        keywords = pa.nulls(table.num_rows, pa.list_(pa.string()))
    kind.check_type(keywords.type.value_type)
    boxes, has_box = _read_boxes(table, rejections, space)
    is_parsed = _is_given(interests, table.num_rows) | _is_given(regions, table.num_rows)
    parsed = _read_parsed_rows(rejections, is_parsed, ids, keywords, interests, regions, boxes, has_box, space, kind, analysis)
    plain = _read_plain_rows(rejections, ~is_parsed, keywords, boxes, has_box, space, kind)
    return ReadSubscriptions(ids, plain, parsed, rejections.listed())


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
            lambda row: f"the id {ids[row].as_py()!r} comes twice in one batch; only its first row is used",
        )


def _is_given(column: pa.Array | None, n_rows: int) -> NDArray[np.bool_]:
    return np.zeros(n_rows, bool) if column is None else np.asarray(column.is_valid())


def _read_boxes(table: pa.Table, rejections: Rejections, space: Space) -> tuple[list[NDArray[np.float64]], NDArray[np.bool_]]:
    """The four columns, and which rows have a box at all; four nulls mean everywhere."""
    given = number_columns(table, BOX)
    if given is None:
        return [np.zeros(table.num_rows) for _ in BOX], np.zeros(table.num_rows, bool)
    boxes, has_null = given
    n_null = sum(np.asarray(table[name].is_null()).astype(int) for name in BOX) if has_null.any() else np.zeros(len(has_null))
    rejections.add_where(has_null & (n_null < 4), lambda row: "some of x0, y0, x1, y1 are null; give all four or none")
    reject_bad_boxes(rejections, boxes, ~has_null, space)
    return boxes, ~has_null


def _read_plain_rows(
    rejections: Rejections,
    is_plain: NDArray[np.bool_],
    keywords: pa.Array,
    boxes: list[NDArray[np.float64]],
    has_box: NDArray[np.bool_],
    space: Space,
    kind: KeywordKind,
) -> PlainSubscriptions:
    if keywords.null_count:
        rejections.add_where(
            is_plain & np.asarray(keywords.is_null()),
            lambda row: "neither keywords nor interest are given; give [] for every message of the region",
        )
    list_start = list_offsets(keywords)
    encoded = kind.encode(keywords.values.slice(list_start[0], list_start[-1] - list_start[0]), grow=True)
    rejections.add_members(list_start, encoded.problems)
    set_start, members = keyword_sets_of(list_start, encoded.ids)
    most = settings.limit("max_subscription_keywords")
    rejections.add_where(
        np.diff(set_start) > most,
        lambda row: f"the subscription has {set_start[row + 1] - set_start[row]} keywords; at most {most} are allowed",
    )
    is_usable = np.zeros(len(is_plain), bool)
    is_usable[rejections.usable()] = True
    rows = np.flatnonzero(is_plain & is_usable)
    if len(rows) < len(is_plain):
        set_start, members = take_lists(set_start, members, rows)
        boxes, has_box = [box[rows] for box in boxes], has_box[rows]
    if not has_box.all():
        boxes = [np.where(has_box, box, side) for box, side in zip(boxes, _WORLD[space].bounds, strict=True)]
    return PlainSubscriptions(rows, set_start, members, boxes)


def _read_parsed_rows(
    rejections: Rejections,
    is_parsed: NDArray[np.bool_],
    ids: pa.Array,
    keywords: pa.Array,
    interests: pa.Array | None,
    regions: pa.Array | None,
    boxes: list[NDArray[np.float64]],
    has_box: NDArray[np.bool_],
    space: Space,
    kind: KeywordKind,
    analysis: Analysis,
) -> list[ParsedSubscription]:
    is_usable = np.zeros(len(is_parsed), bool)
    is_usable[rejections.usable()] = True
    parsed = []
    check_kind = kind.checker()
    for row in np.flatnonzero(is_parsed & is_usable).tolist():
        interest = interests[row].as_py() if interests is not None else None
        place = regions[row].as_py() if regions is not None else None
        words = keywords[row].as_py()
        if interest is not None and not words:
            words = None
        elif interest is None and words is None:
            rejections.add(row, "neither keywords nor interest are given; give [] for every message of the region")
            continue
        try:
            where: Region | None = None
            if place is not None:
                where = region(place, space=space)
            elif has_box[row]:
                where = Box(*(float(box[row]) for box in boxes))
            subscription = Subscription(ids[row].as_py(), keywords=words, interest=interest, region=where)
            parsed.append(_parsed(row, subscription, space, check_kind, analysis))
        except NearcastError as error:
            rejections.add(row, str(error))
    return parsed


def clauses_of_plain(plain: PlainSubscriptions, owner: NDArray[np.int32]) -> ClauseBatch:
    """One clause per subscription."""
    x0, y0, x1, y1 = plain.boxes
    return ClauseBatch(owner, plain.required_start, plain.required, x0, y0, x1, y1)


def clauses_of_parsed(
    parsed: Sequence[ParsedSubscription], owner: NDArray[np.int32], space: Space, kind: KeywordKind, shapes: ShapeStore
) -> ClauseBatch:
    """The product of a subscription's alternatives and the boxes that cover its region."""
    owners, places, shape_of, is_checked = [], [], [], []
    required: list[tuple[Keyword, ...]] = []
    forbidden: list[tuple[Keyword, ...]] = []
    for subscription, number in zip(parsed, owner.tolist(), strict=True):
        boxes, shape = _cover(subscription.region, space, shapes)
        needs_check = len(subscription.clauses) * len(boxes) > 1 or shape != NO_SHAPE
        for clause in subscription.clauses:
            for box in boxes:
                owners.append(number)
                places.append(box.bounds)
                shape_of.append(shape)
                is_checked.append(needs_check or bool(clause.forbidden))
                required.append(tuple(clause.required))
                forbidden.append(tuple(clause.forbidden))
    required_start, required_ids = _encode_sets(required, kind)
    forbidden_start, forbidden_ids = _encode_sets(forbidden, kind)
    x0, y0, x1, y1 = np.array(places, np.float64).reshape(-1, 4).T.copy()
    checked = np.array(is_checked, bool)
    return ClauseBatch(
        np.array(owners, np.int32),
        required_start,
        required_ids,
        x0,
        y0,
        x1,
        y1,
        checked if checked.any() else None,
        forbidden_start,
        forbidden_ids,
        np.array(shape_of, np.int32),
    )


def _cover(where: Region | None, space: Space, shapes: ShapeStore) -> tuple[list[Box], int]:
    if where is None:
        return [_WORLD[space]], NO_SHAPE
    if isinstance(where, Box):
        return [where], NO_SHAPE
    return where.covering_boxes(space, settings.limit("max_covering_boxes")), shapes.add(where)


def _encode_sets(sets: Sequence[tuple[Keyword, ...]], kind: KeywordKind) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.concatenate([[0], np.cumsum([len(members) for members in sets])]).astype(np.int64)
    flat = [keyword for members in sets for keyword in members]
    return keyword_sets_of(starts, kind.add(flat))
