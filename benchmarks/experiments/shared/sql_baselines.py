"""What a data engineer writes without an index: joins on the rarest keyword, plain and with a grid. For comparison only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GRID = 64


def join_plain(messages: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Explode the keywords, join on the rarest, filter box and remaining keywords."""
    from pyspark.sql import functions as F  # noqa: N812

    exploded = messages.withColumn("keyword", F.explode(F.array_distinct("keywords")))
    joined = exploded.alias("m").join(subscriptions.alias("s"), F.col("m.keyword") == F.col("s.rarest"))
    return _checked(joined)


def join_clever(messages: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """The same join on the rarest keyword and a cell of a grid; boxes are filed in every cell they meet."""
    from pyspark.sql import functions as F  # noqa: N812

    def column(x: str, y: str) -> Column:
        return F.floor(F.col(x) * GRID) * 100_000 + F.floor(F.col(y) * GRID)

    exploded = messages.withColumn("keyword", F.explode(F.array_distinct("keywords"))).withColumn("cell", column("x", "y"))
    xs = F.sequence(F.floor(F.col("x0") * GRID), F.floor(F.col("x1") * GRID))
    ys = F.sequence(F.floor(F.col("y0") * GRID), F.floor(F.col("y1") * GRID))
    filed = subscriptions.withColumn("cx", F.explode(xs)).withColumn("cy", F.explode(ys))
    filed = filed.withColumn("cell", F.col("cx") * 100_000 + F.col("cy"))
    same = (F.col("m.keyword") == F.col("s.rarest")) & (F.col("m.cell") == F.col("s.cell"))
    return _checked(exploded.alias("m").join(filed.alias("s"), same))


def _checked(joined: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    is_inside = F.col("m.x").between(F.col("s.x0"), F.col("s.x1")) & F.col("m.y").between(F.col("s.y0"), F.col("s.y1"))
    has_all = F.size(F.array_except("s.keywords", "m.keywords")) == 0
    found = joined.where(is_inside & has_all)
    return found.select(F.col("m.id").alias("message_id"), F.col("s.id").alias("subscription_id"))
