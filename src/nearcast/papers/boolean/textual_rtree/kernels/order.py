"""Order the keywords of each clause, best representative first. Paper: RT 4.2."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.kernels.sorting import sift_down


@kernel
def order_keywords(keyword_start, keyword, weight, tie_weight):
    """Sort each clause's keywords by weight, then by the keyword's own weight, then by the smaller id, in place."""
    for clause in range(keyword_start.size - 1):
        begin = keyword_start[clause]
        for i in range(begin + 1, keyword_start[clause + 1]):
            moved, moved_weight = keyword[i], weight[i]
            moved_tie = tie_weight[moved]
            j = i - 1
            while j >= begin:
                other, other_weight = keyword[j], weight[j]
                if other_weight < moved_weight:
                    break
                if other_weight == moved_weight:
                    other_tie = tie_weight[other]
                    if other_tie < moved_tie or (other_tie == moved_tie and other < moved):
                        break
                keyword[j + 1], weight[j + 1] = other, other_weight
                j -= 1
            keyword[j + 1], weight[j + 1] = moved, moved_weight


@kernel
def pick_greedily(keyword_start, keyword, holder_start, holder, frequency, heap, is_covered, rank):
    """Rank keywords by repeatedly picking the one that most clauses without a picked keyword have (the smaller id on a tie).

    `holder` lists the clauses that have a keyword; `heap` has one place per keyword; `frequency` is used up; only picked
    keywords get a rank. The heap is lazy: frequencies only fall, so a top that is up to date is the largest.
    """
    n_keywords = frequency.size
    for w in range(n_keywords):
        heap[w] = frequency[w] * n_keywords + (n_keywords - 1 - w)
    n_heap = n_keywords
    for root in range(n_heap // 2 - 1, -1, -1):
        sift_down(heap, 0, root, n_heap)
    n_picked = 0
    # What is below n_keywords has frequency 0: every clause is covered.
    while n_heap > 0 and heap[0] >= n_keywords:
        w = n_keywords - 1 - heap[0] % n_keywords
        if frequency[w] != heap[0] // n_keywords:
            heap[0] = frequency[w] * n_keywords + (n_keywords - 1 - w)
            sift_down(heap, 0, 0, n_heap)
            continue
        rank[w] = n_picked
        n_picked += 1
        for at in range(holder_start[w], holder_start[w + 1]):
            clause = holder[at]
            if not is_covered[clause]:
                is_covered[clause] = True
                for other in range(keyword_start[clause], keyword_start[clause + 1]):
                    frequency[keyword[other]] -= 1
        n_heap -= 1
        heap[0] = heap[n_heap]
        sift_down(heap, 0, 0, n_heap)
    return n_picked
