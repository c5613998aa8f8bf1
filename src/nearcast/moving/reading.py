"""Read the input of a moving matcher: messages with their times, and moves. Bad rows are rejected with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseBatch, ClauseStore, take_lists
from nearcast.columns.identifiers import id_array, id_kind
from nearcast.columns.messages import MessageBatch
from nearcast.columns.schemas import BOX, check_columns, id_column, number_columns, text_column
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.clause_building import WORLD, cover_region
from nearcast.engine.reading import ReadingContext, Rejections, reject_bad_boxes, seconds_column
from nearcast.engine.reading_messages import read_message_objects, read_message_table
from nearcast.engine.subscription_store import SubscriptionStore
from nearcast.errors import NearcastError, SchemaError
from nearcast.kernels.checks import PLAIN
from nearcast.kernels.deliveries import last_of_each
from nearcast.kernels.layouts import MessageArrays
from nearcast.kernels.shapes import NO_SHAPE
from nearcast.model.inputs import Id, checked_id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, Region, region
from nearcast.model.spaces import Space
from nearcast.moving.live_messages import LiveIds

MOVE_COLUMNS = ("id", *BOX, "region")


# --- messages ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TimedMessages:
    """The usable messages of one call; ids and times in the order of the batch. No time is nan; expires inf is never."""

    ids: pa.Array
    batch: MessageBatch
    time: NDArray[np.float64]
    expires: NDArray[np.float64]
    rejected: list[tuple[int, str]]

    def reject(self, reasons: dict[int, str]) -> None:
        """Remove messages from the batch and record the reasons."""
        if not reasons:
            return
        self.rejected += [(int(self.batch.row[at]), reason) for at, reason in reasons.items()]
        self.rejected.sort()
        self.keep(np.array([at not in reasons for at in range(len(self.batch))], bool))

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Remove all other messages from the batch."""
        if is_kept.all():
            return
        self.ids = self.ids.filter(pa.array(is_kept))
        self.batch = _take_rows(self.batch, np.flatnonzero(is_kept))
        self.time, self.expires = self.time[is_kept], self.expires[is_kept]


def read_timed_objects(messages: Sequence[Message], context: ReadingContext, known: LiveIds) -> TimedMessages:
    """Read messages given as objects. An id of another kind than the known ids is rejected."""
    batch, rejected = read_message_objects(messages, context, grow=True)
    usable = [messages[row] for row in batch.row.tolist()]
    time = np.array([np.nan if message.time is None else message.time for message in usable], np.float64)
    expires = np.array([np.inf if message.expires is None else message.expires for message in usable], np.float64)
    kinds = ["string" if isinstance(message.id, str) else "int" for message in usable]
    known.kind = known.kind or (kinds[0] if kinds else None)
    others = {at: _other_kind(message.id) for at, message in enumerate(usable) if kinds[at] != known.kind}
    # A placeholder of the right kind for the ids that are rejected below.
    placeholder: Id = "" if known.kind == "string" else 0
    ids = id_array([placeholder if at in others else message.id for at, message in enumerate(usable)])
    read = TimedMessages(ids, batch, time, expires, rejected)
    read.reject(others)
    return read


def read_timed_table(table: pa.Table, context: ReadingContext, known: LiveIds) -> TimedMessages:
    """As `read_timed_objects`, for a table."""
    encoded = read_message_table(table, context, grow=True)
    rows = encoded.batch.row
    ids = encoded.ids if len(rows) == len(encoded.ids) else encoded.ids.take(pa.array(rows))
    time, expires = seconds_column(table, "time")[rows], seconds_column(table, "expires")[rows]
    read = TimedMessages(ids, encoded.batch, time, expires, encoded.rejected)
    kind = id_kind(ids.type)
    known.kind = known.kind or (kind if len(rows) else None)
    reasons = {}
    for at in np.flatnonzero(np.isinf(time) | np.isinf(expires) | (expires <= time)).tolist():
        times = f"time={time[at].item()!r} and expires={expires[at].item()!r}"
        reasons[at] = f"the message has {times}; expected finite times, expires > time, or no expires"
    read.expires[np.isnan(expires)] = np.inf
    if known.kind not in (kind, None):
        reasons = {at: _other_kind(id) for at, id in enumerate(ids.to_pylist())}
    read.reject(reasons)
    if known.kind not in (kind, None):
        read.ids = id_array([])
    return read


