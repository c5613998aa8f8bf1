"""Skip summaries: groups of pages, and groups of those, with the union of the subscriptions they reach."""

from __future__ import annotations

from collections.abc import Iterator

from pyroaring import BitMap

from nearcast.storage.database import Database
from nearcast.storage.pages import Page

_FANOUT = 64
_LEVELS = (1, 2)
_PAGE = "first, last, time, messages, reached, events"
_AT_ONCE = 16


class _Open:
    """The group of a level that is still being filled."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.first, self.last, self.n, self.reached = 0, 0, 0, BitMap()

    def add(self, first: int, last: int, reached: BitMap) -> None:
        self.first, self.last, self.n = self.first or first, last, self.n + 1
        self.reached |= reached


class PageGroups:
    """Fills groups as pages come; `add` follows the commit that kept what `rows_with` gave."""

    def __init__(self) -> None:
        self._open = {level: _Open() for level in _LEVELS}

    def load(self, database: Database) -> None:
        """Take up the open groups where the store has them."""
        for group in self._open.values():
            group.clear()
        grouped = _last_grouped(database, 1)
        for first, last, reached in database.rows(
            "SELECT first, last, reached FROM pages WHERE first > ? ORDER BY first", (grouped,)
        ):
            self._open[1].add(first, last, BitMap.deserialize(bytes(reached)))
        for first, last, reached in database.rows(
            "SELECT first, last, reached FROM page_groups WHERE level = 1 AND first > ? ORDER BY first",
            (_last_grouped(database, 2),),
        ):
            self._open[2].add(first, last, BitMap.deserialize(bytes(reached)))

    def rows_with(self, page: Page) -> Iterator[tuple[int, int, int, bytes]]:
        """Rows of the groups that this page would fill."""
        first, last, reached = page.first, page.last, page.reached
        for level in _LEVELS:
            group = self._open[level]
            if group.n + 1 < _FANOUT:
                return
            first, last, reached = group.first or first, last, group.reached | reached
            yield level, first, last, reached.serialize()

    def add(self, page: Page) -> None:
        first, last, reached = page.first, page.last, page.reached
        for level in _LEVELS:
            group = self._open[level]
            group.add(first, last, reached)
            if group.n < _FANOUT:
                return
            first, last, reached = group.first, group.last, group.reached
            group.clear()

    def next_page(self, database: Database, numbers: BitMap, after: int, up_to: int) -> Page | None:
        """The first page with sequences in after < s <= up_to that reaches one of the subscriptions."""
        while after < up_to:
            skipped = self._skip(database, numbers, after)
            if skipped > after:
                after = skipped
                continue
            # A group (or its open end) that has something, or may have: look at its pages.
            rows = database.rows(
                "SELECT first, last, reached FROM pages WHERE last > ? AND first >= "
                "(SELECT coalesce(max(first), 0) FROM pages WHERE first <= ?) ORDER BY first LIMIT ?",
                (after, after + 1, _AT_ONCE),
            )
            if not rows:
                return None
            for row in rows:
                if row[0] > up_to:
                    return None
                if BitMap.deserialize(bytes(row[2])).intersect(numbers):
                    whole = database.rows(f"SELECT {_PAGE} FROM pages WHERE first = ?", (row[0],))
                    return Page.read(*whole[0]) if whole else None
                after = row[1]
        return None

    def _skip(self, database: Database, numbers: BitMap, after: int) -> int:
        """How far whole groups that begin right after `after` can be left out."""
        for level in reversed(_LEVELS):
            rows = database.rows(
                "SELECT first, last, reached FROM page_groups WHERE level = ? AND last > ? AND first >= "
                "(SELECT coalesce(max(first), 0) FROM page_groups WHERE level = ? AND first <= ?) ORDER BY first LIMIT 1",
                (level, after, level, after + 1),
            )
            for _, last, reached in rows:
                # What is left of a group that began before `after` is in its union too.
                if not BitMap.deserialize(bytes(reached)).intersect(numbers):
                    return int(last)
        return after


def _last_grouped(database: Database, level: int) -> int:
    rows = database.rows("SELECT max(last) FROM page_groups WHERE level = ?", (level,))
    return int(rows[0][0] or 0)
