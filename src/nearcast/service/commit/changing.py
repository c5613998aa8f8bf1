"""Changes of one batch: subscriptions put and ended, moves, what time does; with what the engines say to each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearcast.model.regions import Box
from nearcast.service.commit.recovery import TOLD, start_moving, start_ranking
from nearcast.service.engines.engine_events import Told, in_sequence, joined, told_of
from nearcast.service.engines.engines import Engines
from nearcast.service.engines.geofence_state import Position
from nearcast.service.gateway.engines import GatewayEngines
from nearcast.service.intake.messages import Posted, message_out, place_box
from nearcast.service.intake.moves import Moved, read_move
from nearcast.service.intake.operations import (
    EndSubscription,
    Keep,
    Move,
    Operation,
    PauseSubscription,
    PutSubscriptions,
    TakeDeliveries,
)
from nearcast.service.intake.subscriptions import Checked, Standing, paused_row, row_of, standing_of
from nearcast.service.limits import Limits
from nearcast.service.problems import Problem, forbidden, not_found
from nearcast.storage.batch import Batch, Place, SubscriptionRow
from nearcast.storage.pages import ENDED, ENTERED, LEFT, Events, Page, Span, joined_events
from nearcast.storage.store import Store
from nearcast.wire.api import MoveResult

_EXPIRED_AT_ONCE = 10_000
_PLACES_KEPT = 100_000


@dataclass(slots=True)
class Applied:
    """The batch to commit, and the answers to give when it is on disk."""

    batch: Batch = field(default_factory=Batch)
    answers: list[tuple[Operation, Any]] = field(default_factory=list)
    new_rows: list[SubscriptionRow] = field(default_factory=list)
    has_changed_engines: bool = False
    sequence: int = 0

    @property
    def is_empty(self) -> bool:
        return self.batch == Batch()


class Changes:
    """One batch in the making: changes first. `Work` adds the messages."""

    def __init__(
        self,
        store: Store,
        engines: Engines,
        limits: Limits,
        sequence: int,
        number: int,
        now: float,
        counts: dict[str, int],
    ) -> None:
        """`counts` are the living subscriptions of tenants, as far as they were asked for."""
        self._store, self._engines, self._limits, self._counts = store, engines, limits, counts
        self._first, self._sequence, self.number, self._now = sequence + 1, sequence, number, now
        self._message_first = 0
        self._rows: dict[tuple[str, str], SubscriptionRow | None] = {}
        # What the batch keeps of subscriptions that were put, by number.
        self._put_rows: dict[int, SubscriptionRow] = {}
        self._events: list[Events] = []
        self._fresh: list[Posted] = []
        self._texts: list[bytes] = []
        self._tenants: list[str] = []
        self._made = Applied()

    # --- changes -----------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """What time alone does: messages and subscriptions expire."""
        if self._engines.has_moving:
            presences = self._engines.presences
            told = presences.others(self._engines.advance(self._now), self._now, self._place_of)
            self._tell(joined([told, presences.advance(self._now)]))
        expired = self._store.expired_subscriptions(self._now, _EXPIRED_AT_ONCE)
        if expired:
            self._end(expired)

    def change(self, operation: Operation) -> None:
        answer: Any = None
        try:
            if isinstance(operation, PutSubscriptions):
                answer = self._put(operation)
            elif isinstance(operation, EndSubscription):
                self._end([self._own_row(operation.caller.tenant, operation.id, operation)])
            elif isinstance(operation, PauseSubscription):
                answer = self._pause(operation)
            elif isinstance(operation, Move):
                answer = self._move(operation)
            elif isinstance(operation, TakeDeliveries):
                assert isinstance(self._engines, GatewayEngines)
                self._tell(self._engines.deliver(operation.pairs))
                self._keep(operation.batch)
            elif isinstance(operation, Keep):
                self._keep(operation.batch)
        except Problem as problem:
            answer = problem
        self._made.answers.append((operation, answer))

    def _row(self, tenant: str, id: str) -> SubscriptionRow | None:
        """A living subscription, as this batch has it so far."""
        self._find([(tenant, id)])
        return self._rows[tenant, id]

    def _find(self, names: Sequence[tuple[str, str]]) -> None:
        unknown = [name for name in names if name not in self._rows]
        if unknown:
            found = self._store.find_subscriptions(unknown)
            for name in unknown:
                self._rows[name] = found.get(name)

    def _own_row(self, tenant: str, id: str, operation: EndSubscription | PauseSubscription | Move) -> SubscriptionRow:
        row = self._row(tenant, id)
        if row is None or not operation.caller.may_read(row.subscriber):
            raise not_found("subscription", id)
        return row

    def _put(self, operation: PutSubscriptions) -> list[tuple[SubscriptionRow, bool] | Problem]:
        self._find([(one.tenant, one.id) for one in operation.checked])
        self._sequence += 1
        answers: list[tuple[SubscriptionRow, bool] | Problem] = []
        new: dict[int, tuple[SubscriptionRow, Standing]] = {}
        for one in operation.checked:
            old = known = self._rows[one.tenant, one.id]
            if old is not None and not operation.caller.may_read(old.subscriber):
                answers.append(forbidden(f"the subscription {one.id!r} belongs to another subscriber; choose another id"))
                continue
            if old is not None and old.subscriber != one.subscriber:
                # Its past stays with whom it was of: the other gets one with a number, and so an inbox, of its own.
                self._file(new)
                self._end([old])
                old = None
            if old is None and self._count(one.tenant, 1) > self._limits.subscriptions:
                self._count(one.tenant, -1)
                most = self._limits.subscriptions
                answers.append(Problem(409, "too_many", f"this tenant has {most} subscriptions, as many as it may; end some"))
                continue
            row = self._replace(one, old)
            new[row.number] = row, one.standing._replace(number=row.number)
            self._rows[one.tenant, one.id] = row
            answers.append((row, known is None))
        self._file(new)
        return answers

    def _file(self, new: dict[int, tuple[SubscriptionRow, Standing]]) -> None:
        """Hand them to the engines and to the batch; `new` is empty afterwards."""
        rows = [row for row, _ in new.values()]
        listening = [row for row in rows if not row.paused]
        self._hush([row for row in rows if row.paused])
        self._prepare_engines(listening)
        self._tell(self._watched(listening, self._engines.put([new[row.number][1] for row in listening])))
        self._put_rows.update((row.number, row) for row in rows)
        self._made.new_rows += rows
        self._made.has_changed_engines = True
        new.clear()

    def _count(self, tenant: str, change: int) -> int:
        """How many living subscriptions a tenant has, with this change."""
        if tenant not in self._counts:
            self._counts[tenant] = self._store.count_subscriptions(tenant)
        self._counts[tenant] += change
        return self._counts[tenant]

    def _watched(self, rows: Sequence[SubscriptionRow], told: Told) -> Told:
        """Where a moving subscription begins is its first position."""
        moving = [row for row in rows if row.kind == "moving"]
        for row in moving:
            self._engines.presences.watch(row.number, row.tenant, row.options)
        start = {row.number: Position(self._now, 0.0) for row in moving}
        return self._engines.presences.moved(told, start, self._place_of)

    def _place_of(self, number: int, message: int) -> Box | None:
        """Where a living message is; None if the subscription is not in its audience."""
        if self._engines.audiences.hides(number, message):
            return None
        at = message - self._message_first
        if self._fresh and 0 <= at < len(self._fresh):
            return Box(*self._fresh[at].box)
        places = self._engines.presences.places
        if message not in places:
            page = self._store.page_with(message)
            held = None if page is None else page.message(message)
            if held is None:
                return None
            if len(places) > _PLACES_KEPT:
                places.clear()
            places[message] = place_box(message_out(held[0]))
        return places[message]

    def _replace(self, one: Checked, old: SubscriptionRow | None) -> SubscriptionRow:
        if old is None:
            self.number += 1
            return row_of(one, self.number, self._sequence, self._now, None)
        if old.kind != one.given.kind:
            self._engines.remove(old.kind, old.tenant, [old.number])
            self._engines.presences.drop([old.number])
        return row_of(one, old.number, self._sequence, self._now, old.created)

    def _prepare_engines(self, rows: Iterable[SubscriptionRow]) -> None:
        kinds = {(row.kind, row.tenant) for row in rows}
        if not self._engines.has_moving and any(kind == "moving" for kind, _ in kinds):
            start_moving(self._store, self._engines, self._limits, self._now)
        for kind, tenant in kinds:
            if kind == "ranked" and tenant not in self._engines.rankers:
                start_ranking(self._store, self._engines, tenant, self._limits)

    def _pause(self, operation: PauseSubscription) -> SubscriptionRow:
        row = self._own_row(operation.caller.tenant, operation.id, operation)
        if bool(row.paused) != operation.is_paused:
            self._sequence += 1
            row = paused_row(row, operation.is_paused, self._sequence, self._now)
            self._rows[row.tenant, row.id] = row
            self._file({row.number: (row, standing_of(row))})
        return row

    def _hush(self, rows: Sequence[SubscriptionRow]) -> None:
        """Engines forget them, if they know them."""
        for kind, tenant in {(row.kind, row.tenant) for row in rows}:
            some = [row.number for row in rows if (row.kind, row.tenant) == (kind, tenant)]
            self._engines.remove(kind, tenant, some)
            self._engines.presences.drop(some)

    def _end(self, rows: Sequence[SubscriptionRow]) -> None:
        numbers = [row.number for row in rows]
        self._hush(rows)
        self._tell(told_of(numbers, [0] * len(numbers), [ENDED] * len(numbers)))
        for row in rows:
            self._rows[row.tenant, row.id] = None
            self._count(row.tenant, -1)
        for number in numbers:
            put = self._put_rows.get(number)
            if put is None:
                self._made.batch.ended.append((number, self._sequence))
            else:
                # One that was put by this very batch ends as a row, not by an update before it is there.
                self._put_rows[number] = put._replace(ended=self._sequence)
        self._made.has_changed_engines = True

    def _move(self, operation: Move) -> list[MoveResult | Problem]:
        answers: list[MoveResult | Problem] = []
        moved: dict[int, tuple[int, Moved]] = {}
        self._find([(operation.caller.tenant, given.subscription) for given in operation.moves])
        for at, given in enumerate(operation.moves):
            try:
                row = self._own_row(operation.caller.tenant, given.subscription, operation)
                move = read_move(row, given, self._now)
            except Problem as problem:
                answers.append(problem)
                continue
            if move is None:
                answers.append(MoveResult(given.subscription, "late"))
                continue
            answers.append(MoveResult(given.subscription, "moved"))
            self._rows[row.tenant, row.id] = row._replace(place=move.place, place_time=move.time)
            if row.paused:
                self._place(row.number, move)
            else:
                moved[row.number] = (at, move)
        if moved:
            for number, (_, move) in moved.items():
                if move.accuracy_m:
                    self._engines.presences.begin(number, operation.caller.tenant, self._engines.current(number), self._now)
            told = self._engines.move({number: (move.region, move.middle) for number, (_, move) in moved.items()})
            positions = {number: Position(move.time, move.accuracy_m) for number, (_, move) in moved.items()}
            told = self._engines.presences.moved(told, positions, self._place_of)
            self._tell(told)
            entered, left = (Counter(told.subscription[told.kind == kind].tolist()) for kind in (ENTERED, LEFT))
            for number, (at, move) in moved.items():
                answer = answers[at]
                assert isinstance(answer, MoveResult)
                answer.entered, answer.left = entered[number], left[number]
                self._place(number, move)
            self._made.has_changed_engines = True
        return answers

    def _place(self, number: int, move: Moved) -> None:
        put = self._put_rows.get(number)
        if put is None:
            self._made.batch.places.append(Place(number, move.place, move.time))
        else:
            self._put_rows[number] = put._replace(place=move.place, place_time=move.time)

    def _keep(self, given: Batch) -> None:
        batch = self._made.batch
        for name in ("cursors", "records", "keys", "removed_keys", "audit", "requests"):
            getattr(batch, name).extend(getattr(given, name))
        batch.facts.update(given.facts)

    # --- the end -----------------------------------------------------------------------------------------------------

    def _tell(self, told: Told) -> None:
        events, self._sequence = in_sequence(told, self._sequence)
        if told.n:
            self._events.append(events)
            # What they tell has happened in the engines, whatever the store says to it.
            self._made.has_changed_engines = True

    def finish(self) -> Applied:
        made, batch = self._made, self._made.batch
        made.sequence = self._sequence
        batch.subscriptions = [*self._put_rows.values()]
        presence = self._engines.presences.changed()
        batch.records += presence
        made.has_changed_engines |= bool(presence)
        if self._sequence >= self._first:
            batch.sequence = self._sequence
        if self._texts or self._events:
            span = Span(self._first, self._message_first if self._texts else self._sequence + 1, self._sequence)
            events = joined_events(self._events)
            batch.page = Page.of(span, self._now, self._texts, self._tenants, events)
        if self._engines.has_moving and not made.is_empty:
            batch.facts[TOLD] = repr(self._now)
        return made
