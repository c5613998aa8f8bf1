"""Choose the grid of a node, and sort the clauses into its cells.

Each axis is divided by itself: strips of equal weight first, then every bound is moved once. Paper: §3.3.3. A box is filed in
every cell from that of its lower left to that of its upper right corner; the outermost cells are open to infinity. A box that
covers the region is filed in the dummy cell, our last child.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.sorting import sort_run
from nearcast.papers.boolean.adaptive_tree.kernels.partition import even_bounds, improve_bounds
from nearcast.papers.boolean.adaptive_tree.layout import MOST_EDGES, SAMPLE


@inline_kernel
def grid_position(value, low, high, scale, per_axis):
    """The position of a coordinate among `per_axis` cells, with its fraction; clamped."""
    if value <= low:
        return 0.0
    if value >= high:
        return float(per_axis)
    # Halved first: the difference of two finite numbers may not be finite.
    return min((value * 0.5 - low * 0.5) * scale, float(per_axis))


@inline_kernel
def count_below(count_sum, frame, x, y):
    """The count left of `x` and below `y`, as if counts were evenly spread within a cell."""
    per_axis = int(frame[6])
    column = grid_position(x, frame[0], frame[1], frame[2], per_axis)
    row = grid_position(y, frame[3], frame[4], frame[5], per_axis)
    i, j = min(int(column), per_axis - 1), min(int(row), per_axis - 1)
    right, up = column - i, row - j
    at = j * (per_axis + 1) + i
    low = count_sum[at] + right * (count_sum[at + 1] - count_sum[at])
    at += per_axis + 1
    high = count_sum[at] + right * (count_sum[at + 1] - count_sum[at])
    return low + up * (high - low)


@kernel
def count_points(frame, x, y, count_sum):
    """Add points to a grid, one in the cell to the lower left of each running sum."""
    per_axis = int(frame[6])
    for i in range(x.size):
        column = min(int(grid_position(x[i], frame[0], frame[1], frame[2], per_axis)), per_axis - 1)
        row = min(int(grid_position(y[i], frame[3], frame[4], frame[5], per_axis)), per_axis - 1)
        count_sum[(row + 1) * (per_axis + 1) + column + 1] += 1.0


@inline_kernel
def strip_of(bound, first, n_strips, value):
    """The strip of a coordinate: how many inner bounds are not above it."""
    strip = 0
    for at in range(first, first + n_strips - 1):
        if bound[at] <= value:
            strip += 1
    return strip


@inline_kernel
def covers(box, at, region, item):
    return (
        box[at] <= region[item]
        and box[at + 1] <= region[item + 1]
        and box[at + 2] >= region[item + 2]
        and box[at + 3] >= region[item + 3]
    )


@kernel
def take_sample(work, start, stop, region_at):
    """Sample boxes that do not cover the region, each bound in its quarter of `sample`; returns how many of each."""
    order, box, region, sample = work.order, work.box, work.item_region, work.sample
    step = (stop - start + SAMPLE - 1) // SAMPLE
    n, n_covering = 0, 0
    for at in range(start, stop, step):
        local = 4 * order[at]
        if covers(box, local, region, region_at):
            n_covering += 1
            continue
        for coordinate in range(4):
            sample[coordinate * SAMPLE + n] = box[local + coordinate]
        n += 1
    return n, n_covering


@kernel
def plan_strips(work, density, n, axis, region_at, n_needed, bounds_at, grid_at):
    """Divide one axis into at most `n_needed` strips; returns how many. The inner bounds go to `grid`."""
    sample, edge, bounds, grid, region = work.sample, work.edge, work.bounds[bounds_at:], work.grid, work.item_region
    count_sum, frame = density.count_sum, density.frame
    low, high = region[region_at + axis], region[region_at + axis + 2]
    begin, end = axis * SAMPLE, (axis + 2) * SAMPLE
    width = MOST_EDGES + 2
    value, n_begun, n_ended, likely = edge[:width], edge[width:], edge[2 * width :], edge[3 * width :]
    step = max(1, (2 * n + MOST_EDGES - 1) // MOST_EDGES)
    n_edges, i, j, passed, last = 0, 0, 0, 0, low
    while i + j < 2 * n:
        # A bound just beyond the end of a closed box keeps it out of the next strip.
        if j == n or (i < n and sample[begin + i] <= sample[end + j]):
            at = sample[begin + i]
            i += 1
        else:
            at = sample[end + j]
            if at < high:
                at = np.nextafter(at, high)
            j += 1
        passed += 1
        if passed >= step and at > last and at < high:
            n_edges += 1
            value[n_edges] = at
            last, passed = at, 0
    value[0], value[n_edges + 1] = low, high
    i, j = 0, 0
    for k in range(n_edges + 2):
        while i < n and sample[begin + i] < value[k]:
            i += 1
        while j < n and sample[end + j] < value[k]:
            j += 1
        # Nothing has ended before the first strip, and everything has begun before the end of the last.
        n_begun[k] = float(i) if k <= n_edges else float(n)
        n_ended[k] = float(j) if k > 0 else 0.0
        if axis == 0:
            likely[k] = count_below(count_sum, frame, value[k], region[region_at + 3])
            likely[k] -= count_below(count_sum, frame, value[k], region[region_at + 1])
        else:
            likely[k] = count_below(count_sum, frame, region[region_at + 2], value[k])
            likely[k] -= count_below(count_sum, frame, region[region_at], value[k])
    n_strips = min(n_needed, n_edges + 1)
    even_bounds(n_begun, n_ended, n_edges + 1, n_strips, bounds)
    improve_bounds(n_begun, n_ended, likely, n_strips, bounds)
    for strip in range(n_strips - 1):
        grid[grid_at + strip] = value[bounds[strip + 1]]
    return n_strips


@kernel
def plan_grid(work, density, start, stop, region_at, fanout, most_copies):
    """Choose a grid; returns the expected cost (infinite if none divides without copying too much), columns and rows.

    The closer clauses are, the narrower are the strips compared with their boxes, and the more copies a fine grid makes. Then a
    coarser grid is tried: without it only keywords would be left, however much more they cost.
    """
    sample = work.sample
    n, n_covering = take_sample(work, start, stop, region_at)
    if n == 0:
        return np.inf, 0, 0
    for coordinate in range(4):
        # Each bound by itself: strips are chosen by how many boxes begin and how many end before them.
        sort_run(sample, coordinate * SAMPLE, coordinate * SAMPLE + n)
    n_sampled = n + n_covering
    allowed = most_copies * n_sampled - n_covering
    per_axis = 1
    while (per_axis + 1) * (per_axis + 1) <= fanout:
        per_axis += 1
    while per_axis > 1:
        n_columns, n_rows = plan_axes(work, density, n, region_at, per_axis, fanout)
        if n_columns * n_rows == 1:
            break
        cost, n_copies, most = cost_of_cells(work, density, start, stop, region_at, n_columns, n_rows)
        if n_copies <= allowed:
            if most >= n_sampled:
                break
            return (cost + n_covering) * (stop - start) / n_sampled, n_columns, n_rows
        per_axis = min(per_axis - 1, coarser_grid(per_axis, n_copies / n, allowed / n))
        fanout = per_axis * per_axis
    return np.inf, 0, 0


@inline_kernel
def coarser_grid(per_axis, copies, allowed):
    """How many strips per axis to try next if `per_axis` make too many copies: copies grow with the bounds between strips."""
    if allowed <= 1.0:
        return 1
    return 1 + int((per_axis - 1) * (np.sqrt(allowed) - 1.0) / (np.sqrt(copies) - 1.0))


@kernel
def plan_axes(work, density, n, region_at, per_axis, fanout):
    """Divide both axes, into `per_axis` strips each if possible; returns columns and rows. The inner bounds go to `grid`."""
    half = work.grid.size // 2
    width = work.bounds.size // 3
    n_columns = plan_strips(work, density, n, 0, region_at, per_axis, width, 0)
    n_rows = plan_strips(work, density, n, 1, region_at, fanout // n_columns, 2 * width, half)
    if n_rows < per_axis and n_columns == per_axis:
        n_columns = plan_strips(work, density, n, 0, region_at, fanout // n_rows, width, 0)
    return n_columns, n_rows


@inline_kernel
def expected_count(density, region, at):
    """How many messages are expected in a region."""
    count_sum, frame = density.count_sum, density.frame
    x_low, y_low, x_high, y_high = region[at], region[at + 1], region[at + 2], region[at + 3]
    total = count_below(count_sum, frame, x_high, y_high) - count_below(count_sum, frame, x_low, y_high)
    return total - (count_below(count_sum, frame, x_high, y_low) - count_below(count_sum, frame, x_low, y_low))


@kernel
def cost_of_cells(work, density, start, stop, region_at, n_columns, n_rows):
    """For the sampled boxes: the expected cost of the cells, the copies in all, and the most in one cell."""
    order, box, region, grid, count = work.order, work.box, work.item_region, work.grid, work.counts
    count_sum, frame = density.count_sum, density.frame
    half = grid.size // 2
    width = n_columns + 1
    # Differences of the counts, then running sums: a box of any size changes four numbers.
    for cell in range(width * (n_rows + 1)):
        count[cell] = 0
    step = (stop - start + SAMPLE - 1) // SAMPLE
    for at in range(start, stop, step):
        local = 4 * order[at]
        if covers(box, local, region, region_at):
            continue
        column0, column1 = strip_of(grid, 0, n_columns, box[local]), strip_of(grid, 0, n_columns, box[local + 2])
        row0, row1 = strip_of(grid, half, n_rows, box[local + 1]), strip_of(grid, half, n_rows, box[local + 3])
        count[row0 * width + column0] += 1
        count[row0 * width + column1 + 1] -= 1
        count[(row1 + 1) * width + column0] -= 1
        count[(row1 + 1) * width + column1 + 1] += 1
    x_low, y_low, x_high, y_high = (
        region[region_at],
        region[region_at + 1],
        region[region_at + 2],
        region[region_at + 3],
    )
    total = expected_count(density, region, region_at)
    cost, n_copies, most = 0.0, 0, 0
    y0 = y_low
    for row in range(n_rows):
        y1 = grid[half + row] if row < n_rows - 1 else y_high
        below = count_below(count_sum, frame, x_low, y1) - count_below(count_sum, frame, x_low, y0)
        along = 0
        for column in range(n_columns):
            along += count[row * width + column]
            n_in_cell = along
            if row > 0:
                n_in_cell += count[(row - 1) * width + column]
            # Stored as the running sum of the column for the next row.
            count[row * width + column] = n_in_cell
            x1 = grid[column] if column < n_columns - 1 else x_high
            right_of = count_below(count_sum, frame, x1, y1) - count_below(count_sum, frame, x1, y0)
            likely = (right_of - below) / total if total > 0.0 else 1.0 / (n_columns * n_rows)
            cost += n_in_cell * likely
            below = right_of
            n_copies += n_in_cell
            most = max(most, n_in_cell)
        y0 = y1
    return cost, n_copies, most


@kernel
def count_cells(work, start, stop, region_at, n_columns, n_rows, count):
    """Count every clause of a node into its cells, those that cover the region last; returns the copies in all."""
    order, box, region, grid = work.order, work.box, work.item_region, work.grid
    half = grid.size // 2
    n_cells = n_columns * n_rows
    for cell in range(n_cells + 1):
        count[cell] = 0
    for at in range(start, stop):
        local = 4 * order[at]
        if covers(box, local, region, region_at):
            count[n_cells] += 1
            continue
        column0, column1 = strip_of(grid, 0, n_columns, box[local]), strip_of(grid, 0, n_columns, box[local + 2])
        row0, row1 = strip_of(grid, half, n_rows, box[local + 1]), strip_of(grid, half, n_rows, box[local + 3])
        for row in range(row0, row1 + 1):
            for column in range(column0, column1 + 1):
                count[row * n_columns + column] += 1
    n_copies = 0
    for cell in range(n_cells + 1):
        n_copies += count[cell]
    return n_copies


@kernel
def sort_into_cells(work, start, stop, region_at, n_columns, n_rows, count):
    """Write the clauses of a node after `stop`, cell by cell, a copy in each that they reach; `count` as `count_cells`."""
    order, box, region, grid = work.order, work.box, work.item_region, work.grid
    half = grid.size // 2
    n_cells = n_columns * n_rows
    cursor = work.counts[work.counts.size // 2 :]
    cursor[0] = stop
    for cell in range(n_cells):
        cursor[cell + 1] = cursor[cell] + count[cell]
    for at in range(start, stop):
        local = 4 * order[at]
        if covers(box, local, region, region_at):
            order[cursor[n_cells]] = order[at]
            cursor[n_cells] += 1
            continue
        column0, column1 = strip_of(grid, 0, n_columns, box[local]), strip_of(grid, 0, n_columns, box[local + 2])
        row0, row1 = strip_of(grid, half, n_rows, box[local + 1]), strip_of(grid, half, n_rows, box[local + 3])
        for row in range(row0, row1 + 1):
            for column in range(column0, column1 + 1):
                cell = row * n_columns + column
                order[cursor[cell]] = order[at]
                cursor[cell] += 1
