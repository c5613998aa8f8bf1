"""What the console is told. These bodies may change with the page; the API proper is in `wire.api`."""

from __future__ import annotations

from msgspec import Struct

from nearcast.wire.api import MessageOut, RegionShape


class MovedOut(Struct):
    """Where a moving subscription is now."""

    subscription: str
    region: RegionShape


class Pulse(Struct):
    """Messages after a cursor, oldest first, who moved since, and how the server is doing: numbers by name."""

    cursor: str
    messages: list[MessageOut]
    moved: list[MovedOut]
    system: dict[str, float]


class Cell(Struct):
    """A part of the world by which the index keeps subscriptions, and how many it keeps there."""

    bbox: list[float]
    level: int
    load: int


class CellList(Struct):
    """The fullest cells under a view."""

    cells: list[Cell]


class Recipient(Struct):
    subscription: str
    subscriber: str


class RecipientList(Struct):
    """Who got a message when it came; `n` counts all of them."""

    n: int
    recipients: list[Recipient]
