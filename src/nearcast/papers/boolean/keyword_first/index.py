"""`keyword_first`: posting lists under the rarest keyword, with updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.growing import resized
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.kernels import sorting
from nearcast.kernels.keyword_sets import count_clauses
from nearcast.kernels.pools import FIRST_CAPACITY, ListPool
from nearcast.papers.boolean.keyword_first import kernels
from nearcast.papers.boolean.keyword_first.kernels import NOT_POSTED, PostingArrays, match_messages


class KeywordFirst(BooleanIndex):
    """Posting lists under the rarest keyword; region and other keywords are verified."""

    name = "keyword_first"
    aliases = ("inverted-list",)
    paper = "baseline of Li et al. 2013 (R^t-tree) and Yu et al. 2015 (LFilter); Yan & Garcia-Molina 1994"
    summary = "each clause is posted under its rarest keyword; region and other keywords are verified"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._posting = _empty(0, 0)

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        layout = clauses.layout()
        slots = np.flatnonzero(layout.is_alive).astype(np.int32)
        n_keywords = clauses.n_keywords
        posting = _empty(n_keywords, clauses.n)
        count_clauses(layout.keyword_start, layout.keyword, slots, posting.frequency, 1)
        anchors = np.empty(len(slots), np.int32)
        kernels.fill_anchors(layout.keyword_start, layout.keyword, posting.frequency, slots, anchors)
        sizes = np.bincount(anchors, minlength=n_keywords + 1).astype(np.int32)
        offsets = np.zeros(n_keywords + 2, np.int64)
        n_items = sorting.offsets_from_counts(sizes, offsets)
        item = np.empty(n_items, np.int32)
        sorting.fill_lists(anchors, slots, offsets[:-1].copy(), item)
        posting.list_of_clause[slots] = anchors
        posting.position_in_list[item] = np.arange(n_items) - np.repeat(offsets[:-1], sizes)
        pool = ListPool(offsets[:-1].copy(), sizes, sizes.copy(), item, np.array([n_items], np.int64))
        self._posting = posting._replace(pool=pool)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        self._posting = _with_capacity(self._posting, clauses.n_keywords, clauses.n)
        count_clauses(layout.keyword_start, layout.keyword, slots, self._posting.frequency, 1)
        first = 0
        while (first := kernels.post_clauses(layout, self._posting, slots, first)) < len(slots):
            self._posting = self._posting._replace(pool=_with_more_items(self._posting.pool))

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        count_clauses(layout.keyword_start, layout.keyword, slots, self._posting.frequency, -1)
        kernels.remove_clauses(self._posting, slots)

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        layout, posting = clauses.layout(), self._posting
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(posting, layout, messages.arrays, stamp, mark, first, n_out, output),
        )

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        anchor = int(self._posting.list_of_clause[slot])
        size = int(self._posting.pool.size[anchor])
        if anchor == 0:
            return [f"catch-all list of clauses without keywords: {size} clauses, visited by every message"]
        is_visited = anchor - 1 in messages.arrays.keyword
        verdict = "visited, each verified" if is_visited else "not visited: the message lacks that keyword"
        return [f"posting list of keyword {anchor - 1}: {size} clauses, {verdict}"]

    def stats(self) -> dict[str, int | float]:
        sizes = self._posting.pool.size
        return {**super().stats(), "lists": int(np.count_nonzero(sizes)), "longest_list": int(sizes.max(initial=0))}

    def arrays(self) -> dict[str, NDArray[Any]]:
        posting = self._posting
        pool = {f"pool_{name}": array for name, array in posting.pool._asdict().items()}
        fields = {name: getattr(posting, name) for name in ("frequency", "list_of_clause", "position_in_list")}
        return {**fields, **pool}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        pool = ListPool(*(arrays[f"pool_{name}"] for name in ListPool._fields))
        self._posting = PostingArrays(arrays["frequency"], arrays["list_of_clause"], arrays["position_in_list"], pool)


def _empty(n_keywords: int, n_clauses: int) -> PostingArrays:
    n_lists = n_keywords + 1
    pool = ListPool(
        np.zeros(n_lists, np.int64),
        np.zeros(n_lists, np.int32),
        np.zeros(n_lists, np.int32),
        np.empty(0, np.int32),
        np.zeros(1, np.int64),
    )
    posted = np.full(n_clauses, NOT_POSTED, np.int32)
    return PostingArrays(np.zeros(n_keywords, np.int64), posted, np.zeros(n_clauses, np.int32), pool)


def _with_capacity(posting: PostingArrays, n_keywords: int, n_clauses: int) -> PostingArrays:
    """The same for keywords and clauses that came after the build, with a half more in reserve."""

    def longer(array: NDArray[Any], n: int, fill: int = 0) -> NDArray[Any]:
        return resized(array, max(n, len(array) * 3 // 2), fill, needed=n)

    pool, n_lists = posting.pool, n_keywords + 1
    anchors = {name: longer(getattr(pool, name), n_lists) for name in ("start", "size", "capacity")}
    return PostingArrays(
        longer(posting.frequency, n_keywords),
        longer(posting.list_of_clause, n_clauses, NOT_POSTED),
        longer(posting.position_in_list, n_clauses),
        pool._replace(**anchors),
    )


def _with_more_items(pool: ListPool) -> ListPool:
    # Twice the longest list must fit, whatever the pool held before.
    needed = 2 * len(pool.item) + 2 * int(pool.size.max(initial=0)) + 64 * FIRST_CAPACITY
    return pool._replace(item=resized(pool.item, needed, None, int(pool.n_items[0])))
