"""Ranked subscriptions and arriving messages, as objects or tables, to columns. Bad rows are rejected with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast import settings
from nearcast.columns.arrow import list_offsets
from nearcast.columns.clauses import take_lists
from nearcast.columns.identifiers import id_array
from nearcast.columns.messages import MessageBatch, keyword_sets_of
from nearcast.columns.schemas import POINT, check_columns, id_column, keyword_column, number_columns
from nearcast.engine.reading import ReadingContext, Rejections, reject_bad_boxes, seconds_column
from nearcast.engine.reading_messages import read_message_objects, read_message_table
from nearcast.errors import NearcastError, SchemaError
from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.subscription import MAX_K, RankedSubscription
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.subscriptions import RankedSubscriptionBatch
from nearcast.ranked.thread_shards import ShardedEngine
from nearcast.ranked.tick_engine import RankedEngine
from nearcast.ranked.window import ArrivingMessages

SUBSCRIPTION_COLUMNS = ("id", "keywords", *POINT, "k", "spatial_weight")
_DEFAULT_K, _DEFAULT_WEIGHT = 20, 0.5


class RankedSubscriptionRows(NamedTuple):
    """The usable rows of one call. The numbers of the batch are row numbers until the ids are known."""

    ids: pa.Array
    batch: RankedSubscriptionBatch
    rejected: list[tuple[int, str]]


def read_ranked_objects(
    subscriptions: Sequence[RankedSubscription], border: ReadingContext, id_kind: str | None
) -> RankedSubscriptionRows:
    space, kind, analysis = border
    rejections = Rejections(len(subscriptions))
    seen: set[Id] = set()
    check_kind = kind.checker()
    usable = []
    for row, subscription in enumerate(subscriptions):
        try:
            if not isinstance(subscription, RankedSubscription):
                raise SchemaError(f"row {row} is a {type(subscription).__name__}; expected a nearcast.RankedSubscription")
            kind_of_id = "string" if isinstance(subscription.id, str) else "int"
            id_kind = id_kind or kind_of_id
            if kind_of_id != id_kind:
                raise SchemaError(f"the id {subscription.id!r} is of another kind than the ids before it: keep to one kind")
            if subscription.id in seen:
                raise SchemaError(_twice(subscription.id))
            space.check_point(*subscription.location)
            words = sorted(subscription.words(analysis))
            check_kind(words)
            seen.add(subscription.id)
            usable.append((subscription, words))
        except NearcastError as error:
            rejections.add(row, str(error))
    start = np.concatenate([[0], np.cumsum([len(words) for _, words in usable])]).astype(np.int64)
    ids = kind.add([word for _, words in usable for word in words])
    set_start, members = keyword_sets_of(start, ids)
    batch = RankedSubscriptionBatch(
        np.arange(len(usable), dtype=np.int32),
        np.array([s.location[0] for s, _ in usable], np.float64),
        np.array([s.location[1] for s, _ in usable], np.float64),
        np.array([s.spatial_weight for s, _ in usable], np.float64),
        np.array([s.k for s, _ in usable], np.int32),
        set_start,
        members,
    )
    return RankedSubscriptionRows(id_array([s.id for s, _ in usable]), batch, rejections.as_list())


def read_ranked_table(table: pa.Table, border: ReadingContext) -> RankedSubscriptionRows:
    """Columns id, keywords, x, y; k (20) and spatial_weight (0.5) may be left out."""
    space, kind, _ = border
    check_columns(table, SUBSCRIPTION_COLUMNS, "ranked subscriptions")
    rejections = Rejections(table.num_rows)
    column = id_column(table)
    rejections.add_where(np.asarray(column.is_null()), lambda row: "the id is null")
    position, lists = number_columns(table, POINT), keyword_column(table)
    if position is None or lists is None:
        raise SchemaError(
            f"the table of ranked subscriptions has the columns {table.column_names}; expected id, keywords, x, y"
        )
    (x, y), is_null = position
    rejections.add_where(is_null, lambda row: "a coordinate is null")
    reject_bad_boxes(rejections, [x, y, x, y], ~is_null, space)
    k = _numbers(table, "k", _DEFAULT_K, rejections)
    rejections.add_where(
        (k < 1) | (k > MAX_K) | (k != np.floor(k)), lambda row: f"k is {k[row]:g}; expected an int from 1 to {MAX_K}"
    )
    weight = _numbers(table, "spatial_weight", _DEFAULT_WEIGHT, rejections)
    rejections.add_where(~((weight >= 0) & (weight <= 1)), lambda row: f"spatial_weight is {weight[row]:g}; expected 0 to 1")
    start = list_offsets(lists)
    rejections.add_where(np.asarray(lists.is_null()), lambda row: "the keywords are null; give at least one to rank by")
    kind.check_type(lists.type.value_type)
    encoded = kind.encode(lists.values.slice(start[0], start[-1] - start[0]), grow=True)
    rejections.add_members(start, encoded.problems)
    set_start, members = keyword_sets_of(start, encoded.ids)
    n_words = np.diff(set_start)
    rejections.add_where(n_words == 0, lambda row: "there are no keywords; give at least one to rank by")
    most = settings.limit("max_subscription_keywords")
    rejections.add_where(n_words > most, lambda row: f"there are {n_words[row]} distinct keywords; at most {most} are allowed")
    _reject_repeats(column, rejections)
    rows = np.flatnonzero(rejections.is_usable())
    set_start, members = take_lists(set_start, members, rows)
    columns = (x[rows], y[rows], weight[rows], k[rows].astype(np.int32))
    batch = RankedSubscriptionBatch(np.arange(len(rows), dtype=np.int32), *columns, set_start, members)
    return RankedSubscriptionRows(column.take(pa.array(rows)), batch, rejections.as_list())


@dataclass(slots=True)
class ArrivingRows:
    """The messages of one call that may enter a window, and why the others may not."""

    messages: ArrivingMessages
    time: NDArray[np.float64]
    """As in the input; nan if there is none."""
    row: NDArray[np.int64]
    rejected: list[tuple[int, str]]

    def reject(self, reasons: Mapping[int, str]) -> None:
        """Leave out messages, by their position."""
        if not reasons:
            return
        self.rejected = sorted([*self.rejected, *((int(self.row[at]), reason) for at, reason in reasons.items())])
        remaining = np.array([at for at in range(len(self.row)) if at not in reasons], np.int64)
        self.messages, self.time, self.row = self.messages.take(remaining), self.time[remaining], self.row[remaining]


def read_arriving_objects(messages: Sequence[Message], border: ReadingContext, is_timed: bool) -> ArrivingRows:
    batch, rejected = read_message_objects(messages, border, grow=True, counted=True)
    listed = [messages[row] for row in batch.row.tolist()]
    time, expires = (
        np.array([np.nan if getattr(m, name) is None else getattr(m, name) for m in listed], np.float64)
        for name in ("time", "expires")
    )
    return _arrivals(id_array([m.id for m in listed]), batch, time, expires, rejected, is_timed)


def read_arriving_table(table: pa.Table, border: ReadingContext, is_timed: bool) -> ArrivingRows:
    read = read_message_table(table, border, grow=True, counted=True)
    rows = read.batch.row
    time, expires = seconds_column(table, "time")[rows], seconds_column(table, "expires")[rows]
    return _arrivals(read.ids.take(pa.array(rows)), read.batch, time, expires, read.rejected, is_timed)


def _arrivals(
    ids: pa.Array,
    batch: MessageBatch,
    time: NDArray[np.float64],
    expires: NDArray[np.float64],
    rejected: list[tuple[int, str]],
    is_timed: bool,
) -> ArrivingRows:
    arrays = batch.arrays
    assert batch.count is not None
    # In a count window only the order of arrival matters.
    key = np.where(np.isnan(time), 0.0, time) if is_timed else np.zeros(len(time))
    columns = (arrays.x0, arrays.y0, arrays.keyword_start, arrays.keyword)
    read = ArrivingRows(ArrivingMessages(ids, key, *columns, batch.count), time, batch.row, rejected)
    reasons: dict[int, str] = {}
    problems = [
        ((arrays.x0 != arrays.x1) | (arrays.y0 != arrays.y1), "is about an area; a ranked engine takes messages at points"),
        (~np.isnan(expires), "has expires; in a ranked engine the window ends messages: give none"),
        (np.isinf(time), "has a time that is not finite; expected seconds since 1970"),
        (np.isnan(time) & is_timed, "has no time; a window of time needs one"),
    ]
    for is_bad, problem in problems:
        for at in np.flatnonzero(is_bad).tolist():
            reasons.setdefault(at, f"the message {problem}")
    read.reject(reasons)
    return read


def _numbers(table: pa.Table, name: str, default: float, rejections: Rejections) -> NDArray[np.float64]:
    cells = number_columns(table, (name,))
    if cells is None:
        return np.full(table.num_rows, default, np.float64)
    (values,), is_null = cells
    rejections.add_where(is_null, lambda row: f"{name} is null")
    return np.where(is_null, default, values)


def _reject_repeats(column: pa.Array, rejections: Rejections) -> None:
    """Only the first of the usable rows with the same id counts."""
    if len(column.unique()) == len(column):
        return
    seen: set[object] = set()
    for row in np.flatnonzero(rejections.is_usable()).tolist():
        value = column[row].as_py()
        if value in seen:
            rejections.add(row, _twice(value))
        seen.add(value)


def _twice(id: object) -> str:
    return f"the id {id!r} comes twice in one batch; only its first row is used"


def reject_duplicate_ids(read: ArrivingRows, window: CountWindow | TimeWindow, engine: RankedEngine | ShardedEngine) -> None:
    """Reject messages whose id a living message of the window has, and messages whose ids are of another kind than before."""
    known_ids, ids = engine.window.ids, read.messages.ids
    if len(ids) == 0:
        return
    if known_ids.kind is not None and (known_ids.kind == "string") != pa.types.is_string(ids.type):
        reason = "the id is of another kind than the ids of the messages before it: keep to one kind"
        read.reject(dict.fromkeys(range(len(ids)), reason))
        return
    known = engine.window.numbers_of(ids)
    if (known < 0).all() and len(ids.unique()) == len(ids):
        return
    read.reject(_repeated(ids.to_pylist(), known.tolist(), read.messages.time.tolist(), window, engine))


def _repeated(
    ids: list[Id], known: list[int], times: list[float], window: CountWindow | TimeWindow, engine: RankedEngine | ShardedEngine
) -> dict[int, str]:
    """Which messages of a batch arrive while one with their id is alive, and the reason for each; tick by tick."""
    alive_since: dict[Id, tuple[int, float]] = {}
    layout, base = engine.window.layout(), engine.window.base
    reasons: dict[int, str] = {}
    tick, now = engine.tick, engine.now
    for at, (id, number, time) in enumerate(zip(ids, known, times, strict=True)):
        if id not in alive_since and number >= 0:
            alive_since[id] = (number, float(layout.time[number - base]))
        held = alive_since.get(id)
        if held is not None and (
            window.is_alive(held[0], tick) if isinstance(window, CountWindow) else window.is_alive(held[1], now)
        ):
            reasons[at] = f"a message with the id {id!r} is still in the window; give each message an id of its own"
            continue
        tick, now = tick + 1, max(now, time)
        alive_since[id] = (tick, time)
    return reasons
