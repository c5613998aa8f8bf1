"""What every workload offers: a stream of messages, a history before it, subscriptions, and the words behind keyword ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from nearcast.errors import WorkloadError
from nearcast.workloads.tables import keywords_as_words

Space = Literal["plane", "lonlat"]
HISTORY_SHARE = 0.05


class Workload(ABC):
    """A frozen dataclass whose fields are the parameters; equal parameters give equal tables.

    Messages have the columns `id`, `keywords`, `x`, `y` (or `x0`, `y0`, `x1`, `y1`) and `time`; subscriptions `id`, `keywords`,
    `x0`, `y0`, `x1`, `y1`. Keywords are ids of the workload's own word space unless the workload says otherwise.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    space: ClassVar[Space]

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """How many words there are."""

    @property
    @abstractmethod
    def words(self) -> pa.Array:
        """The word of every keyword id, all distinct."""

    @abstractmethod
    def messages(self, n: int, seed: int = 1) -> pa.Table:
        """The stream: `n` messages of the last 95 % of the pool, in time order; `seed` says where it starts."""

    @abstractmethod
    def history(self, n: int) -> pa.Table:
        """The first `n` messages of the first 5 % of the pool."""

    @abstractmethod
    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        """`n` subscriptions with ids 0 ... n - 1; a larger `n` keeps the earlier ones."""

    def word(self, keyword: int) -> str:
        """The word behind a keyword id."""
        if not 0 <= keyword < self.vocabulary_size:
            raise WorkloadError(f"keyword {keyword!r} is not an id of {self.name}; ids go from 0 to {self.vocabulary_size - 1}")
        return str(self.words[keyword].as_py())

    def with_words(self, table: pa.Table) -> pa.Table:
        """The same table with words (list<string>) in place of keyword ids."""
        return keywords_as_words(table, self.words)

    def describe(self) -> dict[str, Any]:
        """Name, space, vocabulary size and every parameter: what a report must state."""
        parameters: dict[str, Any] = (
            {field.name: getattr(self, field.name) for field in fields(self)} if is_dataclass(self) else {}
        )
        return {"name": self.name, "space": self.space, "vocabulary_size": self.vocabulary_size, **parameters}
