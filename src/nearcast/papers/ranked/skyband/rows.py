"""Columns by subscription number that grow together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray


class Rows:
    """Named columns of one length; new rows have the value given for their column."""

    def __init__(
        self, columns: Mapping[str, tuple[type[np.generic], int]], given: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        self._fresh = {name: value for name, (_, value) in columns.items()}
        self._columns = {name: GrowingArray(dtype, (given or {}).get(name)) for name, (dtype, _) in columns.items()}

    def grow(self, n: int) -> None:
        """Have at least `n` rows."""
        for name, column in self._columns.items():
            if n > column.n:
                column.extend(self._fresh[name], n - column.n)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].used

    def used(self) -> dict[str, NDArray[Any]]:
        return {name: column.used for name, column in self._columns.items()}

    @property
    def n_bytes(self) -> int:
        return sum(column.room.nbytes for column in self._columns.values())
