"""Ids of what a stream gives out: the same whenever a row is written again, so that repeats can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def delivery_id() -> Column:
    """Follows from message and subscription alone."""
    from pyspark.sql import functions as F  # noqa: N812

    return _digest(F.struct("message_id", "subscription_id"))


def change_id(batch: int) -> Column:
    """Follows from the change: a list may gain the same message twice at one tick, but only in different batches."""
    from pyspark.sql import functions as F  # noqa: N812

    return _digest(F.struct(F.lit(batch).alias("batch"), "tick", "subscription_id", "message_id", "change"))


def _digest(what: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.sha2(F.to_json(what), 256)
