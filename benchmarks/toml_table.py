"""A TOML table that is read key by key: a missing, mistyped or unread key is an error that names the file and the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nearcast.errors import PlanError


class TomlTable:
    """Takes keys out of a table; `nothing_left` is an error if keys were never taken."""

    def __init__(self, content: Mapping[str, Any], file: str, path: str = "") -> None:
        self._left = dict(content)
        self._file = file
        self._path = path

    def problem(self, complaint: str) -> PlanError:
        return PlanError(f"{self._file}: {f'[{self._path}]' if self._path else 'the plan'} {complaint}")

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._take(key, str, "a text", default))

    def count(self, key: str, default: int | None = None) -> int:
        value = int(self._take(key, int, "a whole number", default))
        if value < 0:
            raise self.problem(f"has {key} = {value}; expected 0 or more")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        return float(self._take(key, (int, float), "a number", default))

    def flag(self, key: str, default: bool) -> bool:
        value = self._left.pop(key, default)
        if not isinstance(value, bool):
            raise self.problem(f"has {self._below(key)} = {value!r}; expected true or false")
        return value

    def one_of(self, key: str, known: Sequence[str]) -> str:
        value = self.text(key)
        if value not in known:
            raise self.problem(f"has {key} = {value!r}; expected one of {', '.join(known)}")
        return value

    def values(self, key: str) -> list[Any]:
        values: list[Any] = self._take(key, list, "a list", None)
        if not values:
            raise self.problem(f"has an empty list {key!r}; give at least one value")
        return values

    def texts(self, key: str, default: Sequence[str]) -> list[str]:
        texts: list[str] = list(self._take(key, (list, tuple), "a list of texts", default))
        if not all(isinstance(text, str) for text in texts):
            raise self.problem(f"has {key} = {texts!r}; expected a list of texts")
        return texts

    def table(self, key: str, default: Mapping[str, Any] | None = None) -> TomlTable:
        return TomlTable(self._take(key, Mapping, "a table", default), self._file, self._below(key))

    def tables(self, key: str) -> dict[str, TomlTable]:
        tables = self._take(key, Mapping, "tables", None)
        return {name: TomlTable(tables, self._file, self._below(key)).table(name) for name in tables}

    def list_of_tables(self, key: str, default: list[Any] | None = None) -> list[TomlTable]:
        tables = self._take(key, list, "tables in double brackets", default)
        if not all(isinstance(table, Mapping) for table in tables):
            raise self.problem(f"has {key} = {tables!r}; expected tables: [[{key}]]")
        return [TomlTable(table, self._file, self._below(key)) for table in tables]

    def has(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str) -> Any:
        """A value of any type that is known to be there."""
        return self._left.pop(key)

    def rest(self) -> dict[str, Any]:
        """All keys that were not taken yet: parameters that are checked elsewhere."""
        left, self._left = self._left, {}
        return {key: tuple(value) if isinstance(value, list) else value for key, value in left.items()}

    def nothing_left(self) -> None:
        if self._left:
            shown = ", ".join(repr(self._below(key)) for key in self._left)
            raise self.problem(f"has unknown keys: {shown}; remove them or correct their spelling")

    def _take(self, key: str, kind: Any, expected: str, default: Any) -> Any:
        if key not in self._left:
            if default is None:
                raise self.problem(f"lacks the key {self._below(key)!r}; expected {expected}")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.problem(f"has {self._below(key)} = {value!r}; expected {expected}")
        return value

    def _below(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key
