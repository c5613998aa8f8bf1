"""The adaptive tree of clauses together with the lists of messages at its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.live_messages import LiveMessages
from nearcast.indexes.adaptive_tree import maintain as plain
from nearcast.indexes.adaptive_tree.grow import larger, with_room
from nearcast.indexes.adaptive_tree.index import AdaptiveTree
from nearcast.indexes.adaptive_tree.layout import (
    DEEPEST_LEVEL,
    ITEM_FIELDS,
    N_BACK,
    N_FRONT,
    N_NODES,
    NO_RANK,
    POSITION,
)
from nearcast.indexes.adaptive_tree.parameters import AdaptiveTreeParameters
from nearcast.indexes.moving_adaptive_tree import build, maintain
from nearcast.indexes.moving_adaptive_tree.layout import (
    CHAIN,
    FREE_CHUNK,
    HEAD_FIELDS,
    N_CHUNKS,
    N_COPIES,
    NO_CHUNK,
    NOT_BEGUN,
    REPLAY_FIELDS,
    WIDTH,
    ListArrays,
    Scratch,
)
from nearcast.indexes.moving_adaptive_tree.match import look_in_lists
from nearcast.indexes.moving_base import Boxes, Found, collect_pairs
from nearcast.kernels.layouts import ClauseArrays

# Of these, or of an eighth more, lists are given room when it is short.
_LEAST_CHUNKS = 64
_SAVED = ("first", "item", "head")


class ListedTree(AdaptiveTree):
    """A tree that knows the living messages. `limit`: at how many nodes a message may stand."""

    def __init__(self, parameters: AdaptiveTreeParameters, limit: int) -> None:
        super().__init__(parameters)
        self._limit = limit
        self._lists = _no_lists()
        self._wide: NDArray[np.int32] = np.empty(0, np.int32)

    # --- messages ----------------------------------------------------------------------------------------------------

    def restore_messages(self, messages: LiveMessages) -> None:
        """Forget all lists and store every living message anew."""
        self._lists = _no_lists()
        self._wide = np.empty(0, np.int32)
        self.store(messages, messages.slots())

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        live = messages.layout()
        is_point = (live.x0[slots] == live.x1[slots]) & (live.y0[slots] == live.y1[slots])
        self._wide = np.concatenate([self._wide, slots[~is_point]])
        points = slots[is_point]
        self._rank_words(messages, points)
        self._fit(messages)
        scratch, position, refines = self._room(messages), 0, self._options.is_refining
        while True:
            position = build.store_messages(
                self._tree, self._lists, live, self._work.wanted, scratch, points, position, self._limit, refines
            )
            if position == len(points):
                return
            self._grow(messages)

    def _rank_words(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """A place in the order for every word of a message: a clause that asks for it later will look there."""
        arrays = messages.batch(slots, 0).arrays
        n_words = int(arrays.keyword.max(initial=-1)) + 1
        tree = self._tree
        if n_words > len(tree.rank):
            self._tree = tree._replace(rank=larger(tree.rank, n_words * 5 // 4, n_words, fill=NO_RANK))
        is_front = self.parameters.keyword_order == "rare_first"
        plain.rank_new_keywords(self._tree, arrays, np.arange(len(slots), dtype=np.int32), is_front)

    def drop_dead(self, messages: LiveMessages) -> None:
        is_alive = messages.layout().is_alive
        self._wide = self._wide[is_alive[self._wide] != 0]
        self._lists = self._lists._replace(item=_with_chunks(self._lists, 2))
        build.drop_dead(self._lists, is_alive, len(self._lists.first))

    def look(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], besides: Boxes) -> Found:
        layout, live, refines, wide = clauses.layout(), messages.layout(), self._options.is_refining, self._wide
        tree, lists, scratch, others = self._tree, self._lists, self._ways(layout)[:4], tuple(besides)
        return collect_pairs(
            len(slots),
            lambda first, n_out, output: look_in_lists(
                tree, lists, layout, live, scratch, wide, refines, slots, others, first, n_out, output
            ),
        )

    # --- clauses -----------------------------------------------------------------------------------------------------

    def insert_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        tree = self._tree
        if clauses.n_keywords > len(tree.rank):
            self._tree = tree._replace(rank=larger(tree.rank, clauses.n_keywords * 5 // 4, clauses.n_keywords, fill=NO_RANK))
        plain.rank_new_keywords(self._tree, clauses.layout(), slots, self.parameters.keyword_order == "rare_first")
        self._change_beside(clauses, messages, maintain.change_clauses, slots, lambda: 1, slots)

    def delete_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._change_beside(clauses, messages, maintain.change_clauses, slots, lambda: -1, slots[:0])

    def refile_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        own, layout = tuple(side.copy() for side in to), clauses.layout()
        self._change_beside(clauses, messages, maintain.refile_clauses, slots, lambda: (own, self._ways(layout)), slots[:0])

    def _change_beside(
        self,
        clauses: ClauseStore,
        messages: LiveMessages,
        change: Callable[..., int],
        slots: NDArray[np.int32],
        how: Callable[[], Any],
        coming: NDArray[np.int32],
    ) -> None:
        """Run a kernel of `maintain` over clauses.

        `how` gives what it needs besides; `coming` are clauses whose keywords may have no place in the order after a rebuild.
        """
        layout, live, scratch = clauses.layout(), messages.layout(), self._room(messages)
        position = 0
        while True:
            head, work = self._tree.head, self._work
            n_line = int(head[N_FRONT] + head[N_BACK])
            line = larger(work.line, 2 * n_line, n_line, fill=0)
            seen = larger(work.seen, 2 * clauses.n, clauses.n, fill=0)
            self._work = work._replace(line=line, seen=seen)
            self._fit(messages)
            self._work.state[POSITION] = position
            tree, expected, lists = self._tree, self._expected, self._lists
            status = change(tree, layout, expected, self._work, self._options, slots, how(), lists, live, scratch, self._limit)
            position = int(self._work.state[POSITION])
            if status == plain.DONE:
                return
            if status == plain.SHORT:
                self._grow(messages)
            else:
                self._rebuild(clauses, coming[position:])
                self.restore_messages(messages)

    # --- room --------------------------------------------------------------------------------------------------------

    def _room(self, messages: LiveMessages) -> Scratch:
        longest = int(messages.layout().n_keywords.max(initial=0))
        # At most `limit` nodes wait on each level, and the children of one more are looked at.
        n = (self._limit + 2) * (DEEPEST_LEVEL + 2)
        return Scratch(np.empty(longest, np.int32), *(np.empty(n, np.int32) for _ in range(3)))

    def _ways(self, clauses: ClauseArrays) -> tuple[NDArray[Any], ...]:
        """Room to follow clauses: for their keywords, and for every node there may be."""
        longest = int(np.diff(clauses.keyword_start).max(initial=0))
        n = len(self._tree.n_below)
        ways = (np.empty(n, np.int32), np.empty(n, np.int32), np.empty(4 * n, np.float64), np.empty(n, np.int32))
        return (np.empty(longest, np.int32), *ways)

    def _grow(self, messages: LiveMessages) -> None:
        """More room for whatever was short."""
        self._tree, self._work = with_room(self._tree, self._work)
        self._lists = self._lists._replace(
            item=_with_chunks(self._lists, max(_LEAST_CHUNKS, int(self._lists.head[N_CHUNKS]) // 8))
        )
        self._fit(messages)

    def _fit(self, messages: LiveMessages) -> None:
        """A list for every node, a stamp for every message, and a place for every node that may become pending."""
        lists = self._lists
        n_replay = REPLAY_FIELDS * (len(self._work.visit) // ITEM_FIELDS)
        self._lists = lists._replace(
            first=larger(lists.first, len(self._tree.n_below), fill=NO_CHUNK),
            stamp=larger(lists.stamp, len(messages.layout().is_alive), fill=0),
            replay=larger(lists.replay, n_replay, n_used=0),
        )

    # --- insight and storage -----------------------------------------------------------------------------------------

    def stats(self) -> dict[str, int | float]:
        own = super().stats()
        lists = self._lists
        return {**own, "bytes": own["bytes"] + sum(a.nbytes for a in lists), "message_copies": int(lists.head[N_COPIES])}

    def arrays(self) -> dict[str, NDArray[Any]]:
        n_nodes, n_chunks = int(self._tree.head[N_NODES]), int(self._lists.head[N_CHUNKS])
        used = {"first": self._lists.first[:n_nodes], "item": self._lists.item[: WIDTH * n_chunks], "head": self._lists.head}
        return {**super().arrays(), **{f"list_{name}": used[name] for name in _SAVED}, "wide": self._wide}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        none = np.zeros(0, np.int32)
        saved = {name: arrays[f"list_{name}"] for name in _SAVED}
        self._lists = ListArrays(**saved, stamp=none, replay=none)
        self._wide = arrays["wide"]


def _no_lists() -> ListArrays:
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[FREE_CHUNK], head[CHAIN] = NO_CHUNK, NOT_BEGUN
    none = np.zeros(0, np.int32)
    return ListArrays(none, none, none, none, head)


def _with_chunks(lists: ListArrays, n_more: int) -> NDArray[np.int32]:
    n_used = WIDTH * int(lists.head[N_CHUNKS])
    return larger(lists.item, n_used + WIDTH * n_more, n_used=n_used)
