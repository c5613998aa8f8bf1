"""The cost of an entry at each level: the cost of a list is shared by its entries."""

from __future__ import annotations

import numpy as np

from nearcast.ranked.impact_grid.kernels.build import set_list_costs
from nearcast.ranked.impact_grid.layout import N_LEVELS

CLASS_SHIFT, LEVEL_SHIFT = 21, 18


def prices_of(cells: dict[tuple[int, int], list[int]], n_classes: int) -> np.ndarray:
    """Costs by class and level, for these numbers of entries in the cells of each."""
    key = [
        own << CLASS_SHIFT | level << LEVEL_SHIFT | cell
        for (own, level), numbers in cells.items()
        for cell, number in enumerate(numbers)
        for _ in range(number)
    ]
    # Values from before do not count.
    list_cost, n_cells = np.full(n_classes * N_LEVELS, 7.0), np.full(n_classes * N_LEVELS, 7)
    set_list_costs(np.sort(np.array(key, np.int64)), len(key), list_cost, n_cells)
    return list_cost.reshape(n_classes, N_LEVELS)


def test_a_list_is_shared_by_all_who_are_in_it() -> None:
    list_cost = prices_of({(0, 1): [100, 60], (0, 3): [1, 1, 2], (1, 0): [50]}, 3)
    assert list_cost[0, 1] == 8.0 * 2 / 160
    assert list_cost[0, 3] == 8.0 * 3 / 4


def test_all_of_a_class_share_the_list_for_everywhere() -> None:
    list_cost = prices_of({(0, 1): [100, 60], (0, 3): [1, 1, 2], (1, 0): [50]}, 3)
    assert list_cost[:, 0].tolist() == [8.0 / 164, 8.0 / 50, 8.0]


def test_nobody_goes_where_nobody_was() -> None:
    list_cost = prices_of({(0, 1): [100, 60], (1, 0): [50]}, 2)
    assert (list_cost[0, [2, 3, 4]] > 1e6).all()
    assert (list_cost[1, 1:] > 1e6).all()
