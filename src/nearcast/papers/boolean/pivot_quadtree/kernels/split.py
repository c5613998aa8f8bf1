"""Cut space into quadrants level by level, and choose the pivotal keywords of each list."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.papers.boolean.pivot_quadtree.layout import BEGINS_X, BEGINS_Y

IS_LEAF, IS_CUT, IS_SPLIT = 0, 1, 2  # what becomes of a node: a list, runs of a list, quadrants and runs
N_QUADRANTS = 4


@inline_kernel
def stays(low_x, low_y, high_x, high_y, x, y, size, is_once):
    """Whether a clause stays with a node instead of going on into its quadrants.

    Filed once, it stays where no quadrant holds all of it. Filed in every leaf it meets, it stays where it covers the whole
    cell: every message that comes to a leaf below would find it there as well.
    """
    if is_once:
        middle_x, middle_y = x + size // 2, y + size // 2
        return (low_x < middle_x <= high_x) or (low_y < middle_y <= high_y)
    return low_x <= x and high_x >= x + size - 1 and low_y <= y and high_y >= y + size - 1


@kernel
def measure_splits(node_of, position_of, low_x, low_y, high_x, high_y, x, y, size, is_once, n_going, n_copies):
    """Count, for each node, the clauses that would go on into quadrants, and the copies they would become."""
    for i in range(node_of.size):
        node, at = node_of[i], position_of[i]
        if not stays(low_x[at], low_y[at], high_x[at], high_y[at], x[node], y[node], size[node], is_once):
            middle_x, middle_y = x[node] + size[node] // 2, y[node] + size[node] // 2
            crosses_x = low_x[at] < middle_x <= high_x[at]
            crosses_y = low_y[at] < middle_y <= high_y[at]
            n_going[node] += 1
            n_copies[node] += (2 if crosses_x else 1) * (2 if crosses_y else 1)


@kernel
def route_clauses(
    node_of, position_of, low_x, low_y, high_x, high_y, x, y, size, is_once, fate, slot_start, run_length, n_stayed, cursor, out
):
    """Send each clause into the slots of its node: four quadrants, then runs of `run_length`.

    Without room in `out` it only counts, in `cursor`; otherwise `cursor` tells where the next clause of a slot goes.
    """
    for i in range(node_of.size):
        node, at = node_of[i], position_of[i]
        if fate[node] == IS_LEAF:
            continue
        slot = slot_start[node]
        if fate[node] == IS_CUT or stays(low_x[at], low_y[at], high_x[at], high_y[at], x[node], y[node], size[node], is_once):
            slot += N_QUADRANTS + n_stayed[node] // run_length
            n_stayed[node] += 1
            if out.size:
                out[cursor[slot]] = at
            cursor[slot] += 1
            continue
        middle_x, middle_y = x[node] + size[node] // 2, y[node] + size[node] // 2
        for quadrant in range(N_QUADRANTS):
            is_right, is_upper = quadrant % 2 == 1, quadrant >= 2
            if (high_x[at] >= middle_x if is_right else low_x[at] < middle_x) and (
                high_y[at] >= middle_y if is_upper else low_y[at] < middle_y
            ):
                if out.size:
                    out[cursor[slot + quadrant]] = at
                cursor[slot + quadrant] += 1


@kernel
def choose_pivots(item_start, item, word_start, word, n_ranks, frequency, n_uncovered, pivot_start, pivot):
    """Choose for each list few words such that every clause has one: always the word of most clauses without one yet.

    On a tie the word of more clauses of all, then the lower rank. `n_uncovered` is all zero, by rank, and is so again
    afterwards; a clause without words has the word every message has. Returns the number of pivots.
    """
    n_out = 0
    pivot_start[0] = 0
    for owner in range(item_start.size - 1):
        begin = n_out
        first, stop = item_start[owner], item_start[owner + 1]
        has_wordless = False
        n_left = 0
        for i in range(first, stop):
            has_words = word_start[item[i]] < word_start[item[i] + 1]
            n_left += has_words
            has_wordless = has_wordless or not has_words
            for at in range(word_start[item[i]], word_start[item[i] + 1]):
                n_uncovered[word[at]] += 1
        while n_left > 0:
            best, n_best = -1, 0
            for i in range(first, stop):
                for at in range(word_start[item[i]], word_start[item[i] + 1]):
                    n = n_uncovered[word[at]]
                    if n > n_best or (n == n_best and n > 0 and is_preferred(word[at], best, frequency)):
                        best, n_best = word[at], n
            pivot[n_out] = best
            n_out += 1
            n_left -= n_best
            for i in range(first, stop):
                if has_word(word, word_start[item[i]], word_start[item[i] + 1], best) and not has_earlier(
                    word, word_start[item[i]], word_start[item[i] + 1], pivot, begin, n_out - 1
                ):
                    for at in range(word_start[item[i]], word_start[item[i] + 1]):
                        n_uncovered[word[at]] -= 1
        if has_wordless:
            pivot[n_out] = n_ranks
            n_out += 1
        pivot_start[owner + 1] = n_out
    return n_out


@inline_kernel
def is_preferred(word, other, frequency):
    return frequency[word] > frequency[other] or (frequency[word] == frequency[other] and word < other)


@inline_kernel
def has_word(word, start, stop, wanted):
    for at in range(start, stop):
        if word[at] == wanted:
            return True
    return False


@inline_kernel
def has_earlier(word, start, stop, pivot, first, last):
    """Whether a clause has one of the pivots first … last - 1."""
    for i in range(first, last):
        if has_word(word, start, stop, pivot[i]):
            return True
    return False


@kernel
def describe_items(item_start, item, low_x, low_y, cell_x, cell_y, rarest_of, rarest, begins):
    """Fill what is looked at first of each item: its rarest word, and whether it begins in the cell."""
    for owner in range(item_start.size - 1):
        for i in range(item_start[owner], item_start[owner + 1]):
            at = item[i]
            rarest[i] = rarest_of[at]
            begins[i] = (BEGINS_X if low_x[at] >= cell_x[owner] else 0) + (BEGINS_Y if low_y[at] >= cell_y[owner] else 0)
