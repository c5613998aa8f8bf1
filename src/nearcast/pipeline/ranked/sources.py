"""The two streams of a ranked stream as one: messages, and changes of subscriptions, so that a batch has one place in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.errors import PipelineError
from nearcast.pipeline.io.sources import read_messages
from nearcast.pipeline.keeping.row_frames import CHANGE, MESSAGE, union_of
from nearcast.pipeline.keeping.sources import chosen, read_side, with_change
from nearcast.pipeline.ranked.cleaning_rows import CHANGE_COLUMNS
from nearcast.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_rows(session: SparkSession, settings: PipelineSettings, is_stream: bool = True) -> DataFrame:
    """Rows with a message or with a change of a subscription."""
    changes = read_side(session, settings, "changes", "changes of subscriptions", is_stream)
    return rows_of(read_messages(session, settings, is_stream), named_changes(changes))


def named_changes(frame: DataFrame) -> DataFrame:
    """The columns of changes, and no others, with types that are the same whatever the source has."""
    from pyspark.sql import functions as F  # noqa: N812

    missing = [name for name in ("id", "keywords", "x", "y") if name not in frame.columns]
    if missing:
        raise PipelineError(f"the changes have no columns {missing}; they have {frame.columns}: expected id, keywords, x, y")
    frame = with_change(frame)
    kept = chosen(frame, CHANGE_COLUMNS)
    # Where one of the two is not given, it is that of everybody else.
    for name, default, kind in (("k", 20, "int"), ("spatial_weight", 0.5, "double")):
        kept[name] = F.coalesce(F.col(name), F.lit(default)).try_cast(kind) if name in kept else F.lit(default).cast(kind)
    return frame.select(*[column.alias(name) for name, column in kept.items()])


def rows_of(messages: DataFrame, changes: DataFrame) -> DataFrame:
    """Both as rows of one frame."""
    return union_of({MESSAGE: messages, CHANGE: changes})
