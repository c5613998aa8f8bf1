"""Choose the cuts of a node by the l-th keyword of its clauses, and sort the clauses into them.

Paper: §3.3.2; l = `offset`, counted from 0; the clauses with fewer keywords fall into the dummy cut, our last child.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.sorting import sort_few, sort_many
from nearcast.papers.boolean.adaptive_tree.kernels.partition import best_bounds, even_bounds, improve_bounds
from nearcast.papers.boolean.adaptive_tree.layout import BEFORE_ALL, MOST_KEYS

_FEW = 24
# Scanning the whole line of ranks costs as much as sorting this part of it.
_LINE_PER_KEY = 16
_PROVABLE = 62  # positions that fit the bits of `proven`


@inline_kernel
def likelihood_of(likelihood, rank):
    """The share of messages with a keyword; a keyword that came later is as rare as the rarest."""
    if rank >= 0 and rank < likelihood.size - 1:
        return float(likelihood[rank])
    return float(likelihood[likelihood.size - 1])


@kernel
def count_keys(work, start, stop, offset, n_front, n_line):
    """Count the clauses by their keyword at `offset`; returns the distinct keywords (sorted in `key`) and those without one."""
    order, rank_start, rank, key, line = work.order, work.rank_start, work.rank, work.key, work.line
    n_keys, n_exhausted = 0, 0
    for at in range(start, stop):
        position = rank_start[order[at]] + offset
        if position >= rank_start[order[at] + 1]:
            n_exhausted += 1
            continue
        line_at = rank[position] + n_front
        if line[line_at] == 0:
            key[n_keys] = line_at
            n_keys += 1
        line[line_at] += 1
    if n_keys <= _FEW:
        sort_few(key, 0, n_keys)
    elif n_keys * _LINE_PER_KEY < n_line:
        sort_many(key, 0, n_keys)
    else:
        n_keys = 0
        for line_at in range(n_line):
            if line[line_at] != 0:
                key[n_keys] = line_at
                n_keys += 1
    return n_keys, n_exhausted


@kernel
def plan_cuts(work, likelihood, start, stop, offset, n_front, n_line, fanout, is_optimal):
    """Choose cuts; returns the expected cost (infinite if no clause has a keyword here), the cuts and the distinct keywords.

    Cut `c` has the keys from bounds[c] to bounds[c + 1]. Clauses without a keyword are tested by every message. Paper:
    Equation 1 leaves them out, so a node of such clauses only seems to cost nothing.
    """
    key, weight, chance, line, bounds = work.key, work.weight, work.chance, work.line, work.bounds
    n_keys, n_exhausted = count_keys(work, start, stop, offset, n_front, n_line)
    if n_keys == 0:
        return np.inf, 0, 0
    weight[0], chance[0] = 0.0, 0.0
    for i in range(n_keys):
        weight[i + 1] = weight[i] + line[key[i]]
        chance[i + 1] = chance[i] + likelihood_of(likelihood, key[i] - n_front)
        line[key[i]] = 0
    n_cuts = min(fanout, n_keys)
    if n_cuts == n_keys:
        for c in range(n_cuts + 1):
            bounds[c] = c
    elif is_optimal:
        choose_best(work, n_keys, n_cuts)
    else:
        even_bounds(weight, weight, n_keys, n_cuts, bounds)
        improve_bounds(weight, weight, chance, n_cuts, bounds)
    cost = float(n_exhausted)
    for c in range(n_cuts):
        likely = chance[bounds[c + 1]] - chance[bounds[c]]
        cost += (weight[bounds[c + 1]] - weight[bounds[c]]) * min(1.0, likely)
    return cost, n_cuts, n_keys


@kernel
def choose_best(work, n_keys, n_cuts):
    """The cheapest cuts. Where there are too many keywords, light neighbours count as one, in groups of equal weight."""
    weight, chance, bounds, atom, row = work.weight, work.chance, work.bounds, work.atom, work.row
    n_atoms = min(n_keys, max(n_cuts, MOST_KEYS))
    if n_atoms == n_keys:
        for a in range(n_atoms + 1):
            atom[a] = a
    else:
        even_bounds(weight, weight, n_keys, n_atoms, atom)
    width = row.size // 4
    for a in range(n_atoms + 1):
        row[a] = weight[atom[a]]
        row[width + a] = chance[atom[a]]
    stack = atom[atom.size - 256 :]
    best_bounds(row, row[width:], n_atoms, n_cuts, bounds, row[2 * width :], row[3 * width :], work.table, stack)
    for c in range(n_cuts + 1):
        bounds[c] = atom[bounds[c]]


@kernel
def lay_cuts(work, n_cuts, n_front, left):
    """Write the left ends of the cuts, with empty cuts in the gaps between; returns how many there are.

    Cuts and gaps tile the whole line, so that every keyword of a later clause falls into one. Paper: a cut is an interval of
    keywords seen so far, and a keyword between two is in none. `line` becomes the cut of each keyword, plus one.
    """
    key, line, bounds = work.key, work.line, work.bounds
    left[0] = BEFORE_ALL
    n = 1
    end = -1  # no position is negative: a gap precedes the first key
    for c in range(n_cuts):
        first, last = key[bounds[c]], key[bounds[c + 1] - 1]
        if first == end:
            n -= 1  # the gap is empty
        left[n] = first - n_front
        for i in range(bounds[c], bounds[c + 1]):
            line[key[i]] = n + 1
        left[n + 1] = last - n_front + 1
        n += 2
        end = last + 1
    return n


@kernel
def sort_into_cuts(work, start, stop, offset, n_front, n_slots, count):
    """Write the clauses of a node after `stop`, cut by cut, those without a keyword last; fills `count` with the sizes."""
    order, rank_start, rank, line = work.order, work.rank_start, work.rank, work.line
    cursor = work.counts[work.counts.size // 2 :]
    for slot in range(n_slots + 1):
        count[slot] = 0
    for at in range(start, stop):
        position = rank_start[order[at]] + offset
        slot = n_slots
        if position < rank_start[order[at] + 1]:
            slot = line[rank[position] + n_front] - 1
        count[slot] += 1
    cursor[0] = stop
    for slot in range(n_slots):
        cursor[slot + 1] = cursor[slot] + count[slot]
    for at in range(start, stop):
        position = rank_start[order[at]] + offset
        slot = n_slots
        if position < rank_start[order[at] + 1]:
            slot = line[rank[position] + n_front] - 1
        order[cursor[slot]] = order[at]
        cursor[slot] += 1


@kernel
def share_of_cuts(work, likelihood, n_keys, n_front, n_slots):
    """The share of messages with a keyword of each cut; `line` has the cut of each keyword, plus one."""
    key, line, share = work.key, work.line, work.grid
    for slot in range(n_slots):
        share[slot] = 0.0
    for i in range(n_keys):
        share[line[key[i]] - 1] += likelihood_of(likelihood, key[i] - n_front)
    return share


@kernel
def clear_line(work, n_keys):
    """Set `line` to zero again."""
    key, line = work.key, work.line
    for i in range(n_keys):
        line[key[i]] = 0


@inline_kernel
def find_cut(block, first, n_cuts, rank, low):
    """The cut of a rank: the last whose left end is not above it; `low` is known not to be above."""
    high = n_cuts
    while high - low > 1:
        middle = (low + high) // 2
        if block[first + middle] <= rank:
            low = middle
        else:
            high = middle
    return low


@inline_kernel
def is_single(block, first, cut, n_cuts):
    """Whether a cut has a single keyword."""
    return cut + 1 < n_cuts and block[first + cut] + 1 == block[first + cut + 1]


@inline_kernel
def proven_in(block, first, cut, n_cuts, proven, offset):
    """Which keywords of a clause are proven in a cut: one more if the cut has a single keyword."""
    if offset < _PROVABLE and is_single(block, first, cut, n_cuts):
        return proven | (np.int64(1) << np.int64(offset))
    return proven


@inline_kernel
def step_in(block, first, cut, n_cuts, is_refining):
    """How many keywords a cut uses up: none, if it has several and may be divided by the same keyword again."""
    return 0 if is_refining and not is_single(block, first, cut, n_cuts) else 1
