"""Operations to one batch: what they change, what the engines say to it, what each is answered.

Operations that wait at the same time have no order among them that anyone could know. So changes go first, in the order they
came, and all messages after them, matched together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from nearcast.service.commit.changing import Applied, Changes
from nearcast.service.engines.engine_events import at_their_messages
from nearcast.service.engines.engines import Engines
from nearcast.service.intake.messages import Posted, given_id, id_key, text_of
from nearcast.service.intake.operations import Operation, Publish, RequestKey
from nearcast.service.limits import Limits
from nearcast.service.problems import Problem, busy, other_request
from nearcast.storage.pages import ENTERED
from nearcast.storage.store import Store

_encode = msgspec.msgpack.Encoder().encode


class Receipt(NamedTuple):
    """A message that is kept."""

    id: str
    sequence: int
    is_repeat: bool


class Answered(NamedTuple):
    """What is kept of a request with an idempotency key: a digest of its body, and its answer."""

    digest: bytes
    receipts: list[Receipt]


_decode_answered = msgspec.msgpack.Decoder(Answered).decode


class Applier:
    """Applies operations to engines; keeps count of sequences and numbers."""

    def __init__(self, store: Store, engines: Engines, limits: Limits) -> None:
        self._store, self._engines, self._limits = store, engines, limits
        self.sequence = store.sequence
        self._number = store.last_number()
        self._counts: dict[str, int] = {}

    def apply(self, operations: Sequence[Operation], now: float) -> Applied:
        """Let the engines work; nothing counts until `committed`."""
        work = Work(self._store, self._engines, self._limits, self.sequence, self._number, now, self._counts)
        work.tick()
        publishing: list[Publish] = []
        for operation in operations:
            if isinstance(operation, Publish):
                publishing.append(operation)
            else:
                work.change(operation)
        work.publish(publishing)
        self._number = work.number
        return work.finish()

    def committed(self, applied: Applied) -> None:
        self.sequence = applied.sequence


class Work(Changes):
    """One batch in the making, with its messages."""

    def publish(self, operations: Sequence[Publish]) -> None:
        """Keep and match the messages of all requests; ids and requests that came before are answered as before."""
        self._message_first = self._sequence + 1
        fresh: list[Posted] = []
        seen = self._known_ids(operations)
        requests: dict[tuple[str, str], Answered] = {}
        for operation in operations:
            key = operation.request_key
            if key is not None:
                known = requests.get(key[:2]) or self._known_request(key)
                if known is not None:
                    self._made.answers.append((operation, _again(key, known)))
                    continue
            receipts = [self._take(one, fresh, seen) for one in operation.posted]
            if key is not None:
                requests[key[:2]] = answered = Answered(key.digest, receipts)
                self._made.batch.requests.append((key.tenant, key.key, self._now, _encode(answered)))
            self._made.answers.append((operation, receipts))
        if fresh:
            self._match(fresh)

    def _known_request(self, key: RequestKey) -> Answered | None:
        found = self._store.find_request(key.tenant, key.key)
        return None if found is None else _decode_answered(found)

    def _known_ids(self, operations: Sequence[Publish]) -> dict[bytes, int]:
        keys = [id_key(one.tenant, one.id) for operation in operations for one in operation.posted if one.id is not None]
        return self._store.find_message_ids(keys) if keys else {}

    def _take(self, one: Posted, fresh: list[Posted], seen: dict[bytes, int]) -> Receipt:
        sequence = self._message_first + len(fresh)
        if one.id is None:
            fresh.append(one)
            return Receipt(given_id(sequence), sequence, False)
        key = id_key(one.tenant, one.id)
        known = seen.get(key)
        if known is not None:
            return Receipt(one.id, known, True)
        seen[key] = sequence
        self._made.batch.message_ids.append((key, sequence))
        fresh.append(one)
        return Receipt(one.id, sequence, False)

    def _match(self, fresh: list[Posted]) -> None:
        first = self._message_first
        self._fresh = fresh
        self._texts = [text_of(one, first + at) for at, one in enumerate(fresh)]
        self._tenants = [one.tenant for one in fresh]
        self._sequence += len(fresh)
        self._events.append(self._engines.match(fresh, first))
        if self._engines.has_moving:
            arrived = self._engines.arrive(fresh, first, self._now)
            told = self._engines.presences.others(arrived, self._now, self._place_of)
            is_new = (told.kind == ENTERED) & (told.message >= first)
            self._events.append(at_their_messages(told.keep(is_new)))
            self._tell(told.keep(~is_new))
            self._made.has_changed_engines = True
        if self._engines.rankers:
            self._tell(self._engines.rank(fresh, first))
            self._made.has_changed_engines = True


def _again(key: RequestKey, known: Answered) -> list[Receipt] | Problem:
    if known.digest != key.digest:
        return other_request(key.key)
    return [one._replace(is_repeat=True) for one in known.receipts]


def check_live(engines: Engines, limits: Limits) -> None:
    """Raise Problem 429 when moving subscriptions would have to watch too many living messages."""
    if engines.n_living >= limits.live_messages:
        raise busy(f"{limits.live_messages} messages are alive, as many as this server watches; wait until some expire", 30)
