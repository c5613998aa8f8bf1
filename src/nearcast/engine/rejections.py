"""Rows of a batch that cannot be used, with the first reason found for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.schemas import BOX
from nearcast.model.spaces import Space


class Rejections:
    """Collects (row, reason); one bad row never sinks its batch."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._reasons: dict[int, str] = {}

    def add(self, row: int, reason: str) -> None:
        self._reasons.setdefault(row, reason)

    def add_where(self, is_bad: NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        for row in np.flatnonzero(is_bad).tolist():
            self.add(row, reason(row))

    def add_members(self, list_start: NDArray[np.int64], problems: Mapping[int, str]) -> None:
        """Reject the rows whose lists hold these members (positions count from the first list's first member)."""
        for position, reason in problems.items():
            self.add(int(np.searchsorted(list_start - list_start[0], position, side="right")) - 1, reason)

    def is_usable(self) -> NDArray[np.bool_]:
        """Which rows were not rejected so far."""
        is_usable = np.ones(self._n_rows, bool)
        is_usable[list(self._reasons)] = False
        return is_usable

    def listed(self) -> list[tuple[int, str]]:
        return sorted(self._reasons.items())


def reject_bad_boxes(
    rejections: Rejections, boxes: list[NDArray[np.float64]], is_considered: NDArray[np.bool_], space: Space
) -> None:
    """Reject rows whose box is not finite, inverted or outside the space."""
    x0, y0, x1, y1 = boxes

    def shown(row: int) -> str:
        return f"({', '.join(f'{name}={box[row].item()!r}' for name, box in zip(BOX, boxes, strict=True))})"

    is_finite = np.isfinite(x0) & np.isfinite(y0) & np.isfinite(x1) & np.isfinite(y1)
    rejections.add_where(is_considered & ~is_finite, lambda row: f"the place {shown(row)} is not finite; give finite numbers")
    is_inverted = (x0 > x1) | (y0 > y1)
    rejections.add_where(
        is_considered & is_inverted, lambda row: f"the box {shown(row)} is inverted; expected x0 <= x1 and y0 <= y1"
    )
    if space.is_lonlat:
        is_outside = (x0 < -180.0) | (x1 > 180.0) | (y0 < -90.0) | (y1 > 90.0)
        rejections.add_where(
            is_considered & is_outside,
            lambda row: f"the place {shown(row)} lies outside lonlat: expected |x| <= 180 and |y| <= 90",
        )
