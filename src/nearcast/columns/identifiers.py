"""Ids of subscriptions (int64 or string) to dense numbers and back; one kind per table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import is_string, number_buffer, number_column, numbers, string_column
from nearcast.columns.id_tables import NumberTable, WordTable
from nearcast.errors import SchemaError
from nearcast.kernels.deliveries import look_up_ids
from nearcast.kernels.hashing import ABSENT
from nearcast.model.inputs import Id

KINDS = {"int": "int64", "string": "string"}


def id_kind(kind: pa.DataType) -> str:
    """ "int" or "string"; raises SchemaError for anything else."""
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "int"
    if is_string(kind):
        return "string"
    raise SchemaError(f"column 'id' is of type {kind}; expected an integer type up to int64, or string")


def id_array(ids: Sequence[Id]) -> pa.Array:
    """Ids of one kind as a column."""
    if ids and isinstance(ids[0], str):
        return string_column(cast("Sequence[str]", ids))
    return number_column(np.array(ids, np.int64))


class Identifiers:
    """A growing table of ids; the first ids decide the kind."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._numbers = NumberTable()
        self._strings = WordTable(fold=False)
        self._values: pa.Array | None = None

    @property
    def n(self) -> int:
        return self._strings.n if self.kind == "string" else self._numbers.n

    def check_kind(self, kind: str) -> None:
        """Raise SchemaError if ids of another kind are known already."""
        if self.kind is not None and self.kind != kind:
            raise SchemaError(
                f"ids of kind {KINDS[kind]} were given; this engine uses {KINDS[self.kind]} ids: keep to one kind"
            )

    def add(self, ids: pa.Array) -> NDArray[np.int32]:
        """The number of each id, new ones included."""
        if len(ids) == 0:
            return np.empty(0, np.int32)
        kind = id_kind(ids.type)
        self.check_kind(kind)
        self.kind = kind
        return self._strings.add(ids) if kind == "string" else self._numbers.add(numbers(ids, np.int64))

    def find(self, ids: pa.Array) -> NDArray[np.int32]:
        """The number of each id, or ABSENT if it is unknown, also because it is of the other kind."""
        if self.kind is None or id_kind(ids.type) != self.kind:
            return np.full(len(ids), ABSENT, np.int32)
        number = self._strings.find(ids) if self.kind == "string" else self._numbers.find(numbers(ids, np.int64))
        return np.maximum(number, ABSENT)

    def take(self, number: NDArray[np.int32]) -> pa.Array:
        """The ids with these numbers, as a column."""
        if self.kind != "string":
            values, column = number_buffer(len(number))
            ids, first = self.numbering()
            if len(ids):
                look_up_ids(ids, number, 0, values)
            else:
                np.add(number, np.int64(first), out=values)
            return column
        if self._values is None or len(self._values) != self.n:
            self._values = self._strings.values()
        return self._values.take(number_column(number)).cast(pa.string())

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The ids by number, where ids are int64."""
        return self._numbers.values()

    def numbering(self) -> tuple[NDArray[np.int64], int]:
        """How to turn numbers into int64 ids: the ids by number and 0; or an empty array and the first id, if ids count up from
        it."""
        values = self._numbers.values()
        if self._numbers.is_counting and len(values):
            return values[:0], int(values[0])
        return values, 0

    def value(self, number: int) -> Id:
        return self._strings.value(number) if self.kind == "string" else self._numbers.value(number)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._strings.arrays() if self.kind == "string" else self._numbers.arrays()

    @classmethod
    def from_arrays(cls, kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> Identifiers:
        table = cls()
        table.kind = kind
        if kind == "string":
            table._strings = WordTable.from_arrays(arrays, fold=False)
        else:
            table._numbers = NumberTable.from_arrays(arrays)
        return table

    @property
    def n_bytes(self) -> int:
        return self._strings.n_bytes if self.kind == "string" else self._numbers.n_bytes
