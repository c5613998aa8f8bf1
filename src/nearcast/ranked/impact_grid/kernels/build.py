"""Decide which cells a subscription is filed in, and write the lists of a part."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.boxes import EARTH_RADIUS_M
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import multiply, shift_right
from nearcast.ranked.impact_grid.kernels.keyword_stats import CLASS_SHARE, first_edge, n_edges
from nearcast.ranked.impact_grid.kernels.packing import arrange_words, columns_before, write_list
from nearcast.ranked.impact_grid.layout import COUNT_BITS, EDGES, FINEST, FREQUENCY, LEVEL_BITS, N_COLUMNS, N_LEVELS, PER_LINE

# What a list costs, in looks at an entry, and what a level does that no list of a class has.
_COST_OF_LIST, _NOBODY_THERE = 8.0, 1e9
# More cells are not worth it for a subscription.
_MOST_CELLS = 400
# Bits of a key: which of a keyword's classes, level, cell of the finest level.
_CELL_BITS = 2 * FINEST
_LEVEL_SHIFT, _CLASS_SHIFT = _CELL_BITS, _CELL_BITS + 3
_GOLDEN = -7046029254386353131
# A list is read beyond its end by less than this.
BEYOND = 64
# What a part lacks: room for keys, or for entries, buckets and cells.
DONE, LACKS_KEYS, LACKS_ROOM = -1, -2, -3


@inline_kernel
def cell_key(bucket, level, column, row):
    """The key of a cell, given as one of the finest level, in the hash table."""
    bits = LEVEL_BITS[level]
    shift = FINEST - bits
    return bucket << _CLASS_SHIFT | level << _LEVEL_SHIFT | (column >> shift) << bits | row >> shift


@inline_kernel
def home_of(key, n_slots):
    return shift_right(multiply(np.int64(key), np.int64(_GOLDEN)), np.int64(30)) & np.int64(n_slots - 1)


@kernel
def count_postings(subscribers, numbers, count):
    """Count the subscriptions of each keyword; returns how many postings there are."""
    first, n_words, keyword = subscribers.first, subscribers.n_words, subscribers.keyword
    n = 0
    for i in range(numbers.size):
        s = numbers[i]
        for at in range(first[s], first[s] + n_words[s]):
            count[keyword[at]] += 1
        n += n_words[s]
    return n


@kernel
def fill_postings(words, subscribers, numbers, end, subscriber, rank, arranged, weight):
    """Write the postings of each keyword, up to `end[w]`, which moves back; `rank` is that of the word, the rarest first."""
    for i in range(numbers.size):
        s = numbers[i]
        for own in range(arrange_words(words, subscribers, s, arranged, weight)):
            to = end[arranged[own]] - 1
            end[arranged[own]] = to
            subscriber[to], rank[to] = s, own


@kernel
def build_lists(words, grid, frame, costs, subscribers, floor, postings, room, sizes, scratch, column, first):
    """Write the lists of all keywords from position `first` on; returns where it stopped, and for lack of what.

    `sizes` counts what is used of `room`: entries, buckets, and cells with their lists.
    """
    owners, start, subscriber, rank = postings
    key, chosen, key2, chosen2, arranged, weight, count, price, n_cells = scratch
    row = words.row
    entry, bucket, cell = room
    for i in range(first, owners.size):
        word, begin, end = owners[i], start[i], start[i + 1]
        packed = int(row[word * N_COLUMNS + EDGES])
        n_classes = 1 + n_edges(packed) if end - begin >= costs.least_divided else 1
        price[:] = 0.0
        n_keys = place_all(words, grid, costs, subscribers, floor, postings, i, n_classes, price, scratch)
        if n_keys > 0 and n_classes > 1:
            is_turned = sort_keys(key, chosen, key2, chosen2, n_keys, count)
            set_prices(key2 if is_turned else key, n_keys, price, n_cells)
            n_keys = place_all(words, grid, costs, subscribers, floor, postings, i, n_classes, price, scratch)
        if n_keys < 0:
            return i, LACKS_KEYS
        # A list is filled up to whole lines.
        n_room = (columns_before(grid.is_lonlat) + 1 + PER_LINE) * n_keys + BEYOND
        if sizes[0] + n_room > entry.size or 2 * (sizes[1] + n_classes) > bucket.size or 2 * (sizes[2] + n_keys) > cell.size:
            return i, LACKS_ROOM
        n_all = sizes[1]
        row[word * N_COLUMNS + column] = n_all if n_classes > 1 else -2 - n_all
        for c in range(n_classes):
            bucket[2 * (n_all + c)], bucket[2 * (n_all + c) + 1] = 0, 0
        sizes[1] = n_all + n_classes
        is_turned = sort_keys(key, chosen, key2, chosen2, n_keys, count)
        sorted_key, sorted_chosen = (key2, chosen2) if is_turned else (key, chosen)
        at = 0
        while at < n_keys:
            last = at + 1
            while last < n_keys and sorted_key[last] == sorted_key[at]:
                last += 1
            to = sizes[0]
            stop = write_list(
                entry, to, words, grid, frame, subscribers, floor, subscriber, rank, sorted_chosen, at, last, arranged, weight
            )
            stop = (stop + PER_LINE - 1) // PER_LINE * PER_LINE
            listed = to // PER_LINE << COUNT_BITS | (last - at)
            own = int(sorted_key[at])
            own_bucket, level = n_all + (own >> _CLASS_SHIFT), (own >> _LEVEL_SHIFT) & 7
            if level == 0:
                bucket[2 * own_bucket] = listed
            else:
                bucket[2 * own_bucket + 1] |= 1 << level
                cell[2 * sizes[2]], cell[2 * sizes[2] + 1] = (n_all << _CLASS_SHIFT) + own, listed
                sizes[2] += 1
            sizes[0] = stop
            at = last
    return owners.size, DONE


@inline_kernel
def bit_of(sieve, key):
    """Which byte of the sieve, and which bit of it, stands for a cell."""
    bit = home_of(key, 8 * sieve.size)
    return bit >> 3, bit & 7


@inline_kernel
def may_be_there(sieve, key):
    """1 if a cell has its bit, else 0."""
    byte, bit = bit_of(sieve, key)
    return (sieve[byte] >> bit) & 1


@kernel
def file_cells(cell, n, slot, sieve):
    """Put cells with their lists into the empty slots of a hash table, and set their bits."""
    last = slot.size // 2 - 1
    for i in range(n):
        byte, bit = bit_of(sieve, cell[2 * i])
        sieve[byte] |= np.uint8(1 << bit)
        at = home_of(cell[2 * i], last + 1)
        while slot[2 * at] != 0:
            at = (at + 1) & last
        slot[2 * at], slot[2 * at + 1] = cell[2 * i] + 1, cell[2 * i + 1]


@kernel
def place_all(words, grid, costs, subscribers, floor, postings, i, n_classes, price, scratch):
    """Write the cells of all postings of a keyword to the keys; returns how many there are, or -1 without room."""
    owners, start, subscriber, rank = postings
    n_keys = 0
    for at in range(start[i], start[i + 1]):
        of = (subscriber[at], rank[at], owners[i], n_classes, at)
        n_keys = place(words, grid, costs, subscribers, floor, of, price, scratch, n_keys)
        if n_keys < 0:
            break
    return n_keys


@kernel
def set_prices(key, n_keys, price, n_cells):
    """Write what a look by way of each level of each class costs besides: that at a list is shared by all who are in it.

    By the cells that were chosen as if there were no lists; their keys are in order.
    """
    price[:], n_cells[:] = 0.0, 0
    for i in range(n_keys):
        of = (key[i] >> _CLASS_SHIFT) * N_LEVELS + ((key[i] >> _LEVEL_SHIFT) & 7)
        price[of] += 1.0
        n_cells[of] += i == 0 or key[i] != key[i - 1]
    for first in range(0, price.size, N_LEVELS):
        n_all = 0.0
        for of in range(first, first + N_LEVELS):
            n_all += price[of]
            price[of] = _COST_OF_LIST * n_cells[of] / price[of] if price[of] > 0.0 else _NOBODY_THERE
        # Whoever leaves a level where few are is there too.
        price[first] = _COST_OF_LIST / max(1.0, n_all)


@kernel
def place(words, grid, costs, subscribers, floor, of, price, scratch, n_keys):
    """Add the cells of one posting to the keys; returns how many there are, or -1 without room."""
    s, rank, word, n_classes, posting = of
    key, chosen, arranged, weight = scratch[0], scratch[1], scratch[4], scratch[5]
    mass, cost_of_cell, n_sample = costs.mass, costs.cell, costs.n_sample
    n_words = arrange_words(words, subscribers, s, arranged, weight)
    squares = 0.0
    for j in range(rank, n_words):
        squares += weight[j] * weight[j]
    spatial, length = float(subscribers.spatial_weight[s]), float(subscribers.length[s])
    x, y, own_floor = float(subscribers.x[s]), float(subscribers.y[s]), float(floor[s])
    packed = int(words.row[word * N_COLUMNS + EDGES])
    share = words.row[word * N_COLUMNS + FREQUENCY] / n_sample
    level_before, radius_before, n_before, mass_before = -1, -1.0, 0, 0.0
    for c in range(n_classes):
        text = math.sqrt(squares) / length
        if c + 1 < n_classes:
            text = min(text, words.edge[first_edge(packed) + c] * squares / length)
        radius = radius_of(grid, spatial, text, own_floor)
        if radius == NOWHERE:
            share *= CLASS_SHARE
            continue
        level, n_cells, mass_here = 0, 0, 0.0
        if n_classes > 1 and radius != EVERYWHERE:
            level, n_cells, mass_here = cheapest_level(
                grid, mass, cost_of_cell, share, price, c * N_LEVELS, x, y, radius, level_before, n_before, mass_before
            )
        if level == 0:
            if n_keys == key.size:
                return -1
            key[n_keys], chosen[n_keys] = c << _CLASS_SHIFT, posting
            return n_keys + 1
        bits = LEVEL_BITS[level]
        x0, x1, y0, y1 = cells_around(grid, x, y, radius)
        shift = FINEST - bits
        if n_keys + n_cells > key.size:
            return -1
        was_here = level == level_before
        b0, b1, b2, b3 = cells_around(grid, x, y, max(radius_before, 0.0))
        for column in range(x0 >> shift, (x1 >> shift) + 1):
            for row in range(y0 >> shift, (y1 >> shift) + 1):
                was_around = b0 >> shift <= column <= b1 >> shift and b2 >> shift <= row <= b3 >> shift
                if was_here and was_around and is_met(grid, x, y, radius_before, column, row, bits):
                    continue
                if is_met(grid, x, y, radius, column, row, bits):
                    key[n_keys] = c << _CLASS_SHIFT | level << _LEVEL_SHIFT | column << bits | row
                    chosen[n_keys] = posting
                    n_keys += 1
        level_before, radius_before, n_before, mass_before = level, radius, n_cells, mass_here
        share *= CLASS_SHARE
    return n_keys


@inline_kernel
def cheapest_level(grid, mass, cost_of_cell, share, price, first, x, y, radius, level_before, n_before, mass_before):
    """The level at which messages and memory cost least, with its number of cells and share of messages; 0 is everywhere.

    Cells that a lower class has at the same level are there already. A finer level than before would find them twice.
    """
    least, best, best_n, best_mass = share * (1.0 + price[first]) + cost_of_cell, 0, 0, 0.0
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
        of_looking = share * (1.0 + price[first + level])
        cost = of_looking * covered + cost_of_cell * n_cells
        if level == level_before:
            cost = of_looking * (covered - mass_before) + cost_of_cell * (n_cells - n_before)
        if cost < least:
            least, best, best_n, best_mass = cost, level, n_cells, covered
    return best, best_n, best_mass


@kernel
def sort_keys(key, chosen, key2, chosen2, n, count):
    """Sort keys with what belongs to them, eleven bits at a time; True if the result is in the second arrays."""
    most = 0
    for i in range(n):
        most = max(most, key[i])
    is_turned = False
    shift = 0
    while most >> shift > 0:
        source, source_chosen, target, target_chosen = key, chosen, key2, chosen2
        if is_turned:
            source, source_chosen, target, target_chosen = key2, chosen2, key, chosen
        count[:] = 0
        for i in range(n):
            count[((source[i] >> shift) & 2047) + 1] += 1
        for i in range(2048):
            count[i + 1] += count[i]
        for i in range(n):
            digit = (source[i] >> shift) & 2047
            to = count[digit]
            count[digit] = to + 1
            target[to], target_chosen[to] = source[i], source_chosen[i]
        is_turned = not is_turned
        shift += 11
    return is_turned


# -- From where a subscription is reached: the circle around it, and the cells of the grid that the circle meets.

NOWHERE, EVERYWHERE = -1.0, -2.0
# More than rounding adds to a bound of a score, and to a length in the plane or on the sphere, relatively.
SLACK = 1e-7
_WIDER = 1.0 + 1e-6
_N_FINEST = 1 << FINEST


@inline_kernel
def radius_of(grid, weight, text, floor):
    """How far a message may be that reaches the floor with this similarity; NOWHERE or EVERYWHERE."""
    left = (1.0 - weight) * text - (floor - weight) + SLACK
    if left < 0.0:
        return NOWHERE
    if left >= weight:
        return EVERYWHERE
    return grid.max_distance * (left / weight) * _WIDER


@inline_kernel
def finest_x(grid, x):
    """The column of finest cells of a coordinate, the outermost for what is outside."""
    return int(min(max((float(x) - grid.x) * grid.x_scale, 0.0), _N_FINEST - 1.0))


@inline_kernel
def finest_y(grid, y):
    return int(min(max((float(y) - grid.y) * grid.y_scale, 0.0), _N_FINEST - 1.0))


@kernel
def cells_around(grid, x, y, radius):
    """The columns and rows of finest cells that a circle meets: first and last column, first and last row."""
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
        # Around the back of the map: all columns.
        return 0, _N_FINEST - 1, finest_y(grid, y - high), finest_y(grid, y + high)
    return finest_x(grid, x - wide), finest_x(grid, x + wide), finest_y(grid, y - high), finest_y(grid, y + high)


@inline_kernel
def is_met(grid, x, y, radius, column, row, bits):
    """Whether a circle of the plane may meet a cell with so many bits; one of the sphere meets all those around it."""
    if grid.is_lonlat:
        return True
    shift = FINEST - bits
    last = (1 << bits) - 1
    width, height = (1 << shift) / grid.x_scale, (1 << shift) / grid.y_scale
    dx = dy = 0.0
    # The outermost cells go on without end.
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
