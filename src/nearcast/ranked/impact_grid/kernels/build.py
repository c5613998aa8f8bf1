"""Choose the cells of each subscription, and write the lists of a part."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.boxes import EARTH_RADIUS_M
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import multiply, shift_right
from nearcast.ranked.impact_grid.kernels.keyword_stats import CLASS_SHARE, first_edge, n_edges
from nearcast.ranked.impact_grid.kernels.packing import columns_before, order_words, write_list
from nearcast.ranked.impact_grid.layout import COUNT_BITS, EDGES, FINEST, FREQUENCY, LEVEL_BITS, N_COLUMNS, N_LEVELS, PER_LINE

# The cost of a list, in scanned entries, and of a level that no list of a class has.
_COST_OF_LIST, _NOBODY_THERE = 8.0, 1e9
# A subscription is in at most this many cells.
_MOST_CELLS = 400
# Bits of a key: class of the keyword, level, cell of the finest level.
_CELL_BITS = 2 * FINEST
_LEVEL_SHIFT, _CLASS_SHIFT = _CELL_BITS, _CELL_BITS + 3
_GOLDEN = -7046029254386353131
# A scan reads less than this beyond the end of a list.
BEYOND = 64
# What a part lacks: capacity for keys, or for entries, buckets and cells.
DONE, LACKS_KEYS, LACKS_CAPACITY = -1, -2, -3


@inline_kernel
def cell_key(bucket, level, column, row):
    """The hash key of a cell; `column` and `row` are of the finest level."""
    bits = LEVEL_BITS[level]
    shift = FINEST - bits
    return bucket << _CLASS_SHIFT | level << _LEVEL_SHIFT | (column >> shift) << bits | row >> shift


@inline_kernel
def home_of(key, n_slots):
    return shift_right(multiply(np.int64(key), np.int64(_GOLDEN)), np.int64(30)) & np.int64(n_slots - 1)


@kernel
def count_postings(subscriptions, numbers, count):
    """Count the subscriptions of each keyword; returns the number of postings."""
    first, n_words, keyword = subscriptions.first, subscriptions.n_words, subscriptions.keyword
    n = 0
    for i in range(numbers.size):
        s = numbers[i]
        for at in range(first[s], first[s] + n_words[s]):
            count[keyword[at]] += 1
        n += n_words[s]
    return n


@kernel
def fill_postings(words, subscriptions, numbers, end, subscription, rank, ordered, weight):
    """Write the postings of each keyword backwards from `end[w]`, with the rank of the word in its subscription (0: rarest)."""
    for i in range(numbers.size):
        s = numbers[i]
        for word_rank in range(order_words(words, subscriptions, s, ordered, weight)):
            to = end[ordered[word_rank]] - 1
            end[ordered[word_rank]] = to
            subscription[to], rank[to] = s, word_rank


@kernel
def build_lists(words, grid, frame, costs, subscriptions, threshold, postings, output, sizes, scratch, column, first):
    """Write the lists of all keywords from position `first` on; returns where it stopped, and what it lacks.

    `sizes` counts what is used of `output`: entries, buckets, and cells with their lists.
    """
    keywords, start, subscription, rank = postings
    key, posting_of, key2, posting_of2, ordered, weight, count, list_cost, n_cells = scratch
    row = words.row
    entry, bucket, cell = output
    for i in range(first, keywords.size):
        word, begin, end = keywords[i], start[i], start[i + 1]
        packed = int(row[word * N_COLUMNS + EDGES])
        n_classes = 1 + n_edges(packed) if end - begin >= costs.least_divided else 1
        list_cost[:] = 0.0
        n_keys = assign_list_cells(words, grid, costs, subscriptions, threshold, postings, i, n_classes, list_cost, scratch)
        if n_keys > 0 and n_classes > 1:
            is_turned = sort_keys(key, posting_of, key2, posting_of2, n_keys, count)
            set_list_costs(key2 if is_turned else key, n_keys, list_cost, n_cells)
            n_keys = assign_list_cells(words, grid, costs, subscriptions, threshold, postings, i, n_classes, list_cost, scratch)
        if n_keys < 0:
            return i, LACKS_KEYS
        # A list is filled up to whole lines of memory.
        n_needed = (columns_before(grid.is_lonlat) + 1 + PER_LINE) * n_keys + BEYOND
        if sizes[0] + n_needed > entry.size or 2 * (sizes[1] + n_classes) > bucket.size or 2 * (sizes[2] + n_keys) > cell.size:
            return i, LACKS_CAPACITY
        first_bucket = sizes[1]
        row[word * N_COLUMNS + column] = first_bucket if n_classes > 1 else -2 - first_bucket
        for c in range(n_classes):
            bucket[2 * (first_bucket + c)], bucket[2 * (first_bucket + c) + 1] = 0, 0
        sizes[1] = first_bucket + n_classes
        is_turned = sort_keys(key, posting_of, key2, posting_of2, n_keys, count)
        sorted_key, sorted_postings = (key2, posting_of2) if is_turned else (key, posting_of)
        at = 0
        while at < n_keys:
            last = at + 1
            while last < n_keys and sorted_key[last] == sorted_key[at]:
                last += 1
            to = sizes[0]
            stop = write_list(
                entry,
                to,
                words,
                grid,
                frame,
                subscriptions,
                threshold,
                subscription,
                rank,
                sorted_postings,
                at,
                last,
                ordered,
                weight,
            )
            stop = (stop + PER_LINE - 1) // PER_LINE * PER_LINE
            packed_list = to // PER_LINE << COUNT_BITS | (last - at)
            key_of_list = int(sorted_key[at])
            bucket_of_list, level = first_bucket + (key_of_list >> _CLASS_SHIFT), (key_of_list >> _LEVEL_SHIFT) & 7
            if level == 0:
                bucket[2 * bucket_of_list] = packed_list
            else:
                bucket[2 * bucket_of_list + 1] |= 1 << level
                cell[2 * sizes[2]], cell[2 * sizes[2] + 1] = (first_bucket << _CLASS_SHIFT) + key_of_list, packed_list
                sizes[2] += 1
            sizes[0] = stop
            at = last
    return keywords.size, DONE


@inline_kernel
def bit_of(bloom, key):
    """The byte and the bit of the Bloom filter for a cell."""
    bit = home_of(key, 8 * bloom.size)
    return bit >> 3, bit & 7


@inline_kernel
def may_contain(bloom, key):
    """1 if the cell has its bit, else 0."""
    byte, bit = bit_of(bloom, key)
    return (bloom[byte] >> bit) & 1


@kernel
def insert_cells(cell, n, slot, bloom):
    """Insert cells with their lists into an empty hash table, and set their bits."""
    last = slot.size // 2 - 1
    for i in range(n):
        byte, bit = bit_of(bloom, cell[2 * i])
        bloom[byte] |= np.uint8(1 << bit)
        at = home_of(cell[2 * i], last + 1)
        while slot[2 * at] != 0:
            at = (at + 1) & last
        slot[2 * at], slot[2 * at + 1] = cell[2 * i] + 1, cell[2 * i + 1]


@kernel
def assign_list_cells(words, grid, costs, subscriptions, threshold, postings, i, n_classes, list_cost, scratch):
    """Append the cells of all postings of a keyword to the keys; returns their number, or -1 if capacity is lacking."""
    keywords, start, subscription, rank = postings
    n_keys = 0
    for at in range(start[i], start[i + 1]):
        of = (subscription[at], rank[at], keywords[i], n_classes, at)
        n_keys = assign_cells(words, grid, costs, subscriptions, threshold, of, list_cost, scratch, n_keys)
        if n_keys < 0:
            break
    return n_keys


@kernel
def set_list_costs(key, n_keys, list_cost, n_cells):
    """Write what an entry costs in addition at each level of each class: the cost of a list is shared by its entries.

    Computed from the cells chosen as if lists cost nothing; their keys are in order.
    """
    list_cost[:], n_cells[:] = 0.0, 0
    for i in range(n_keys):
        of = (key[i] >> _CLASS_SHIFT) * N_LEVELS + ((key[i] >> _LEVEL_SHIFT) & 7)
        list_cost[of] += 1.0
        n_cells[of] += i == 0 or key[i] != key[i - 1]
    for first in range(0, list_cost.size, N_LEVELS):
        n_entries = 0.0
        for of in range(first, first + N_LEVELS):
            n_entries += list_cost[of]
            list_cost[of] = _COST_OF_LIST * n_cells[of] / list_cost[of] if list_cost[of] > 0.0 else _NOBODY_THERE
        # An entry that leaves a level with few others is here.
        list_cost[first] = _COST_OF_LIST / max(1.0, n_entries)


@kernel
def assign_cells(words, grid, costs, subscriptions, threshold, of, list_cost, scratch, n_keys):
    """Append the cells of one posting to the keys; returns their number, or -1 if capacity is lacking."""
    s, rank, word, n_classes, posting = of
    key, posting_of, ordered, weight = scratch[0], scratch[1], scratch[4], scratch[5]
    mass, cost_of_cell, n_sample = costs.mass, costs.cell, costs.n_sample
    n_words = order_words(words, subscriptions, s, ordered, weight)
    squares = 0.0
    for j in range(rank, n_words):
        squares += weight[j] * weight[j]
    spatial, length = float(subscriptions.spatial_weight[s]), float(subscriptions.length[s])
    x, y, threshold_of_s = float(subscriptions.x[s]), float(subscriptions.y[s]), float(threshold[s])
    packed = int(words.row[word * N_COLUMNS + EDGES])
    share = words.row[word * N_COLUMNS + FREQUENCY] / n_sample
    level_before, radius_before, n_before, mass_before = -1, -1.0, 0, 0.0
    for c in range(n_classes):
        text = math.sqrt(squares) / length
        if c + 1 < n_classes:
            text = min(text, words.edge[first_edge(packed) + c] * squares / length)
        radius = radius_of(grid, spatial, text, threshold_of_s)
        if radius == NOWHERE:
            share *= CLASS_SHARE
            continue
        level, n_cells, mass_of_class = 0, 0, 0.0
        if n_classes > 1 and radius != EVERYWHERE:
            level, n_cells, mass_of_class = cheapest_level(
                grid, mass, cost_of_cell, share, list_cost, c * N_LEVELS, x, y, radius, level_before, n_before, mass_before
            )
        if level == 0:
            if n_keys == key.size:
                return -1
            key[n_keys], posting_of[n_keys] = c << _CLASS_SHIFT, posting
            return n_keys + 1
        bits = LEVEL_BITS[level]
        x0, x1, y0, y1 = cells_around(grid, x, y, radius)
        shift = FINEST - bits
        if n_keys + n_cells > key.size:
            return -1
        is_same_level = level == level_before
        b0, b1, b2, b3 = cells_around(grid, x, y, max(radius_before, 0.0))
        for column in range(x0 >> shift, (x1 >> shift) + 1):
            for row in range(y0 >> shift, (y1 >> shift) + 1):
                was_covered = b0 >> shift <= column <= b1 >> shift and b2 >> shift <= row <= b3 >> shift
                if is_same_level and was_covered and circle_meets_cell(grid, x, y, radius_before, column, row, bits):
                    continue
                if circle_meets_cell(grid, x, y, radius, column, row, bits):
                    key[n_keys] = c << _CLASS_SHIFT | level << _LEVEL_SHIFT | column << bits | row
                    posting_of[n_keys] = posting
                    n_keys += 1
        level_before, radius_before, n_before, mass_before = level, radius, n_cells, mass_of_class
        share *= CLASS_SHARE
    return n_keys


@inline_kernel
def cheapest_level(grid, mass, cost_of_cell, share, list_cost, first, x, y, radius, level_before, n_before, mass_before):
    """The level at which messages and memory cost least, its number of cells and its share of messages; level 0 is everywhere.

    Cells that a lower class has at the same level are there already. A finer level than before would find them twice.
    """
    least, best, best_n, best_mass = share * (1.0 + list_cost[first]) + cost_of_cell, 0, 0, 0.0
    x0, x1, y0, y1 = cells_around(grid, x, y, radius)
    for level in range(1, N_LEVELS):
        if 0 < level_before < level:
            break
        shift = FINEST - LEVEL_BITS[level]
        n_cells = ((x1 >> shift) - (x0 >> shift) + 1) * ((y1 >> shift) - (y0 >> shift) + 1)
        if n_cells > _MOST_CELLS:
            break
        left, right = x0 >> shift << shift, ((x1 >> shift) + 1) << shift
        low, high = y0 >> shift << shift, ((y1 >> shift) + 1) << shift
        covered = mass[right, high] - mass[left, high] - mass[right, low] + mass[left, low]
        of_looking = share * (1.0 + list_cost[first + level])
        cost = of_looking * covered + cost_of_cell * n_cells
        if level == level_before:
            cost = of_looking * (covered - mass_before) + cost_of_cell * (n_cells - n_before)
        if cost < least:
            least, best, best_n, best_mass = cost, level, n_cells, covered
    return best, best_n, best_mass


@kernel
def sort_keys(key, posting_of, key2, posting_of2, n, count):
    """Sort keys and their postings by eleven bits at a time; True if the result is in the second arrays."""
    most = 0
    for i in range(n):
        most = max(most, key[i])
    is_turned = False
    shift = 0
    while most >> shift > 0:
        source, source_posting, target, target_posting = key, posting_of, key2, posting_of2
        if is_turned:
            source, source_posting, target, target_posting = key2, posting_of2, key, posting_of
        count[:] = 0
        for i in range(n):
            count[((source[i] >> shift) & 2047) + 1] += 1
        for i in range(2048):
            count[i + 1] += count[i]
        for i in range(n):
            digit = (source[i] >> shift) & 2047
            to = count[digit]
            count[digit] = to + 1
            target[to], target_posting[to] = source[i], source_posting[i]
        is_turned = not is_turned
        shift += 11
    return is_turned


# --- from where a subscription is reached: a circle, and the cells that it meets ----------------------------------

NOWHERE, EVERYWHERE = -1.0, -2.0
# More than rounding adds to a bound of a score, and to a length (as a factor).
SLACK = 1e-7
_WIDER = 1.0 + 1e-6
_N_FINEST = 1 << FINEST


@inline_kernel
def radius_of(grid, weight, text, threshold):
    """The largest distance at which a message of this similarity reaches the threshold; NOWHERE or EVERYWHERE."""
    left = (1.0 - weight) * text - (threshold - weight) + SLACK
    if left < 0.0:
        return NOWHERE
    if left >= weight:
        return EVERYWHERE
    return grid.max_distance * (left / weight) * _WIDER


@inline_kernel
def finest_x(grid, x):
    """The finest column of a coordinate; the outermost one if it is outside."""
    return int(min(max((float(x) - grid.x) * grid.x_scale, 0.0), _N_FINEST - 1.0))


@inline_kernel
def finest_y(grid, y):
    return int(min(max((float(y) - grid.y) * grid.y_scale, 0.0), _N_FINEST - 1.0))


@kernel
def cells_around(grid, x, y, radius):
    """The finest cells that a circle meets: first and last column, first and last row."""
    x, y = float(x), float(y)
    if not grid.is_lonlat:
        wide = radius + (abs(x) + abs(y)) * 1e-9
        return finest_x(grid, x - wide), finest_x(grid, x + wide), finest_y(grid, y - wide), finest_y(grid, y + wide)
    arc = radius / EARTH_RADIUS_M * _WIDER + 1e-9
    high = math.degrees(arc) * _WIDER + 1e-9
    if y - high <= -90.0 or y + high >= 90.0:
        return 0, _N_FINEST - 1, finest_y(grid, y - high), finest_y(grid, y + high)
    wide = math.degrees(math.asin(min(1.0, math.sin(arc) / math.cos(math.radians(y))))) * _WIDER + 1e-9
    if x - wide <= -180.0 or x + wide >= 180.0:
        # Across the antimeridian: all columns.
        return 0, _N_FINEST - 1, finest_y(grid, y - high), finest_y(grid, y + high)
    return finest_x(grid, x - wide), finest_x(grid, x + wide), finest_y(grid, y - high), finest_y(grid, y + high)


@inline_kernel
def circle_meets_cell(grid, x, y, radius, column, row, bits):
    """Whether a circle may meet a cell of `bits` bits per axis. On the sphere the cells of `cells_around` all count."""
    if grid.is_lonlat:
        return True
    shift = FINEST - bits
    last = (1 << bits) - 1
    width, height = (1 << shift) / grid.x_scale, (1 << shift) / grid.y_scale
    dx = dy = 0.0
    # The outermost cells have no outer border.
    if column > 0:
        dx = max(dx, grid.x + column * width - x)
    if column < last:
        dx = max(dx, x - (grid.x + (column + 1) * width))
    if row > 0:
        dy = max(dy, grid.y + row * height - y)
    if row < last:
        dy = max(dy, y - (grid.y + (row + 1) * height))
    wide = radius + (abs(x) + abs(y) + width + height) * 1e-9
    return dx * dx + dy * dy <= wide * wide
