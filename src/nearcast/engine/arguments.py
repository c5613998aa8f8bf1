"""What is given as several things, as a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nearcast.errors import NearcastError


def listed(items: Any, expected: type | tuple[type, ...], what: str) -> Sequence[Any]:
    """The items as a list or tuple; NearcastError for a single one, which is an easy mistake."""
    single = (*(expected if isinstance(expected, tuple) else (expected,)), str, bytes)
    if isinstance(items, single) or not isinstance(items, Iterable):
        raise NearcastError(f"{what} were given as {items!r}; expected a list of them: use [...]")
    return items if isinstance(items, list | tuple) else list(items)
