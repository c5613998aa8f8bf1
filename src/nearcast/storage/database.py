"""One door to both databases: run SQL, in a transaction or reading; with `?` for values in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Transaction(Protocol):
    """Statements that count together or not at all."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> None: ...

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]: ...


class Database(Protocol):
    """SQLite or PostgreSQL. `writing` is used by one thread at a time; reading by any."""

    name: str

    def migrate(self) -> None:
        """Make or bring up to date the tables; raises StoreError if a newer version made them."""
        ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is on disk when the block ends without an error."""
        ...

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]: ...

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """As `rows`, for results larger than memory should hold."""
        ...

    def one_moment(self) -> AbstractContextManager[None]:
        """Within, what this thread reads is of one moment."""
        ...

    def n_bytes(self) -> int: ...

    def close(self) -> None: ...


def any_of(column: str, n: int) -> str:
    """A condition with n values."""
    return f"{column} IN ({','.join('?' * n)})"