def _other_kind(id: Id) -> str:
    return f"the id {id!r} is of another kind than the ids of the messages before it: keep to one kind"


def _take_rows(batch: MessageBatch, rows: NDArray[np.int64]) -> MessageBatch:
    arrays = batch.arrays
    start, keyword = take_lists(arrays.keyword_start, arrays.keyword, rows)
    bounds = (arrays.x0[rows], arrays.y0[rows], arrays.x1[rows], arrays.y1[rows])
    return MessageBatch(MessageArrays(start, keyword, *bounds), batch.row[rows], batch.n_keywords)


# --- moves -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class MoveBatch:
    """The moves of one call: subscriptions (distinct) that move to a box, and those that move to a region of another shape."""

    number: NDArray[np.int32]
    boxes: list[NDArray[np.float64]]
    others: list[tuple[int, Region]]
    rejected: list[tuple[int, str]]


def read_moves(moves: Mapping[Id, object], store: SubscriptionStore) -> MoveBatch:
    """Read moves given as a dict of id -> region; None is everywhere."""
    if not isinstance(moves, Mapping):
        raise NearcastError(f"moves were given as {moves!r}; expected a dict of subscription id -> region")
    rejections = Rejections(len(moves))
    regions: dict[int, Region | None] = {}
    for row, (id, shape) in enumerate(moves.items()):
        try:
            number = int(store.ids.find(id_array([checked_id(id, "subscription", NearcastError)]))[0])
            if not store.clauses.slots_of(number):
                raise NearcastError(_unknown(id))
            regions[number] = None if shape is None else region(shape, store.space)
        except NearcastError as error:
            rejections.add(row, str(error))
    return _move_batch(regions, rejections, store.space)


def read_move_table(table: pa.Table, store: SubscriptionStore) -> MoveBatch:
    """Read moves given as a table: id and x0, y0, x1, y1, or a region (GeoJSON or WKT), which has precedence.

    If an id has several rows, the last one counts.
    """
    check_columns(table, MOVE_COLUMNS, "moves")
    coordinates, regions = number_columns(table, BOX), text_column(table, "region")
    if coordinates is None and regions is None:
        raise SchemaError(f"the table of moves has the columns {table.column_names}; expected x0, y0, x1, y1 or 'region'")
    rejections = Rejections(table.num_rows)
    column = id_column(table)
    rejections.add_where(np.asarray(column.is_null()), lambda row: "the id is null")
    number = store.ids.find(column)
    rejections.add_where(store.clauses.spans(number)[1] == 0, lambda row: _unknown(column[row].as_py()))
    has_region = np.zeros(len(number), bool) if regions is None else np.asarray(regions.is_valid())
    boxes, is_null = ([np.zeros(len(number)) for _ in BOX], np.ones(len(number), bool)) if coordinates is None else coordinates
    rejections.add_where(is_null & ~has_region, lambda row: "a coordinate is null; give all four, or a region")
    reject_bad_boxes(rejections, boxes, ~is_null & ~has_region, store.space)
    shapes: dict[int, Region] = {}
    for row in np.flatnonzero(has_region & rejections.is_usable()).tolist():
        try:
            shapes[row] = region(regions[row].as_py() if regions is not None else None, store.space)
        except NearcastError as error:
            rejections.add(row, str(error))
    rows = _last_of_each(number, np.flatnonzero(rejections.is_usable()))
    if not shapes:
        return MoveBatch(number[rows], [bound[rows] for bound in boxes], [], rejections.as_list())
    new_regions = {int(number[row]): shapes.get(row) or Box(*(float(bound[row]) for bound in boxes)) for row in rows.tolist()}
    return _move_batch(new_regions, rejections, store.space)


