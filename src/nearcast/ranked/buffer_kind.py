"""How many messages a result buffer holds beyond the best k: what every kind of buffer says, and the kind above a floor."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from nearcast.errors import IndexParameterError
from nearcast.ranked.kernels.list_layout import kept_of


@dataclass(frozen=True, slots=True)
class BufferKind(ABC):
    """What a subscription asks of the window when its buffer is filled, and what it keeps when the buffer is full."""

    name: ClassVar[str]
    summary: ClassVar[str]
    is_banded: ClassVar[bool] = True
    """Whether messages that can never be among the best k are left out."""

    @abstractmethod
    def wanted(self, k: int) -> int:
        """How many of the best messages a filling asks for."""

    @abstractmethod
    def room(self, k: int) -> int:
        """How many messages a buffer may hold; more than `kept`."""

    @abstractmethod
    def kept(self, k: int) -> int:
        """How many a full buffer keeps, at least k."""

    @property
    def least_share(self) -> float:
        """Of the messages found, those beyond the k-th go into the buffer that have this share of its score."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "parameters": asdict(self)}


@dataclass(frozen=True, slots=True)
class Floor(BufferKind):
    """All messages above a floor, which is set by rank and rises when there are too many; those that are over stay a while.

    `spare`: room beyond k, in square roots of k.
    """

    name = "floor"
    summary = (
        "all messages above a floor, whether or not they can still be among the best; the fastest, for indexes that find ahead"
    )
    is_banded = False
    spare: float = 9.4

    def __post_init__(self) -> None:
        if not 0 <= self.spare <= 1000:
            raise IndexParameterError(f"spare={self.spare!r} is not possible; expected a number from 0 to 1000")

    def wanted(self, k: int) -> int:
        return int(kept_of(k, self.room(k)))

    def room(self, k: int) -> int:
        return k + 2 + int(self.spare * math.sqrt(k))

    def kept(self, k: int) -> int:
        return self.wanted(k)
