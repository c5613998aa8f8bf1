"""Divide an ordered row of things into neighbouring groups so that the expected work is small.

A group from position `i` to `j` costs (high[j] - low[i]) * (mass[j] - mass[i]): how many it holds times how likely it is met.
For keywords `high` and `low` are the same running sum of clauses. For strips of space they count boxes that begin before and
boxes that end before, since a box may reach into several.
"""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel


@inline_kernel
def group_cost(high, low, chance, i, j):
    return (high[j] - low[i]) * (chance[j] - chance[i])


@kernel
def even_bounds(high, low, n, n_groups, bound):
    """Groups of about equal weight, none empty: `bound[c]` to `bound[c + 1]` are the positions of group `c`."""
    bound[0] = 0
    bound[n_groups] = n
    total = high[n] + low[n]
    at = 0
    for c in range(1, n_groups):
        while at < n and (high[at] + low[at]) * n_groups < total * c:
            at += 1
        bound[c] = min(max(at, bound[c - 1] + 1), n - (n_groups - c))


@kernel
def improve_bounds(high, low, chance, n_groups, bound):
    """Move each inner bound once to where its two groups cost least. Paper: Algorithm 3, lines 2 to 5."""
    for c in range(1, n_groups):
        first, last = bound[c - 1], bound[c + 1]
        best = bound[c]
        best_cost = group_cost(high, low, chance, first, best) + group_cost(high, low, chance, best, last)
        for at in range(first + 1, last):
            cost = group_cost(high, low, chance, first, at) + group_cost(high, low, chance, at, last)
            if cost < best_cost:
                best, best_cost = at, cost
        bound[c] = best


@kernel
def best_bounds(weight, chance, n, n_groups, bound, before, best, choice, stack):
    """The cheapest division of all, for `high` = `low` = `weight`. Paper: Equation 2.

    The cost fulfils the quadrangle inequality, so the best last bound never decreases with the end: each row of the table is
    filled by halving in n log n steps. `choice` holds (n_groups + 1) * (n + 1), `before` and `best` n + 1, `stack` 256 numbers.
    """
    for j in range(n + 1):
        before[j] = weight[j] * chance[j]
    for c in range(2, n_groups + 1):
        # Which positions to fill, and between which choices: a stack of four numbers each.
        stack[0], stack[1], stack[2], stack[3] = c, n, c - 1, n - 1
        size = 4
        while size > 0:
            size -= 4
            low, high, first, last = stack[size], stack[size + 1], stack[size + 2], stack[size + 3]
            middle = (low + high) // 2
            best_split = first
            cheapest = before[first] + group_cost(weight, weight, chance, first, middle)
            for i in range(first + 1, min(last, middle - 1) + 1):
                cost = before[i] + group_cost(weight, weight, chance, i, middle)
                if cost < cheapest:
                    best_split, cheapest = i, cost
            best[middle] = cheapest
            choice[c * (n + 1) + middle] = best_split
            if low < middle:
                stack[size], stack[size + 1], stack[size + 2], stack[size + 3] = low, middle - 1, first, best_split
                size += 4
            if middle < high:
                stack[size], stack[size + 1], stack[size + 2], stack[size + 3] = middle + 1, high, best_split, last
                size += 4
        for j in range(c, n + 1):
            before[j] = best[j]
    bound[n_groups] = n
    for c in range(n_groups, 1, -1):
        bound[c - 1] = choice[c * (n + 1) + bound[c]]
    bound[0] = 0
