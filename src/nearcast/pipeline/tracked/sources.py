"""The three streams of a tracked stream as one, so that a batch has one place in all: messages, moves, changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearcast.columns.schemas import BOX
from nearcast.errors import PipelineError
from nearcast.pipeline.io.sources import read_messages
from nearcast.pipeline.keeping.row_frames import CHANGE, MESSAGE, fields_of, union_of
from nearcast.pipeline.keeping.sources import chosen, read_side, with_change
from nearcast.pipeline.prepare.cleaning import RAW_COLUMNS
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.tracked.cleaning_rows import CHANGE_COLUMNS, MOVE, MOVE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGE_COLUMNS = (*RAW_COLUMNS, "expires")


def read_rows(session: SparkSession, settings: PipelineSettings, is_stream: bool = True) -> DataFrame:
    """Rows with a message, a move or a change of a subscription."""
    changes = read_side(session, settings, "changes", "changes of subscriptions", is_stream)
    moves = read_side(session, settings, "moves", "moves", is_stream)
    return rows_of(read_messages(session, settings, is_stream, MESSAGE_COLUMNS), moves, changes)


def rows_of(messages: DataFrame, moves: DataFrame, changes: DataFrame) -> DataFrame:
    """All as rows of one frame."""
    changes = _named(with_change(changes), CHANGE_COLUMNS, "changes", ("keywords", "interest"))
    moves = _named(moves, MOVE_COLUMNS, "moves", ("x0", "region"))
    rows = union_of({MESSAGE: messages, CHANGE: changes, MOVE: moves})
    kinds = {name: fields_of(rows, name)["id"] for name in (CHANGE, MOVE)}
    if kinds[CHANGE] != kinds[MOVE]:
        raise PipelineError(
            f"the ids of moves are of type {kinds[MOVE]}, those of the subscriptions {kinds[CHANGE]}; make them the same"
        )
    return rows


def _named(frame: DataFrame, columns: Sequence[str], what: str, one_of: tuple[str, str]) -> DataFrame:
    """The columns of these rows, and no others; at least the id and one of two."""
    if "id" not in frame.columns or not set(one_of) & set(frame.columns):
        raise PipelineError(f"the {what} have the columns {frame.columns}; expected id, and {one_of[0]} or {one_of[1]}")
    if 0 < len(set(BOX) & set(frame.columns)) < len(BOX):
        raise PipelineError(f"the {what} have the columns {frame.columns}; expected all of {', '.join(BOX)} or none")
    return frame.select(*[column.alias(name) for name, column in chosen(frame, columns).items()])
