"""Dyadic cells: columns, codes, and the cheapest cover against its plain definition."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from nearcast.kernels.quadtree import (
    PRIOR_AREA,
    PRIOR_LOCATIONS,
    cell_code,
    column_of,
    column_of_code,
    cover_box,
    cover_scratch,
    depth_of_code,
    row_of_code,
)

LARGEST = sys.float_info.max
DEPTH = 4


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [(0.0, 1.0, 32.0), (-180.0, 180.0, 16 / 180.0), (-LARGEST, LARGEST, 16 / LARGEST), (3.0, 3.0, 0.0), (0.0, 5e-324, 0.0)],
)
def test_columns_never_fall_and_clamp_what_lies_outside(low: float, high: float, scale: float) -> None:
    values = [-LARGEST, -1e9, -181.0, low, low / 2 + high / 2, 0.0, 5e-324, 0.3, 0.999, 1.0, 3.0, high, 179.0, 1e300, LARGEST]
    columns = [column_of(value, low, high, scale, 16) for value in sorted(values)]
    assert columns == sorted(columns)
    assert columns[0] == 0
    assert columns[-1] == 15


def test_columns_are_of_equal_width() -> None:
    assert [column_of(20.0 + i / 100, 20.0, 20.16, 16 / 0.08, 16) for i in range(16)] == pytest.approx(range(16), abs=1)
    assert [column_of(i + 0.5, 0.0, 16.0, 16 / 8.0, 16) for i in range(16)] == list(range(16))


def test_a_code_names_one_cell() -> None:
    seen = set()
    for depth in (0, 1, 2, 5, 15):
        for column, row in itertools.product({0, 1, (1 << depth) // 3, (1 << depth) - 1}, repeat=2):
            if max(column, row) < 1 << depth:
                code = int(cell_code(depth, column, row))
                assert (depth_of_code(code), column_of_code(code), row_of_code(code)) == (depth, column, row)
                assert code < 1 << 31
                if depth:
                    assert code >> 2 == cell_code(depth - 1, column // 2, row // 2)
                seen.add((code, depth, column, row))
    assert len({code for code, *_ in seen}) == len(seen)


def places(rng: np.random.Generator, n: int) -> np.ndarray:
    """Sorted cells of the greatest depth, half of them crowded together."""
    columns = np.where(rng.random(n) < 0.5, rng.integers(0, 16, n), rng.integers(4, 7, n))
    rows = np.where(rng.random(n) < 0.5, rng.integers(0, 16, n), rng.integers(9, 11, n))
    codes = [int(cell_code(DEPTH, int(c), int(r))) - (1 << (2 * DEPTH)) for c, r in zip(columns, rows, strict=True)]
    return np.sort(np.array(codes, np.int32))


class Plain:
    """The definition: own(c) at the depth limit or inside the box, else the cheaper of own(c) and the quarters."""

    def __init__(
        self, box: tuple[int, int, int, int], weight: float, update_cost: float, everyone: np.ndarray, own: np.ndarray
    ):
        self.box, self.weight, self.update_cost, self.everyone, self.own = box, weight, update_cost, everyone, own

    def count(self, values: np.ndarray, depth: int, column: int, row: int) -> int:
        shift = 2 * (DEPTH - depth)
        return int(np.sum((values.astype(np.int64) | (1 << (2 * DEPTH))) >> shift == cell_code(depth, column, row)))

    def price(self, depth: int, column: int, row: int) -> float:
        everyone = (self.count(self.everyone, depth, column, row) + PRIOR_AREA / 4**depth) / (len(self.everyone) + PRIOR_AREA)
        share = (self.count(self.own, depth, column, row) + PRIOR_LOCATIONS * everyone) / (len(self.own) + PRIOR_LOCATIONS)
        return float(self.weight * share + self.update_cost)

    def best(self, depth: int = 0, column: int = 0, row: int = 0) -> float:
        column0, row0, column1, row1 = self.box
        shift = DEPTH - depth
        left, bottom = column << shift, row << shift
        right, top = left + (1 << shift) - 1, bottom + (1 << shift) - 1
        if right < column0 or column1 < left or top < row0 or row1 < bottom:
            return 0.0
        own = self.price(depth, column, row)
        if depth == DEPTH or (column0 < left and right < column1 and row0 < bottom and top < row1):
            return own
        return min(own, sum(self.best(depth + 1, 2 * column + (q & 1), 2 * row + (q >> 1)) for q in range(4)))


@pytest.mark.parametrize("update_cost", [0.0001, 0.003, 0.02, 0.2])
@pytest.mark.parametrize("weight", [1.0, 0.05])
def test_the_cover_is_disjoint_complete_and_of_least_cost(update_cost: float, weight: float) -> None:
    rng = np.random.default_rng(5)
    room = cover_scratch(DEPTH, update_cost)
    for n_all, n_own in ((0, 0), (300, 0), (300, 40), (0, 25)):
        everyone, own = places(rng, n_all), places(rng, n_own)
        for _ in range(6):
            column0, column1 = sorted(rng.integers(0, 16, 2).tolist())
            row0, row1 = sorted(rng.integers(0, 16, 2).tolist())
            box = (column0, row0, column1, row1)
            n = cover_box(box, (weight, update_cost, DEPTH), (everyone, own, 0, n_own), *room)
            codes = [int(code) for code in room[2][:n]]
            covered = [code << (2 * (DEPTH - int(depth_of_code(code)))) for code in codes]
            spans = [
                range(first, first + 4 ** (DEPTH - int(depth_of_code(c)))) for first, c in zip(covered, codes, strict=True)
            ]
            smallest = [cell for span in spans for cell in span]
            assert len(smallest) == len(set(smallest))
            wanted = {int(cell_code(DEPTH, c, r)) for c in range(column0, column1 + 1) for r in range(row0, row1 + 1)}
            assert wanted <= set(smallest)
            plain = Plain(box, weight, update_cost, everyone, own)
            cost = sum(plain.price(int(depth_of_code(c)), int(column_of_code(c)), int(row_of_code(c))) for c in codes)
            assert cost == pytest.approx(plain.best(), rel=1e-12)
