"""The adaptive tree of clauses together with the lists of messages at its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.growing import resized
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work, single_pairs
from nearcast.engine.kernel_calls import run_until_it_fits
from nearcast.kernels.layouts import CANDIDATES, NODES, ClauseArrays, Output
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.moving.index import Boxes
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.boolean.adaptive_tree.allocate import resized_tree
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTree
from nearcast.papers.boolean.adaptive_tree.kernels import maintain as plain
from nearcast.papers.boolean.adaptive_tree.layout import (
    DEEPEST_LEVEL,
    ITEM_FIELDS,
    N_BACK,
    N_FILED,
    N_FRONT,
    N_NODES,
    NO_RANK,
    POSITION,
    MotionArrays,
)
from nearcast.papers.moving.moving_adaptive_tree.kernels import maintain, message_lists
from nearcast.papers.moving.moving_adaptive_tree.kernels.find_messages import look_in_lists
from nearcast.papers.moving.moving_adaptive_tree.kernels.maintain import FULL, move_clauses
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import drop_dead, pack_lists, packed_size
from nearcast.papers.moving.moving_adaptive_tree.kernels.move_diff import N_PAIRS, TRAVEL_COUNTERS, note_homes
from nearcast.papers.moving.moving_adaptive_tree.layout import (
    HEAD_FIELDS,
    LIST_FIELDS,
    N_COPIES,
    N_USED,
    REPLAY_FIELDS,
    WANTED_PILE,
    WANTED_USED,
    Follower,
    ListArrays,
    Scratch,
)
from nearcast.papers.moving.moving_adaptive_tree.motion import Motion
from nearcast.papers.moving.moving_adaptive_tree.parameters import MovingAdaptiveTreeParameters

# By this share more room is made than is asked for.
_MORE_ROOM = 1.25
_FIRST_PAIRS = 4096
_SAVED = ("own", "slot", "signature", "place", "free", "head")


class ListedTree(AdaptiveTree):
    """A tree that knows the living messages, and how the clauses move."""

    parameters: MovingAdaptiveTreeParameters

    def __init__(self, parameters: MovingAdaptiveTreeParameters) -> None:
        super().__init__(parameters)
        self._limit = parameters.max_message_copies
        self._moved = Motion(parameters)
        self._lists = no_lists()
        self._wide: NDArray[np.int32] = np.empty(0, np.int32)

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        self._moved.forget()
        super().build(clauses, history)

    def _build_of(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        super()._build_of(clauses, slots)
        home = np.zeros(clauses.n, np.int32)
        note_homes(self._tree, int(self._tree.head[N_NODES]), home)
        self._lists = self._lists._replace(home=home)

    def _motion(self, n_clauses: int) -> MotionArrays:
        return self._moved.arrays(n_clauses) if self._moved.is_used else super()._motion(n_clauses)

    # --- messages ----------------------------------------------------------------------------------------------------

    def restore_messages(self, messages: LiveMessages) -> None:
        """Forget all lists and store every living message anew."""
        self._lists = no_lists()._replace(home=self._lists.home)
        self._wide = np.empty(0, np.int32)
        self._store(messages, messages.slots())

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._moved.note_messages(len(slots))
        self._store(messages, slots)

    def _store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        live = messages.layout()
        is_point = (live.x0[slots] == live.x1[slots]) & (live.y0[slots] == live.y1[slots])
        self._wide = np.concatenate([self._wide, slots[~is_point]])
        points = slots[is_point]
        self._rank_words(messages, points)
        self._fit(messages)
        scratch, position, refines = self._room(messages), 0, self._options.is_refining
        while True:
            position = message_lists.store_messages(
                self._tree, self._lists, live, self._work.needed, scratch, points, position, self._limit, refines
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
            self._tree = tree._replace(rank=resized(tree.rank, n_words * 5 // 4, NO_RANK, needed=n_words))
        is_front = self.parameters.keyword_order == "rare_first"
        plain.rank_new_keywords(self._tree, arrays, np.arange(len(slots), dtype=np.int32), is_front)

    def drop_dead(self, messages: LiveMessages) -> None:
        is_alive = messages.layout().is_alive
        self._wide = self._wide[is_alive[self._wide] != 0]
        drop_dead(self._lists, is_alive, len(self._lists.own) // LIST_FIELDS)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, refines, wide = clauses.layout(), messages.layout(), self._options.is_refining, self._wide
        tree, lists, scratch, others = self._tree, self._lists, self._ways(layout), tuple(excluded)
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: look_in_lists(
                tree, lists, layout, live, scratch, wide, refines, slots, others, first, n_out, output
            ),
            is_by_clause=True,
        )

    # --- clauses -----------------------------------------------------------------------------------------------------

    def insert_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        tree = self._tree
        if clauses.n_keywords > len(tree.rank):
            self._tree = tree._replace(rank=resized(tree.rank, clauses.n_keywords * 5 // 4, NO_RANK, needed=clauses.n_keywords))
        plain.rank_new_keywords(self._tree, clauses.layout(), slots, self.parameters.keyword_order == "rare_first")
        self._change_beside(clauses, messages, maintain.change_clauses, slots, lambda: 1, slots)

    def delete_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._change_beside(clauses, messages, maintain.change_clauses, slots, lambda: -1, slots[:0])

    def move_beside(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes
    ) -> tuple[Groups, Groups, Work]:
        """Move clauses; returns what that changes."""
        own, layout = tuple(side.copy() for side in to), clauses.layout()
        if self._moved.is_used:
            self._moved.note_moves(layout, slots, to)
        self._lists = self._lists._replace(home=resized(self._lists.home, clauses.n))
        moves = _Moves()
        wide = self._wide
        self._change_beside(
            clauses, messages, moves.run, slots, lambda: (own, self._ways(layout), wide, moves.output), slots[:0]
        )
        if self._moved.is_news(int(self._tree.head[N_FILED])):
            self._rebuild(clauses, slots[:0])
            self.restore_messages(messages)
        return moves.changes()

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
            line = resized(work.line, 2 * n_line, needed=n_line)
            seen = resized(work.seen, 2 * clauses.n, needed=clauses.n)
            self._work = work._replace(line=line, seen=seen)
            self._fit(messages)
            self._work.state[POSITION] = position
            tree, expected, lists = self._tree, self._inputs, self._lists
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

    def _ways(self, clauses: ClauseArrays) -> Follower:
        """Room to follow clauses: for their keywords, and for every node there may be."""
        longest = int(np.diff(clauses.keyword_start).max(initial=0))
        n = len(self._tree.n_below)
        queue, offset, new_queue = (np.empty(n, np.int32) for _ in range(3))
        rank, region, proven = np.empty(longest, np.int32), np.empty(4 * n), np.empty(n, np.int64)
        return Follower(rank, queue, offset, region, new_queue, proven, np.zeros(n, np.int32))

    def _grow(self, messages: LiveMessages) -> None:
        """More room for whatever was short."""
        self._tree, self._work = resized_tree(self._tree, self._work)
        if int(self._lists.head[WANTED_USED]) > len(self._lists.slot):
            self._pack_lists()
        lists = self._lists
        n_used, n_wanted, n_pile = (int(lists.head[field]) for field in (N_USED, WANTED_USED, WANTED_PILE))
        more = int(_MORE_ROOM * n_wanted)
        self._lists = lists._replace(
            slot=resized(lists.slot, more, None, n_used, n_wanted),
            signature=resized(lists.signature, more, None, n_used, n_wanted),
            place=resized(lists.place, 2 * more, None, 2 * n_used, 2 * n_wanted),
            pile=resized(lists.pile, int(_MORE_ROOM * n_pile), None, needed=n_pile),
        )
        self._fit(messages)

    def _pack_lists(self) -> None:
        """Move the lists together if that frees half of the room: what longer lists left behind seldom fits other ones."""
        lists, n_nodes = self._lists, len(self._lists.own) // LIST_FIELDS
        n_packed, n_used = int(packed_size(lists, n_nodes)), int(lists.head[N_USED])
        if 2 * n_packed > n_used:
            return
        n_wanted = n_packed + int(lists.head[WANTED_USED]) - n_used
        room = int(_MORE_ROOM * n_wanted)
        packed = lists._replace(
            slot=np.empty(room, np.int32), signature=np.empty(room, np.int64), place=np.empty(2 * room, np.float32)
        )
        pack_lists(lists, n_nodes, packed)
        lists.head[WANTED_USED] = n_wanted
        self._lists = packed

    def _fit(self, messages: LiveMessages) -> None:
        """A list for every node, a stamp for every message, and a place for every node that may become pending."""
        lists = self._lists
        n_replay = REPLAY_FIELDS * (len(self._work.visit) // ITEM_FIELDS)
        self._lists = lists._replace(
            own=resized(lists.own, LIST_FIELDS * len(self._tree.n_below)),
            stamp=resized(lists.stamp, len(messages.layout().is_alive)),
            replay=resized(lists.replay, n_replay, None, 0),
        )

    # --- insight and storage -----------------------------------------------------------------------------------------

    def stats(self) -> dict[str, int | float]:
        own = super().stats()
        lists = self._lists
        return {**own, "bytes": own["bytes"] + sum(a.nbytes for a in lists), "message_copies": int(lists.head[N_COPIES])}

    def arrays(self) -> dict[str, NDArray[Any]]:
        lists, n_used = self._lists, int(self._lists.head[N_USED])
        used = {
            "own": lists.own[: LIST_FIELDS * int(self._tree.head[N_NODES])],
            "slot": lists.slot[:n_used],
            "signature": lists.signature[:n_used],
            "place": lists.place[: 2 * n_used],
            "free": lists.free,
            "head": lists.head,
        }
        saved = {f"list_{name}": used[name] for name in _SAVED}
        moved = {f"moved_{name}": array for name, array in self._moved.saved().items()}
        return {**super().arrays(), **saved, **moved, "wide": self._wide}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        none = np.zeros(0, np.int32)
        saved = {name: arrays[f"list_{name}"] for name in _SAVED}
        self._lists = ListArrays(**saved, stamp=none, replay=none, pile=none, home=none)
        self._wide = arrays["wide"]
        self._moved.restore({name: arrays[f"moved_{name}"] for name in ("velocity", "count")})


class _Moves:
    """Runs the kernel that moves clauses, with as much room for what it tells as it needs."""

    def __init__(self) -> None:
        none = np.empty(_FIRST_PAIRS, np.int32)
        self.output = Output(none, none.copy(), np.zeros(TRAVEL_COUNTERS, np.int64))

    def run(self, *arguments: Any) -> int:
        status = int(move_clauses(*arguments))
        if status == FULL:
            old, n = self.output, int(self.output.counters[N_PAIRS])
            room = 2 * len(old.clause)
            self.output = Output(resized(old.message, room, None, n), resized(old.clause, room, None, n), old.counters)
            return plain.SHORT
        return status

    def changes(self) -> tuple[Groups, Groups, Work]:
        counters, n = self.output.counters, int(self.output.counters[N_PAIRS])
        clause, message = self.output.clause[:n], self.output.message[:n]
        is_left = message >= 0
        left = single_pairs(clause[is_left], message[is_left])
        entered = single_pairs(clause[~is_left], ~message[~is_left])
        return left, entered, Work(int(counters[NODES]), int(counters[CANDIDATES]))


def no_lists() -> ListArrays:
    """Nothing stored anywhere, and no room yet."""
    none = np.zeros(0, np.int32)
    return ListArrays(
        own=none,
        slot=none,
        signature=np.zeros(0, np.int64),
        place=np.zeros(0, np.float32),
        free=np.full(N_CLASSES, NO_CHUNK, np.int32),
        stamp=none,
        replay=none,
        pile=none,
        home=none,
        head=np.zeros(HEAD_FIELDS, np.int64),
    )
