"""What a moving matcher holds, and how results are found: pairs of an index, checked, one for each subscription and message."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.messages import MessageBatch
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.groups import Found, Matches, MessageGroups
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import Border
from nearcast.engine.subscription_store import Filed, compacted, wants_compacting
from nearcast.engine.verification import Verifier
from nearcast.model.analysis import Analysis
from nearcast.model.delivery import MatchReport
from nearcast.model.spaces import Space
from nearcast.moving.changes import NO_PAIRS, Changes, Grouped, Pairs
from nearcast.moving.index import Boxes, MovingIndex, nowhere
from nearcast.moving.live_messages import LiveMessages

# Messages that died are cleared away when they outnumber the living, but not before there are this many.
_LEAST_DEAD = 1024


@dataclass(slots=True)
class MovingState:
    """Subscriptions, living messages and the index over both. `report` tells of the call that is under way."""

    space: Space
    analysis: Analysis
    index: MovingIndex
    keywords: KeywordKind
    verifier: Verifier
    ids: Identifiers = field(default_factory=Identifiers)
    clauses: ClauseStore = field(default_factory=ClauseStore)
    shapes: ShapeStore = field(default_factory=ShapeStore)
    messages: LiveMessages = field(default_factory=LiveMessages)
    report: MatchReport = field(default_factory=MatchReport)

    @property
    def border(self) -> Border:
        return Border(self.space, self.keywords, self.analysis)

    # --- results -----------------------------------------------------------------------------------------------------

    def results(self, numbers: NDArray[np.int32]) -> Pairs:
        """What is in the results of these subscriptions now."""
        first, count = self.clauses.spans(numbers)
        slots = np.repeat(first, count)
        slots += np.arange(len(slots), dtype=np.int32) - np.repeat(np.cumsum(count) - count, count).astype(np.int32)
        if len(slots) == 0 or self.messages.n_alive == 0:
            return NO_PAIRS
        return self.found(self.index.look(self.clauses, self.messages, slots, nowhere(len(slots))))

    def found(self, found: Found) -> Pairs:
        """The results behind pairs of clauses and messages: checks applied, each subscription and message once."""
        if not self.clauses.has_checks:
            self._count(found.nodes_visited, found.candidates)
            return Pairs(self._numbers_of(found.clause), found.message)
        slots, message = np.unique(found.message, return_inverse=True)
        order = np.argsort(message, kind="stable")
        matches = Matches(message[order].astype(np.int32), found.clause[order], found.nodes_visited, found.candidates)
        return self.matched(matches, slots, self.messages.batch(slots, self.keywords.n))

    def matched(self, matches: Matches, slots: NDArray[np.int32], batch: MessageBatch) -> Pairs:
        """As `found`, where there are checks; message m of the matches is message m of the batch, at `slots[m]`."""
        self._count(matches.nodes_visited, matches.candidates)
        message, number = self.verifier.deliveries(matches, self.clauses, self.shapes, batch)
        return Pairs(number, slots[message])

    def arrived(self, slots: NDArray[np.int32], batch: MessageBatch) -> Pairs | Grouped:
        """File messages; what they match."""
        if self.clauses.has_checks:
            return self.matched(self.index.arrive(self.clauses, self.messages, slots, batch), slots, batch)
        return self._grouped(self.index.arrive_groups(self.clauses, self.messages, slots, batch))

    def ended(self, slots: NDArray[np.int32]) -> Pairs | Grouped:
        """What messages that died match."""
        batch = self.messages.batch(slots, self.keywords.n)
        if self.clauses.has_checks:
            return self.matched(self.index.match(self.clauses, batch), slots, batch)
        return self._grouped(self.index.match_groups(self.clauses, batch, slots))

    def moved(self, slots: NDArray[np.int32], to: Boxes) -> Changes:
        """Give clauses new boxes; what that changes."""
        if self.clauses.has_checks:
            moved = self.index.move(self.clauses, self.messages, slots, to)
            return Changes(self.found(moved.left), self.found(moved.entered))
        left, entered, nodes, candidates = self.index.move_groups(self.clauses, self.messages, slots, to)
        self._count(nodes, candidates)
        owner = self._owner()
        return Changes(Grouped(left, False, owner), Grouped(entered, False, owner))

    def _grouped(self, found: MessageGroups) -> Grouped:
        self._count(found.nodes_visited, found.candidates)
        return Grouped(found.groups, True, self._owner())

    def _owner(self) -> NDArray[np.int32]:
        owner = self.clauses.checks().owner
        return owner[:0] if self.clauses.is_own_number else owner

    def _numbers_of(self, clause: NDArray[np.int32]) -> NDArray[np.int32]:
        return clause if self.clauses.is_own_number else self.clauses.checks().owner[clause]

    def _count(self, nodes: int, candidates: int) -> None:
        self.report.nodes_visited += nodes
        self.report.candidates += candidates

    # --- what is no more ---------------------------------------------------------------------------------------------

    def remove(self, numbers: NDArray[np.int32]) -> None:
        """Take subscriptions out."""
        slots = self.clauses.remove(numbers)
        if len(slots):
            self.index.delete(self.clauses, self.messages, slots)

    def forget_dead(self, n_gone: int) -> None:
        """Let the index forget dead messages and use their slots again; `n_gone` died just now. Their ids have been told."""
        messages = self.messages
        if self.index.is_sweeping:
            if messages.n_dead and self.index.sweep(messages, n_gone):
                messages.release_marked()
                messages.mark_dead()
        elif messages.n_dead > max(_LEAST_DEAD, messages.n_alive):
            self.index.purge(self.clauses, messages)
            messages.release()

    def clear_dead(self) -> None:
        """File all subscriptions anew without the dead clauses when these are in the majority."""
        if wants_compacting(self.clauses):
            self.ids, self.shapes, self.clauses = compacted(Filed(self.ids, self.shapes, self.clauses))
            self.index.build(self.clauses, self.messages)
