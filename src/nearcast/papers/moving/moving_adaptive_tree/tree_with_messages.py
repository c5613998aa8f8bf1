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
from nearcast.papers.moving.moving_adaptive_tree.kernels.find_messages import find_messages
from nearcast.papers.moving.moving_adaptive_tree.kernels.maintain import FULL, move_clauses
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import drop_dead, pack_lists, packed_size
from nearcast.papers.moving.moving_adaptive_tree.kernels.move_diff import DIFF_COUNTERS, N_PAIRS, write_leaf_guesses
from nearcast.papers.moving.moving_adaptive_tree.layout import (
    HEAD_FIELDS,
    LIST_FIELDS,
    N_COPIES,
    N_USED,
    NEEDED_PENDING,
    NEEDED_USED,
    REINSERT_FIELDS,
    ListArrays,
    PathScratch,
    StoreScratch,
)
from nearcast.papers.moving.moving_adaptive_tree.motion import Motion
from nearcast.papers.moving.moving_adaptive_tree.parameters import MovingAdaptiveTreeParameters

# Arrays grow to this multiple of what is needed.
_MORE_CAPACITY = 1.25
_FIRST_PAIRS = 4096
_SAVED = ("node_list", "slot", "signature", "point", "free", "head")


class TreeWithMessages(AdaptiveTree):
    """The adaptive tree with the live messages at its nodes. It also records how the clauses move."""

    parameters: MovingAdaptiveTreeParameters

    def __init__(self, parameters: MovingAdaptiveTreeParameters) -> None:
        super().__init__(parameters)
        self._limit = parameters.max_message_copies
        self._motion_record = Motion(parameters)
        self._lists = no_lists()
        self._range_messages: NDArray[np.int32] = np.empty(0, np.int32)

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        self._motion_record.clear()
        super().build(clauses, history)

    def _build_of(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        super()._build_of(clauses, slots)
        leaf_guess = np.zeros(clauses.n, np.int32)
        write_leaf_guesses(self._tree, int(self._tree.head[N_NODES]), leaf_guess)
        self._lists = self._lists._replace(leaf_guess=leaf_guess)

    def _motion(self, n_clauses: int) -> MotionArrays:
        return self._motion_record.arrays(n_clauses) if self._motion_record.is_used else super()._motion(n_clauses)

    # --- messages ----------------------------------------------------------------------------------------------------

    def restore_messages(self, messages: LiveMessages) -> None:
        """Drop all lists and store all live messages again."""
        self._lists = no_lists()._replace(leaf_guess=self._lists.leaf_guess)
        self._range_messages = np.empty(0, np.int32)
        self._store(messages, messages.slots())

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._motion_record.note_messages(len(slots))
        self._store(messages, slots)

    def _store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        live = messages.layout()
        is_point = (live.x0[slots] == live.x1[slots]) & (live.y0[slots] == live.y1[slots])
        self._range_messages = np.concatenate([self._range_messages, slots[~is_point]])
        points = slots[is_point]
        self._rank_keywords(messages, points)
        self._resize_lists(messages)
        scratch, position, refines = self._store_scratch(messages), 0, self._options.is_refining
        while True:
            position = message_lists.store_messages(
                self._tree, self._lists, live, self._work.needed, scratch, points, position, self._limit, refines
            )
            if position == len(points):
                return
            self._grow(messages)

    def _rank_keywords(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """Rank every keyword of these messages: a clause that has it later is filed by that rank."""
        arrays = messages.batch(slots, 0).arrays
        n_keywords = int(arrays.keyword.max(initial=-1)) + 1
        tree = self._tree
        if n_keywords > len(tree.rank):
            self._tree = tree._replace(rank=resized(tree.rank, n_keywords * 5 // 4, NO_RANK, needed=n_keywords))
        is_front = self.parameters.keyword_order == "rare_first"
        plain.rank_new_keywords(self._tree, arrays, np.arange(len(slots), dtype=np.int32), is_front)

    def drop_dead(self, messages: LiveMessages) -> None:
        is_alive = messages.layout().is_alive
        self._range_messages = self._range_messages[is_alive[self._range_messages] != 0]
        drop_dead(self._lists, is_alive, len(self._lists.node_list) // LIST_FIELDS)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, refines, range_messages = (
            clauses.layout(),
            messages.layout(),
            self._options.is_refining,
            self._range_messages,
        )
        tree, lists, scratch, others = self._tree, self._lists, self._path_scratch(layout), tuple(excluded)
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: find_messages(
                tree, lists, layout, live, scratch, range_messages, refines, slots, others, first, n_out, output
            ),
            is_by_clause=True,
        )

    # --- clauses -----------------------------------------------------------------------------------------------------

    def insert_clauses(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        tree = self._tree
        if clauses.n_keywords > len(tree.rank):
            self._tree = tree._replace(rank=resized(tree.rank, clauses.n_keywords * 5 // 4, NO_RANK, needed=clauses.n_keywords))
        plain.rank_new_keywords(self._tree, clauses.layout(), slots, self.parameters.keyword_order == "rare_first")
        self._change_clauses(clauses, messages, maintain.change_clauses, slots, lambda: 1, slots)

    def delete_clauses(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._change_clauses(clauses, messages, maintain.change_clauses, slots, lambda: -1, slots[:0])

    def move_clauses_to(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes
    ) -> tuple[Groups, Groups, Work]:
        """Move clauses; returns the changes of their results."""
        new_boxes, layout = tuple(bound.copy() for bound in to), clauses.layout()
        if self._motion_record.is_used:
            self._motion_record.note_moves(layout, slots, to)
        self._lists = self._lists._replace(leaf_guess=resized(self._lists.leaf_guess, clauses.n))
        moves = _MoveRun()
        range_messages = self._range_messages
        self._change_clauses(
            clauses,
            messages,
            moves.run,
            slots,
            lambda: (new_boxes, self._path_scratch(layout), range_messages, moves.output),
            slots[:0],
        )
        if self._motion_record.needs_rebuild(int(self._tree.head[N_FILED])):
            self._rebuild(clauses, slots[:0])
            self.restore_messages(messages)
        return moves.changes()

    def _change_clauses(
        self,
        clauses: ClauseStore,
        messages: LiveMessages,
        change: Callable[..., int],
        slots: NDArray[np.int32],
        arguments: Callable[[], Any],
        new_slots: NDArray[np.int32],
    ) -> None:
        """Run a kernel of `maintain` over clauses; grow or rebuild when it asks for that.

        `arguments` returns its special arguments. `new_slots`: clauses whose keywords may need a rank after a rebuild.
        """
        layout, live, scratch = clauses.layout(), messages.layout(), self._store_scratch(messages)
        position = 0
        while True:
            head, work = self._tree.head, self._work
            n_line = int(head[N_FRONT] + head[N_BACK])
            line = resized(work.line, 2 * n_line, needed=n_line)
            seen = resized(work.seen, 2 * clauses.n, needed=clauses.n)
            self._work = work._replace(line=line, seen=seen)
            self._resize_lists(messages)
            self._work.state[POSITION] = position
            tree, expected, lists = self._tree, self._inputs, self._lists
            status = change(
                tree, layout, expected, self._work, self._options, slots, arguments(), lists, live, scratch, self._limit
            )
            position = int(self._work.state[POSITION])
            if status == plain.DONE:
                return
            if status == plain.SHORT:
                self._grow(messages)
            else:
                self._rebuild(clauses, new_slots[position:])
                self.restore_messages(messages)

    def _store_scratch(self, messages: LiveMessages) -> StoreScratch:
        longest = int(messages.layout().n_keywords.max(initial=0))
        # At most `limit` nodes wait on each level, and the children of one more are added.
        n = (self._limit + 2) * (DEEPEST_LEVEL + 2)
        return StoreScratch(np.empty(longest, np.int32), *(np.empty(n, np.int32) for _ in range(3)))

    def _path_scratch(self, clauses: ClauseArrays) -> PathScratch:
        """Scratch for following clauses: for the most keywords of a clause, and for every node."""
        longest = int(np.diff(clauses.keyword_start).max(initial=0))
        n = len(self._tree.n_below)
        queue, offset, new_queue = (np.empty(n, np.int32) for _ in range(3))
        rank, region, proven = np.empty(longest, np.int32), np.empty(4 * n), np.empty(n, np.int64)
        return PathScratch(rank, queue, offset, region, new_queue, proven, np.zeros(n, np.int32))

    def _grow(self, messages: LiveMessages) -> None:
        """Grow the arrays that were too short."""
        self._tree, self._work = resized_tree(self._tree, self._work)
        if int(self._lists.head[NEEDED_USED]) > len(self._lists.slot):
            self._pack_lists()
        lists = self._lists
        n_used, n_wanted, n_pending = (int(lists.head[field]) for field in (N_USED, NEEDED_USED, NEEDED_PENDING))
        more = int(_MORE_CAPACITY * n_wanted)
        self._lists = lists._replace(
            slot=resized(lists.slot, more, None, n_used, n_wanted),
            signature=resized(lists.signature, more, None, n_used, n_wanted),
            point=resized(lists.point, 2 * more, None, 2 * n_used, 2 * n_wanted),
            pending=resized(lists.pending, int(_MORE_CAPACITY * n_pending), None, needed=n_pending),
        )
        self._resize_lists(messages)

    def _pack_lists(self) -> None:
        """Pack the lists if that frees half of the space: chunks left by longer lists seldom fit other lists."""
        lists, n_nodes = self._lists, len(self._lists.node_list) // LIST_FIELDS
        n_packed, n_used = int(packed_size(lists, n_nodes)), int(lists.head[N_USED])
        if 2 * n_packed > n_used:
            return
        n_wanted = n_packed + int(lists.head[NEEDED_USED]) - n_used
        capacity = int(_MORE_CAPACITY * n_wanted)
        packed = lists._replace(
            slot=np.empty(capacity, np.int32), signature=np.empty(capacity, np.int64), point=np.empty(2 * capacity, np.float32)
        )
        pack_lists(lists, n_nodes, packed)
        lists.head[NEEDED_USED] = n_wanted
        self._lists = packed

    def _resize_lists(self, messages: LiveMessages) -> None:
        """Make room for a list for every node, a stamp for every message, and a record for every node that may be rebuilt."""
        lists = self._lists
        n_reinsert = REINSERT_FIELDS * (len(self._work.visit) // ITEM_FIELDS)
        self._lists = lists._replace(
            node_list=resized(lists.node_list, LIST_FIELDS * len(self._tree.n_below)),
            stamp=resized(lists.stamp, len(messages.layout().is_alive)),
            reinsert=resized(lists.reinsert, n_reinsert, None, 0),
        )

    # --- insight and storage -----------------------------------------------------------------------------------------

    def stats(self) -> dict[str, int | float]:
        stats = super().stats()
        lists = self._lists
        return {**stats, "bytes": stats["bytes"] + sum(a.nbytes for a in lists), "message_copies": int(lists.head[N_COPIES])}

    def arrays(self) -> dict[str, NDArray[Any]]:
        lists, n_used = self._lists, int(self._lists.head[N_USED])
        used = {
            "node_list": lists.node_list[: LIST_FIELDS * int(self._tree.head[N_NODES])],
            "slot": lists.slot[:n_used],
            "signature": lists.signature[:n_used],
            "point": lists.point[: 2 * n_used],
            "free": lists.free,
            "head": lists.head,
        }
        saved = {f"list_{name}": used[name] for name in _SAVED}
        moved = {f"moved_{name}": array for name, array in self._motion_record.saved().items()}
        return {**super().arrays(), **saved, **moved, "wide": self._range_messages}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        none = np.zeros(0, np.int32)
        saved = {name: arrays[f"list_{name}"] for name in _SAVED}
        self._lists = ListArrays(**saved, stamp=none, reinsert=none, pending=none, leaf_guess=none)
        self._range_messages = arrays["wide"]
        self._motion_record.restore({name: arrays[f"moved_{name}"] for name in ("velocity", "count")})


class _MoveRun:
    """Runs the kernel that moves clauses, and grows its output."""

    def __init__(self) -> None:
        none = np.empty(_FIRST_PAIRS, np.int32)
        self.output = Output(none, none.copy(), np.zeros(DIFF_COUNTERS, np.int64))

    def run(self, *arguments: Any) -> int:
        status = int(move_clauses(*arguments))
        if status == FULL:
            old, n = self.output, int(self.output.counters[N_PAIRS])
            capacity = 2 * len(old.clause)
            self.output = Output(resized(old.message, capacity, None, n), resized(old.clause, capacity, None, n), old.counters)
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
    """Empty lists without capacity."""
    none = np.zeros(0, np.int32)
    return ListArrays(
        node_list=none,
        slot=none,
        signature=np.zeros(0, np.int64),
        point=np.zeros(0, np.float32),
        free=np.full(N_CLASSES, NO_CHUNK, np.int32),
        stamp=none,
        reinsert=none,
        pending=none,
        leaf_guess=none,
        head=np.zeros(HEAD_FIELDS, np.int64),
    )
