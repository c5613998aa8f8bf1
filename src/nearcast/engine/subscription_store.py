"""The subscriptions of an engine: their ids, keywords, clauses and shapes, and what an index's pairs mean for them.

The engine owns an index and a store. It puts subscriptions into the store and files the new clauses in the index, and removes
them from both. The store turns the pairs that the index found into deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.arrow import number_column
from nearcast.columns.clauses import ClauseBatch, ClauseStore, take_lists
from nearcast.columns.identifiers import Identifiers, id_array
from nearcast.columns.messages import MessageBatch, keyword_sets_of
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.clause_building import clauses_of_parsed, clauses_of_plain
from nearcast.engine.explanation import explain_match
from nearcast.engine.groups import Groups
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext
from nearcast.engine.reading_subscriptions import ReadSubscriptions
from nearcast.engine.verification import Verifier
from nearcast.model.analysis import Analysis
from nearcast.model.inputs import Id
from nearcast.model.spaces import Space, space_of

# Dead clauses are dropped when they outnumber the living, but not before there are this many.
_LEAST_DEAD = 1024


class SubscriptionStore:
    """What an engine knows of its subscriptions. A subscription has an id (the caller's) and a number (ours)."""

    def __init__(self, space: Space, analysis: Analysis) -> None:
        self.space, self.analysis = space, analysis
        self.keywords = KeywordKind(analysis)
        self.ids = Identifiers()
        self.clauses = ClauseStore()
        self.shapes = ShapeStore()
        self._verifier = Verifier(space)

    @property
    def context(self) -> ReadingContext:
        return ReadingContext(self.space, self.keywords, self.analysis)

    # --- changes -------------------------------------------------------------------------------------------------------

    def numbers_of_rows(self, read: ReadSubscriptions) -> NDArray[np.int32]:
        """The number of each usable subscription that was read, those with a box and keywords first; new ids are entered."""
        plain_rows = read.plain.row if read.plain is not None else np.empty(0, np.int64)
        rows = np.concatenate([plain_rows, [item.row for item in read.parsed]]).astype(np.int64)
        return self.ids.add(read.ids.take(number_column(rows)))

    def put(self, read: ReadSubscriptions, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Add the clauses of subscriptions with these `numbers_of_rows`, which have none; returns the slots of the clauses."""
        slots = [np.empty(0, np.int32)]
        n_plain = len(read.plain.row) if read.plain is not None else 0
        if read.plain is not None and n_plain:
            slots.append(self.clauses.add(clauses_of_plain(read.plain, numbers[:n_plain])))
        if read.parsed:
            batch = clauses_of_parsed(read.parsed, numbers[n_plain:], self.space, self.keywords, self.shapes)
            slots.append(self.clauses.add(batch))
        return np.concatenate(slots)

    def remove(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Mark the clauses of these subscriptions dead; returns their slots."""
        return self.clauses.remove(numbers)

    def compact(self) -> bool:
        """Drop the dead clauses when they are in the majority. True if everything has another number and slot now."""
        if self.clauses.n - self.clauses.n_alive <= max(_LEAST_DEAD, self.clauses.n_alive):
            return False
        numbers, batch = self.clauses.alive_batch()
        old_ids, old_shapes = self.ids, self.shapes
        self._clear()
        self.ids.add(old_ids.take(numbers))
        _move_shapes(batch, old_shapes, self.shapes)
        self.clauses.add(batch)
        return True

    def gather(self, sources: Sequence[tuple[SubscriptionStore, NDArray[np.int32]]]) -> None:
        """Replace all subscriptions by those with these numbers of other stores (or of this one) of the same space."""
        parts = [(source, source.ids, source.shapes, *source.clauses.alive_batch(), numbers) for source, numbers in sources]
        self._clear()
        for source, old_ids, old_shapes, old_numbers, batch, numbers in parts:
            is_taken = np.isin(old_numbers, numbers)
            part = _rows_of(batch, np.flatnonzero(is_taken[batch.subscription]))
            number = np.full(len(old_numbers), -1, np.int32)
            number[is_taken] = self.ids.add(old_ids.take(old_numbers[is_taken]))
            part.subscription = number[part.subscription]
            _move_shapes(part, old_shapes, self.shapes)
            part.required_start, part.required = self._translated(source.keywords, part.required_start, part.required)
            part.forbidden_start, part.forbidden = self._translated(source.keywords, part.forbidden_start, part.forbidden)
            self.clauses.add(part)

    def _clear(self) -> None:
        kind = self.ids.kind
        self.ids, self.shapes, self.clauses = Identifiers(), ShapeStore(), ClauseStore()
        self.ids.kind = kind

    def _translated(
        self, keywords: KeywordKind, start: NDArray[np.int64], members: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Sets of keywords of another store as sets of ours."""
        if keywords is self.keywords or len(members) == 0:
            return start, members
        used, at = np.unique(members, return_inverse=True)
        # With other numbers they are in another order.
        return keyword_sets_of(start, self.keywords.take_over(keywords, used)[at])

    # --- answers -------------------------------------------------------------------------------------------------------

    def deliveries(self, groups: Groups, messages: MessageBatch) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The message and the subscription number of each delivery; the keys of the groups are messages of the batch."""
        return self._verifier.deliveries(groups, self.clauses, self.shapes, messages)

    def explain(self, messages: MessageBatch, id: Id) -> tuple[bool, list[str], int | None]:
        """Whether the first message reaches a subscription, the reasons, and the clause they are about, if there is one."""
        slots = self.clauses.slots_of(int(self.ids.find(id_array([id]))[0]))
        if not slots:
            return False, [f"there is no subscription {id!r}"], None
        return explain_match(self.clauses, self.shapes, self.keywords, self.space, messages, slots)

    @property
    def n_bytes(self) -> int:
        return self.ids.n_bytes + self.clauses.n_bytes + self.shapes.n_bytes + self.keywords.space.n_bytes

    # --- on disk -------------------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What must be saved besides the arrays."""
        return {
            "space": self.space.value,
            "analysis": self.analysis.to_dict(),
            "keyword_kind": self.keywords.name,
            "id_kind": self.ids.kind,
        }

    def arrays(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Everything that must be saved, by part."""
        return {
            "keywords": self.keywords.space.arrays(),
            "ids": self.ids.arrays(),
            "clauses": self.clauses.arrays(),
            "shapes": self.shapes.arrays(),
        }

    @classmethod
    def from_saved(cls, facts: Mapping[str, Any], parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> SubscriptionStore:
        """The store that `facts` and `arrays` describe."""
        analysis = Analysis.from_dict(facts["analysis"])
        store = cls(space_of(facts["space"]), analysis)
        store.keywords = KeywordKind.from_arrays(facts["keyword_kind"], parts["keywords"], analysis)
        store.ids = Identifiers.from_arrays(facts["id_kind"], parts["ids"])
        store.clauses = ClauseStore(parts["clauses"])
        store.shapes = ShapeStore(parts["shapes"])
        return store


def _rows_of(batch: ClauseBatch, rows: NDArray[np.int64]) -> ClauseBatch:
    bounds = (batch.x0[rows], batch.y0[rows], batch.x1[rows], batch.y1[rows])
    required = take_lists(batch.required_start, batch.required, rows)
    if batch.is_checked is None or not batch.is_checked[rows].any():
        return ClauseBatch(batch.subscription[rows], *required, *bounds)
    forbidden = take_lists(batch.forbidden_start, batch.forbidden, rows)
    return ClauseBatch(batch.subscription[rows], *required, *bounds, batch.is_checked[rows], *forbidden, batch.shape[rows])


def _move_shapes(batch: ClauseBatch, old: ShapeStore, new: ShapeStore) -> None:
    """Add the shapes that a batch uses to another store, and renumber the batch."""
    renumbered = {int(shape): new.add(old.region(int(shape))) for shape in np.unique(batch.shape) if shape >= 0}
    batch.shape = np.array([renumbered.get(int(shape), int(shape)) for shape in batch.shape], np.int32)
