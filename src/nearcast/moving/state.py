"""What a moving matcher holds, and how results are found: pairs of an index, checked, one for each subscription and message."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.folder import joined_parts, read_folder, split_parts, write_folder
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import NO_PAIRS, Groups, Work, grouped, single_pairs
from nearcast.engine.registry import create
from nearcast.engine.report import LastReport
from nearcast.engine.subscription_store import SubscriptionStore
from nearcast.model.delivery import MatchReport
from nearcast.moving.changes import Changes
from nearcast.moving.index import Boxes, MovingIndex, nowhere
from nearcast.moving.indexes import MOVING_INDEXES
from nearcast.moving.live_messages import LiveMessages

# Messages that died are cleared away when they outnumber the living, but not before there are this many.
_LEAST_DEAD = 1024
_KIND = "moving matcher"


@dataclass(slots=True)
class MovingState:
    """Subscriptions, live messages and the index over both. `report` is about the call that is under way."""

    subscriptions: SubscriptionStore
    index: MovingIndex
    messages: LiveMessages = field(default_factory=LiveMessages)
    last_report: LastReport = field(default_factory=LastReport)

    @property
    def report(self) -> MatchReport:
        return self.last_report.value

    @report.setter
    def report(self, report: MatchReport) -> None:
        self.last_report.value = report

    # --- results -----------------------------------------------------------------------------------------------------

    def results(self, numbers: NDArray[np.int32]) -> Groups:
        """The messages in the results of these subscriptions now, by subscription, in memory of their own."""
        first, count = self.subscriptions.clauses.spans(numbers)
        slots = np.repeat(first, count)
        slots += np.arange(len(slots), dtype=np.int32) - np.repeat(np.cumsum(count) - count, count).astype(np.int32)
        if len(slots) == 0 or self.messages.n_alive == 0:
            return NO_PAIRS
        groups, work = self.index.find_messages(self.subscriptions.clauses, self.messages, slots, nowhere(len(slots)))
        self._count(work)
        return self._by_subscription(groups).copied()

    def arrived(self, slots: NDArray[np.int32], batch: MessageBatch) -> Groups:
        """File messages; the subscriptions that they match, by message."""
        groups, work = self.index.arrive(self.subscriptions.clauses, self.messages, slots, batch)
        self._count(work)
        return self._by_message(groups, slots, batch)

    def expired(self, slots: NDArray[np.int32]) -> Groups:
        """The subscriptions that dead messages match, by message."""
        batch = self.messages.batch(slots, self.subscriptions.keywords.n)
        groups, work = self.index.match(self.subscriptions.clauses, batch)
        self._count(work)
        return self._by_message(groups, slots, batch)

    def moved(self, slots: NDArray[np.int32], to: Boxes) -> Changes:
        """Give clauses new boxes; what that changes."""
        left, entered, work = self.index.move(self.subscriptions.clauses, self.messages, slots, to)
        self._count(work)
        return Changes(self._by_subscription(left), self._by_subscription(entered))

    def _by_subscription(self, groups: Groups) -> Groups:
        """Messages of clauses as messages of subscriptions: checks applied, each pair once."""
        if not self.subscriptions.clauses.has_checks:
            return groups._replace(key=self._subscription_of(groups.key))
        clause, message = groups.pairs()
        slots, position = np.unique(message, return_inverse=True)
        order = np.argsort(position, kind="stable")
        by_message = grouped(position[order].astype(np.int32), clause[order], len(slots))
        batch = self.messages.batch(slots, self.subscriptions.keywords.n)
        delivered, number = self.subscriptions.deliveries(by_message, batch)
        return single_pairs(number, slots[delivered])

    def _by_message(self, groups: Groups, slots: NDArray[np.int32], batch: MessageBatch) -> Groups:
        """Clauses of the messages of a batch as subscriptions of the messages at `slots`: checks applied, each pair once."""
        if self.subscriptions.clauses.has_checks:
            message, number = self.subscriptions.deliveries(groups, batch)
            return single_pairs(slots[message], number)
        if not self.subscriptions.clauses.is_identity:
            used = groups.member[: int(groups.end.max(initial=0))]
            # What lies between the groups may be anything.
            groups = groups._replace(member=self.subscriptions.clauses.checks().subscription.take(used, mode="clip"))
        return groups._replace(key=slots)

    def _subscription_of(self, clause: NDArray[np.int32]) -> NDArray[np.int32]:
        return clause if self.subscriptions.clauses.is_identity else self.subscriptions.clauses.checks().subscription[clause]

    def _count(self, work: Work) -> None:
        self.report.nodes_visited += work.nodes
        self.report.candidates += work.candidates

    # --- what is no more ---------------------------------------------------------------------------------------------

    def remove(self, numbers: NDArray[np.int32]) -> None:
        """Take subscriptions out."""
        slots = self.subscriptions.remove(numbers)
        if len(slots):
            self.index.delete(self.subscriptions.clauses, self.messages, slots)

    def forget_dead(self, n_gone: int) -> None:
        """Let the index forget dead messages and use their slots again; `n_gone` died just now. Their ids have been told."""
        messages = self.messages
        if self.index.is_sweeping:
            if messages.n_dead and self.index.sweep(messages, n_gone):
                messages.release_marked()
                messages.mark_dead()
        elif messages.n_dead > max(_LEAST_DEAD, messages.n_alive):
            self.index.purge(self.subscriptions.clauses, messages)
            messages.release()

    def compact(self) -> None:
        """Drop the dead clauses when they are in the majority."""
        if self.subscriptions.compact():
            self.index.build(self.subscriptions.clauses, self.messages)


# --- saving and opening ------------------------------------------------------------------------------------------------


def save_state(folder: str | Path, state: MovingState) -> None:
    """Write everything; an existing saved folder is replaced as a whole."""
    store, messages = state.subscriptions, state.messages
    parts = {**store.arrays(), "messages": messages.arrays(), "index": state.index.arrays()}
    facts = {
        **store.facts(),
        "message_id_kind": messages.ids.kind,
        "now": messages.now if math.isfinite(messages.now) else None,
        "index": state.index.facts(),
    }
    write_folder(folder, _KIND, facts, joined_parts(parts))


def open_state(folder: str | Path) -> MovingState:
    """The saved state, memory-mapped except for arrays that change soon."""
    facts, arrays = read_folder(folder, _KIND)
    parts = split_parts(arrays, ("keywords", "ids", "clauses", "shapes", "messages", "index"))
    index = create(MOVING_INDEXES, facts["index"]["name"], facts["index"]["parameters"])
    index.restore(parts["index"])
    now = -math.inf if facts["now"] is None else facts["now"]
    messages = LiveMessages.from_arrays(now, facts["message_id_kind"], parts["messages"])
    return MovingState(SubscriptionStore.from_saved(facts, parts), index, messages)
