"""Arguments of the public methods: lists of objects, ids of subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.identifiers import Identifiers, id_array
from nearcast.errors import NearcastError
from nearcast.kernels.hashing import ABSENT
from nearcast.model.inputs import checked_id


def as_list(items: Any, expected: type | tuple[type, ...], what: str) -> Sequence[Any]:
    """The items as a list or tuple; NearcastError for a single one, which is an easy mistake."""
    single = (*(expected if isinstance(expected, tuple) else (expected,)), str, bytes)
    if isinstance(items, single) or not isinstance(items, Iterable):
        raise NearcastError(f"{what} were given as {items!r}; expected a list of them: use [...]")
    return items if isinstance(items, list | tuple) else list(items)


def numbers_of_ids(ids: Any, known: Identifiers) -> NDArray[np.int32]:
    """The numbers of ids in a list or a column of a table, each once; unknown ids are left out."""
    numbers = known.find(_as_column(ids, known.kind))
    return np.unique(numbers[numbers != ABSENT])


def _as_column(ids: Any, kind: str | None) -> pa.Array:
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        if ids.null_count:
            raise NearcastError(f"ids were given as a column with {ids.null_count} nulls; expected an id in each row")
        return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    checked = [checked_id(id, "subscription", NearcastError) for id in as_list(ids, (int, str), "ids")]
    expected = str if kind == "string" else int
    # Ids of the other kind are unknown too.
    return id_array([id for id in checked if isinstance(id, expected)])
