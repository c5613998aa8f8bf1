"""What waits for the writer: checked requests, each with the future of its answer."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from nearcast.service.caller import Caller
from nearcast.service.intake.messages import Posted
from nearcast.service.intake.subscriptions import Checked
from nearcast.storage.batch import Batch
from nearcast.wire.api import MoveIn


@dataclass(slots=True, eq=False)
class Operation:
    """`answer` is resolved on the event loop when the commit that holds it is on disk."""

    answer: asyncio.Future[Any] = field(init=False)
    n_bytes: int = field(default=0, kw_only=True)
    """Of the request, if it may be large."""

    @property
    def n_lines(self) -> int:
        """The messages or changes it holds."""
        return 1


@dataclass(slots=True, eq=False)
class PutSubscriptions(Operation):
    """Answer: a list of (row, is new) or Problem."""

    caller: Caller
    checked: Sequence[Checked]

    @property
    def n_lines(self) -> int:
        return len(self.checked)


@dataclass(slots=True, eq=False)
class EndSubscription(Operation):
    """Answer: None or Problem."""

    caller: Caller
    id: str


@dataclass(slots=True, eq=False)
class PauseSubscription(Operation):
    """Let it hear nothing, or go on. Answer: its row or Problem."""

    caller: Caller
    id: str
    is_paused: bool


@dataclass(slots=True, eq=False)
class Move(Operation):
    """Answer: a list of MoveResult or Problem."""

    caller: Caller
    moves: Sequence[MoveIn]

    @property
    def n_lines(self) -> int:
        return len(self.moves)


class RequestKey(NamedTuple):
    """An idempotency key, and what it was first used for."""

    tenant: str
    key: str
    digest: bytes

    @classmethod
    def of(cls, tenant: str, key: str | None, body: bytes) -> Self | None:
        return None if key is None else cls(tenant, key, hashlib.blake2b(body, digest_size=16).digest())


@dataclass(slots=True, eq=False)
class Publish(Operation):
    """Answer: a list of Receipt or Problem. A request whose key is known is answered as it was the first time."""

    posted: Sequence[Posted]
    request_key: RequestKey | None = None

    @property
    def n_lines(self) -> int:
        return len(self.posted)


FOR_PIPELINE = (PutSubscriptions, EndSubscription, PauseSubscription, Publish)
"""What a gateway hands on."""


@dataclass(slots=True, eq=False)
class TakeDeliveries(Operation):
    """What a pipeline found: (number of the subscription, sequence of the message). Answer: None. `batch` goes with it."""

    pairs: Sequence[tuple[int, int]]
    batch: Batch

    @property
    def n_lines(self) -> int:
        return len(self.pairs)


@dataclass(slots=True, eq=False)
class Keep(Operation):
    """Small things that only go to the store. Answer: None."""

    batch: Batch
