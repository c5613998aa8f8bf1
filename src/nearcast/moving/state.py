"""The state of a moving matcher: subscriptions, live messages, an index over both. It turns pairs of the index into results."""

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
from nearcast.moving.index import Boxes, MovingIndex, empty_boxes
from nearcast.moving.indexes import MOVING_INDEXES
from nearcast.moving.live_messages import LiveMessages

# An index that drops all dead messages at once does so when there are more of them than live ones, and at least this many.
_LEAST_DEAD = 1024
_KIND = "moving matcher"


@dataclass(slots=True)
class MovingState:
    """Subscriptions, live messages and the index over both. `report` is that of the call in progress."""

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
        """The messages in the results of these subscriptions now, copied; the keys are subscriptions."""
        first, count = self.subscriptions.clauses.spans(numbers)
        slots = np.repeat(first, count)
        slots += np.arange(len(slots), dtype=np.int32) - np.repeat(np.cumsum(count) - count, count).astype(np.int32)
        if len(slots) == 0 or self.messages.n_alive == 0:
            return NO_PAIRS
        groups, work = self.index.find_messages(self.subscriptions.clauses, self.messages, slots, empty_boxes(len(slots)))
        self._count(work)
        return self._by_subscription(groups).copied()

    def match_new(self, slots: NDArray[np.int32], batch: MessageBatch) -> Groups:
        """File new messages; returns the subscriptions that they match. The keys are messages."""
        groups, work = self.index.arrive(self.subscriptions.clauses, self.messages, slots, batch)
        self._count(work)
        return self._by_message(groups, slots, batch)

    def match_expired(self, slots: NDArray[np.int32]) -> Groups:
        """The subscriptions that expired messages matched; the keys are messages."""
        batch = self.messages.batch(slots, self.subscriptions.keywords.n)
        groups, work = self.index.match(self.subscriptions.clauses, batch)
        self._count(work)
        return self._by_message(groups, slots, batch)

    def move_clauses(self, slots: NDArray[np.int32], to: Boxes) -> Changes:
        """Give clauses new boxes; returns the changes of their results."""
        left, entered, work = self.index.move(self.subscriptions.clauses, self.messages, slots, to)
        self._count(work)
        return Changes(self._by_subscription(left), self._by_subscription(entered))

    def _by_subscription(self, groups: Groups) -> Groups:
        """Turn messages of clauses into messages of subscriptions: apply checks, keep each pair once."""
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
        """Turn clauses of messages into subscriptions of messages: apply checks, keep each pair once.

        Message i of the batch is at `slots[i]`.
        """
        if self.subscriptions.clauses.has_checks:
            message, number = self.subscriptions.deliveries(groups, batch)
            return single_pairs(slots[message], number)
        if not self.subscriptions.clauses.is_identity:
            used = groups.member[: int(groups.end.max(initial=0))]
            # Elements between the groups are undefined.
            groups = groups._replace(member=self.subscriptions.clauses.checks().subscription.take(used, mode="clip"))
        return groups._replace(key=slots)

    def _subscription_of(self, clause: NDArray[np.int32]) -> NDArray[np.int32]:
        return clause if self.subscriptions.clauses.is_identity else self.subscriptions.clauses.checks().subscription[clause]

    def _count(self, work: Work) -> None:
        self.report.nodes_visited += work.nodes
        self.report.candidates += work.candidates

    # --- removal -----------------------------------------------------------------------------------------------------

    def remove(self, numbers: NDArray[np.int32]) -> None:
        """Remove subscriptions."""
        slots = self.subscriptions.remove(numbers)
        if len(slots):
            self.index.delete(self.subscriptions.clauses, self.messages, slots)

    def collect_dead(self, n_expired: int) -> None:
        """Let the index drop dead messages, then release their slots. `n_expired` died just now; they have been reported."""
        messages = self.messages
        if self.index.collects_dead:
            if messages.n_dead and self.index.collect_dead(messages, n_expired):
                messages.release_marked()
                messages.mark_dead()
        elif messages.n_dead > max(_LEAST_DEAD, messages.n_alive):
            self.index.purge(self.subscriptions.clauses, messages)
            messages.release()

    def compact(self) -> None:
        """Drop dead clauses if they are the majority."""
        if self.subscriptions.compact():
            self.index.build(self.subscriptions.clauses, self.messages)


# --- saving and opening ------------------------------------------------------------------------------------------------


def save_state(folder: str | Path, state: MovingState) -> None:
    """Write everything to a folder of arrays, which replaces an existing saved folder as a whole."""
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
    """Open a saved state. Its arrays are memory-mapped, except those that change soon."""
    facts, arrays = read_folder(folder, _KIND)
    parts = split_parts(arrays, ("keywords", "ids", "clauses", "shapes", "messages", "index"))
    index = create(MOVING_INDEXES, facts["index"]["name"], facts["index"]["parameters"])
    index.restore(parts["index"])
    now = -math.inf if facts["now"] is None else facts["now"]
    messages = LiveMessages.from_arrays(now, facts["message_id_kind"], parts["messages"])
    return MovingState(SubscriptionStore.from_saved(facts, parts), index, messages)
