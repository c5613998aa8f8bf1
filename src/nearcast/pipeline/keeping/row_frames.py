"""Rows of several kinds in one frame, so that a batch has one place in all of its sources: a column for each kind, of which a
row has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MESSAGE, CHANGE, BAD = "message", "subscription", "bad"
_BAD_FIELDS = dict.fromkeys(("id", "reason", "row"), "string")


def union_of(frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of all frames, those of each in the column of its name."""
    from functools import reduce

    from pyspark.sql import functions as F  # noqa: N812

    rows = {name: frame.select(F.struct(*frame.columns).alias(name)) for name, frame in frames.items()}
    kinds = {name: frame.schema[name].dataType.simpleString() for name, frame in rows.items()}

    def column(of: str, name: str) -> Any:
        return F.col(name) if name == of else F.lit(None).cast(kinds[name]).alias(name)

    parts = [frame.select(*[column(of, name) for name in kinds]) for of, frame in rows.items()]
    return reduce(lambda first, second: first.unionByName(second), parts)


def fields_of(rows: DataFrame, name: str) -> dict[str, str]:
    """The fields of a kind of rows, with their types as Spark names them."""
    struct: Any = rows.schema[name].dataType
    return {field.name: field.dataType.simpleString() for field in struct.fields}


def message_fields(rows: DataFrame, also: Mapping[str, str] | None = None) -> dict[str, str]:
    """What cleaning makes of such messages; `also` are fields that are added or get another type."""
    raw = fields_of(rows, MESSAGE)
    position = ("x0", "y0", "x1", "y1") if "x0" in raw else ("x", "y")
    message = {"id": raw["id"], "keywords": raw.get("keywords", "array<string>"), **dict.fromkeys(position, "double")}
    message |= {"time": raw["time"]} if "time" in raw else {}
    return {**message, **(also or {})}


def schema_of(kinds: Mapping[str, Mapping[str, str]]) -> str:
    """The schema of clean rows, and of bad ones beside them."""
    listed = {
        name: ", ".join(f"{field}: {kind}" for field, kind in fields.items())
        for name, fields in {**kinds, BAD: _BAD_FIELDS}.items()
    }
    return ", ".join(f"{name} struct<{fields}>" for name, fields in listed.items())