def _move_batch(regions: Mapping[int, Region | None], rejections: Rejections, space: Space) -> MoveBatch:
    boxes = {number: shape or WORLD[space] for number, shape in regions.items() if shape is None or isinstance(shape, Box)}
    others = [(number, shape) for number, shape in regions.items() if shape is not None and number not in boxes]
    bounds = np.array([box.bounds for box in boxes.values() if isinstance(box, Box)], np.float64).reshape(-1, 4).T
    return MoveBatch(np.array(list(boxes), np.int32), [bound.copy() for bound in bounds], others, rejections.as_list())


def _last_of_each(number: NDArray[np.int32], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    last = np.empty(int(number.max(initial=-1)) + 1, np.int64)
    return rows[: int(last_of_each(number, rows, last))]


def _unknown(id: object) -> str:
    return f"there is no subscription {id!r}; subscribe it first"


# --- clauses around a new region -------------------------------------------------------------------------------------


def moved_clauses(clauses: ClauseStore, shapes: ShapeStore, space: Space, moves: Sequence[tuple[int, Region]]) -> ClauseBatch:
    """The clauses of subscriptions in new regions: each alternative that is filed now, for each box around the new region."""
    subscription, bounds, shape_of, is_checked = [], [], [], []
    required: list[tuple[int, ...]] = []
    forbidden: list[tuple[int, ...]] = []
    for number, new_region in moves:
        boxes, shape = cover_region(new_region, space, shapes)
        alternatives = alternatives_of(clauses, number)
        is_several = len(alternatives) * len(boxes) > 1
        for required_keywords, forbidden_keywords in alternatives:
            for box in boxes:
                subscription.append(number)
                bounds.append(box.bounds)
                shape_of.append(shape)
                is_checked.append(is_several or shape != NO_SHAPE or bool(forbidden_keywords))
                required.append(required_keywords)
                forbidden.append(forbidden_keywords)
    x0, y0, x1, y1 = np.array(bounds, np.float64).reshape(-1, 4).T.copy()
    checked = np.array(is_checked, bool)
    return ClauseBatch(
        np.array(subscription, np.int32),
        _starts(required),
        np.array([keyword for keywords in required for keyword in keywords], np.int32),
        x0,
        y0,
        x1,
        y1,
        checked if checked.any() else None,
        _starts(forbidden),
        np.array([keyword for keywords in forbidden for keyword in keywords], np.int32),
        np.array(shape_of, np.int32),
    )


def alternatives_of(clauses: ClauseStore, number: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The distinct pairs of required and forbidden keywords of a subscription's clauses."""
    layout, checks = clauses.layout(), clauses.checks()
    alternatives: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
    for slot in clauses.slots_of(number):
        required = layout.keyword[layout.keyword_start[slot] : layout.keyword_start[slot + 1]]
        check = int(checks.check[slot])
        forbidden = checks.forbidden[:0]
        if check != PLAIN:
            forbidden = checks.forbidden[checks.forbidden_start[check] : checks.forbidden_start[check + 1]]
        alternatives[tuple(required.tolist()), tuple(forbidden.tolist())] = None
    return list(alternatives)


def circle_in_place(clauses: ClauseStore, shapes: ShapeStore, number: int, region: Region, space: Space) -> Box | None:
    """The box of a new circle, if it can replace the subscription's circle in each of its clauses; else None."""
    if not isinstance(region, Circle):
        return None
    slots, checks = clauses.slots_of(number), clauses.checks()
    check = int(checks.check[slots[0]])
    if check == PLAIN or checks.shape[check] == NO_SHAPE or shapes.layout().radius[checks.shape[check]] < 0:
        return None
    boxes = region.covering_boxes(space)
    return boxes[0] if len(boxes) == 1 and len(slots) == len(alternatives_of(clauses, number)) else None


def _starts(sets: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(keywords) for keywords in sets])]).astype(np.int64)
