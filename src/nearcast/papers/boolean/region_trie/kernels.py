"""The arrays of the trie and of the clauses in trie order, which other indexes share, and the walk along a message's keywords.

The message has all keywords of the clauses that end in a node on the path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.sorting import sort_few

NO_RANK = -1  # the rank of a keyword that no clause has
BY_KEYWORDS, BY_CHILDREN, BY_COST = 0, 1, 2  # how a walk finds the children a message may enter


class TrieEntries(NamedTuple):
    """Clauses in trie order: by their keyword ranks, a shorter list before a longer one that begins with it.

    The rank of a keyword is its position in the order chosen at build. The rank `n_ranks[0]`, above all of them, stands for a
    keyword that every message has; clauses without keywords use it where a keyword is needed.
    Paper: the subscription ids of the trie; position = id.
    """

    rank: np.ndarray  # int32[n_keywords at build]; NO_RANK = in no clause
    n_ranks: np.ndarray  # int64[1]
    clause: np.ndarray  # int32[n]: the slot of the clause at each position
    box: np.ndarray  # float64[4 * n]: x0, y0, x1, y1 of the clause at each position
    word_start: np.ndarray  # int64[n + 1]
    word: np.ndarray  # int32[]: the ranks of the clause at each position, ascending
    rarest: np.ndarray  # int32[n]: the rank of its rarest keyword, n_ranks[0] if it has none


class TrieArrays(NamedTuple):
    """Nodes level by level from the root; the children of a node are contiguous, ascending by rank.

    The clauses below a node are the positions first[n] … stop[n] - 1; those that end in it come first, up to ending_stop[n].
    Paper: [n_l, n_u] = first, stop; the ε-leaf of a node = first … ending_stop.
    """

    word: np.ndarray  # int32[n_nodes]: rank of the keyword that leads into the node; NO_RANK for the root
    child_start: np.ndarray  # int32[n_nodes + 1]: children of n are child_start[n] … child_start[n + 1] - 1
    first: np.ndarray  # int32[n_nodes]
    ending_stop: np.ndarray  # int32[n_nodes]
    stop: np.ndarray  # int32[n_nodes]
    box: np.ndarray  # float64[4 * n_nodes]: x0, y0, x1, y1 around all clauses below
    level_start: np.ndarray  # int64[n_levels + 1]: first node of each level
    widest: np.ndarray  # int64[1]: most children of a node


class RankedMessages(NamedTuple):
    """The keywords of a batch as ascending ranks; each message ends with the rank every message has."""

    start: np.ndarray  # int64[n + 1]
    rank: np.ndarray  # int32[]


RADIX = 256
_FEW = 24


@inline_kernel
def box_meets(box, at, x0, y0, x1, y1):
    """Whether the box at position `at` meets another."""
    i = 4 * at
    return meets(box[i], box[i + 1], box[i + 2], box[i + 3], x0, y0, x1, y1)


@kernel
def rank_keywords(rank, common_rank, keyword_start, keyword, start, ranks, spare, n_in_bucket):
    """Write the keywords of each message as ascending ranks, then the rank `common_rank`; returns how many in all.

    `spare` has the length of the longest message, `n_in_bucket` has RADIX elements.
    """
    n_out = 0
    start[0] = 0
    for message in range(keyword_start.size - 1):
        begin = n_out
        is_ascending = True
        for at in range(keyword_start[message], keyword_start[message + 1]):
            if keyword[at] < rank.size and rank[keyword[at]] != NO_RANK:
                ranks[n_out] = rank[keyword[at]]
                is_ascending = is_ascending and (n_out == begin or ranks[n_out - 1] < ranks[n_out])
                n_out += 1
        if not is_ascending:
            if n_out - begin <= _FEW:
                sort_few(ranks, begin, n_out)
            else:
                sort_by_digits(ranks, begin, n_out, common_rank, spare, n_in_bucket)
        ranks[n_out] = common_rank
        n_out += 1
        start[message + 1] = n_out
    return n_out


@inline_kernel
def sort_by_digits(values, start, stop, highest, spare, n_in_bucket):
    """Sort a run of numbers from 0 to `highest`, from the lowest digit to the highest."""
    unit = 1
    while unit <= highest:
        for digit in range(RADIX):
            n_in_bucket[digit] = 0
        for at in range(start, stop):
            n_in_bucket[values[at] // unit % RADIX] += 1
        total = 0
        for digit in range(RADIX):
            # From here on: where the next number with this digit goes.
            n_in_bucket[digit], total = total, total + n_in_bucket[digit]
        for at in range(start, stop):
            digit = values[at] // unit % RADIX
            spare[n_in_bucket[digit]] = values[at]
            n_in_bucket[digit] += 1
        for i in range(stop - start):
            values[start + i] = spare[i]
        unit *= RADIX


@inline_kernel
def stamp_ranks(stamp, mark, rank, start, stop):
    """Give each rank of the message its own mark: one look-up shows whether the message has it, and where."""
    for at in range(start, stop):
        stamp[rank[at]] = mark + at


@inline_kernel
def n_halvings(n):
    """How often n can be halved: the binary logarithm, rounded down; 0 of 0."""
    steps = 0
    while n > 1:
        n >>= 1
        steps += 1
    return steps


@inline_kernel
def seeking_is_cheaper(n_words, n_members):
    """Whether seeking the message's words among members takes fewer steps than looking every member up in the message.

    Paper: |T_n| · lg |n| < |n| · lg |T_n|. Here a member is looked up in the stamps, so that lg |T_n| becomes 1, and the
    search continues from the position of the word before, so that lg |n| becomes twice the logarithm of the distance.
    """
    return n_words < n_members and n_words * (1 + 2 * n_halvings(n_members // max(n_words, 1))) < n_members


@inline_kernel
def seek(values, start, stop, value):
    """The first position in start … stop of a value that is not smaller; cheap if it is near to the start."""
    step = 1
    while start + step < stop and values[start + step] < value:
        start += step
        step *= 2
    stop = min(stop, start + step)
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < value:
            start = middle + 1
        else:
            stop = middle
    return start


@inline_kernel
def push_children(
    word, child_start, has_boxes, box, node, rank, at, last, stamp, mark, method, x0, y0, x1, y1, stack, n_pending
):  # fmt: skip
    """Push the children of a node whose keyword is among the message's from `at` on and whose box, if any, it meets.

    A pair (child, position from which the message continues) takes two elements of the stack. Paper: SelectPair.
    """
    first, stop = child_start[node], child_start[node + 1]
    if method == BY_CHILDREN or (method == BY_COST and seeking_is_cheaper(last - at, stop - first)):
        for i in range(at, last):
            if first == stop:
                break
            first = seek(word, first, stop, rank[i])
            if first < stop and word[first] == rank[i]:
                if not has_boxes or box_meets(box, first, x0, y0, x1, y1):
                    stack[2 * n_pending] = first
                    stack[2 * n_pending + 1] = i + 1
                    n_pending += 1
                first += 1
    elif at < last:
        for child in range(first, stop):
            where = stamp[word[child]] - mark
            # Ranks ascend along a path, so one that the message has is at `at` or later.
            if where >= at and (not has_boxes or box_meets(box, child, x0, y0, x1, y1)):
                stack[2 * n_pending] = child
                stack[2 * n_pending + 1] = where + 1
                n_pending += 1
    return n_pending


@kernel
def match_messages(trie, entries, is_alive, ranked, messages, mark, method, scratch, first_message, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first_message`, `n_out` and the result.

    A clause ends in one node, and a node is reached by one path: no pair is found twice.
    """
    stamp, stack = scratch
    word, child_start, first, ending_stop, box = trie.word, trie.child_start, trie.first, trie.ending_stop, trie.box
    clause_at, clause_box = entries.clause, entries.box
    rank, rank_start = ranked.rank, ranked.start
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first_message, mx0.size):
        begin = n_out
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        start, last = rank_start[message], rank_start[message + 1] - 1
        stamp_ranks(stamp, mark, rank, start, last)
        n_visited, n_candidates = 0, 0
        n_pending = 0
        if box_meets(box, 0, x0, y0, x1, y1):
            stack[0] = 0
            stack[1] = start
            n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            node, at = stack[2 * n_pending], stack[2 * n_pending + 1]
            # As in the paper, the clauses that end in a node count as another node.
            n_visited += 1 + (ending_stop[node] > first[node])
            for position in range(first[node], ending_stop[node]):
                clause = clause_at[position]
                if not is_alive[clause]:
                    continue
                n_candidates += 1
                if box_meets(clause_box, position, x0, y0, x1, y1):
                    if n_out == out_clause.size:
                        return message, begin
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
            n_pending = push_children(
                word, child_start, True, box, node, rank, at, last, stamp, mark, method, x0, y0, x1, y1, stack, n_pending
            )
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
