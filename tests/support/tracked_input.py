"""Small streams of moving subscriptions: batches of raw rows, often late or at one time, and the changes of one process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Region, region
from nearcast.model.subscription import Subscription
from nearcast.testing.scenarios.moving import translated
from nearcast.testing.scenarios.worlds import WorldMaker

Change = tuple[int, Id, Id, int]
"""Tick, subscription, message, +1 or -1."""
_BOX = ("x0", "y0", "x1", "y1")


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Rows of the three sources, in no order."""

    changes: pa.Table
    moves: pa.Table
    messages: pa.Table


class TrackMaker:
    """Batches of one seed. Times are few, so that many rows have the same; some are late, some have none."""

    def __init__(self, seed: int, n_subscriptions: int = 24, most: int = 24, space: str | None = None) -> None:
        self.draw = np.random.default_rng(seed)
        self.space = space or ("plane", "lonlat")[seed % 2]
        self._world = WorldMaker(self.draw, self.space)
        self._n, self._most = n_subscriptions, most
        self._time = 0.0
        self._where: dict[Id, Region | None] = {}
        self._sent: list[Id] = []

    def batch(self) -> RawBatch:
        """The first brings subscriptions; later ones replace, add and forget some."""
        self._time += float(self.draw.integers(0, 4))
        changes = self._changes()
        return RawBatch(changes, self._moves(), self._messages())

    def _changes(self) -> pa.Table:
        known = list(self._where)
        new = [self._world.new_id("s") for _ in range(self._count(self._n // 4) if known else self._n)]
        again, gone = self._some(known, 0.15), self._some(known, 0.1)
        rows = [self._subscription(id) for id in [*new, *again]]
        rows += [{"id": id, "change": -1, "time": self._when(0.5)} for id in gone]
        kinds = {
            "id": self._id_kind,
            "keywords": pa.list_(self._word_kind),
            "interest": pa.string(),
            "region": pa.string(),
            **dict.fromkeys(_BOX, pa.float64()),
            "change": pa.int8(),
            "time": pa.float64(),
        }
        return _table(rows, kinds)

    def _subscription(self, id: Id) -> dict[str, Any]:
        made = self._world.subscription(id)
        self._where[id] = made.region
        keywords = {"interest": made.interest.text} if made.interest is not None else {"keywords": list(made.keywords)}
        return {"id": id, "change": 1, "time": self._when(0.5), **keywords, **_location(made.region)}

    def _moves(self) -> pa.Table:
        known = [*self._where, self._world.new_id("nobody")]
        ids = [known[at] for at in self.draw.integers(0, len(known), self._count(self._most)).tolist()]
        rows = [{"id": id, "time": self._when(0.05), **_location(self._next_region(id))} for id in ids]
        kinds = {"id": self._id_kind, "region": pa.string(), **dict.fromkeys(_BOX, pa.float64()), "time": pa.float64()}
        return _table(rows, kinds)

    def _next_region(self, id: Id) -> Region:
        region = self._where.get(id)
        if region is not None and self.draw.random() < 0.7:
            dx, dy = (float(d) * self._world.step for d in self.draw.integers(-2, 3, 2).tolist())
            moved = translated(region, dx, dy)
            if self.space == "plane" or _is_on_earth(moved):
                self._where[id] = moved
                return moved
        region = self._world.region() or _spot(self._world.point())
        self._where[id] = region
        return region

    def _messages(self) -> pa.Table:
        rows = []
        for _ in range(self._count(self._most)):
            again = self._sent and self.draw.random() < 0.15
            id = self._sent[int(self.draw.integers(len(self._sent)))] if again else self._world.new_id("m")
            self._sent.append(id)
            drawn, time = self._world.message(id), self._when(0.1)
            life = float(self.draw.integers(1, 9)) / 2
            ends = None if self.draw.random() < 0.2 else (self._time if time is None else time) + life
            box = dict(zip(_BOX, drawn.box.bounds, strict=True))
            rows.append({"id": id, "keywords": list(drawn.keywords or ()), **box, "time": time, "expires": ends})
        kinds = {"id": self._id_kind, "keywords": pa.list_(self._word_kind), **dict.fromkeys(_BOX, pa.float64())}
        return _table(rows, {**kinds, "time": pa.float64(), "expires": pa.float64()})

    def _when(self, share_without: float) -> float | None:
        """A time near now, often one that other rows have too; seldom long ago."""
        if self.draw.random() < share_without:
            return None
        return self._time + float(self.draw.integers(-4 if self.draw.random() < 0.2 else 0, 7)) / 2

    def _count(self, most: int) -> int:
        return int(self.draw.integers(0, most + 1))

    def _some(self, ids: Sequence[Id], share: float) -> list[Id]:
        return [id for id, drawn in zip(ids, self.draw.random(len(ids)).tolist(), strict=True) if drawn < share]

    @property
    def _id_kind(self) -> pa.DataType:
        return pa.string() if self._world.has_text_ids else pa.int64()

    @property
    def _word_kind(self) -> pa.DataType:
        return pa.int32() if self._world.has_numbers else pa.string()


class TrackingEngine(Protocol):
    """What `MovingMatcher` and `MovingOracle` have in common."""

    @property
    def subscribe(self) -> Callable[..., Any]: ...

    @property
    def unsubscribe(self) -> Callable[..., Any]: ...

    @property
    def move(self) -> Callable[..., Any]: ...

    @property
    def publish(self) -> Callable[..., Any]: ...

    @property
    def advance(self) -> Callable[..., Any]: ...


class OneProcess:
    """The changes that one engine reports for the batches of a stream. Defines the order of rows, in plain Python."""

    def __init__(self, engine: TrackingEngine, space: str, tick_seconds: float, lifetime: float = 0.0) -> None:
        self.engine, self.space = engine, space
        self._tick_seconds, self._lifetime = tick_seconds, lifetime
        self._tick, self._now = 0, -math.inf
        self._seen: dict[Id, float] = {}

    def take(self, batch: RawBatch) -> list[Change]:
        changes = self._change(batch.changes.to_pylist())
        moves, messages = batch.moves.to_pylist(), batch.messages.to_pylist()
        times = [row["time"] for row in (*moves, *messages) if row["time"] is not None]
        last = max([self._now, *times])
        slots: dict[float, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
        for kind, rows in enumerate((moves, messages)):
            rows.sort(key=_order)
            for row in rows:
                row["at"] = max(self._now, last if row["time"] is None else row["time"])
                slot = math.floor(row["at"] / self._tick_seconds) if self._tick_seconds and last > -math.inf else row["at"]
                slots.setdefault(slot, ([], []))[kind].append(row)
        for _, (moved, sent) in sorted(slots.items(), key=lambda item: item[0]):
            if moved:
                changes += self._move(moved)
            if sent:
                changes += self._publish(sent)
        return sorted(changes)

    def _change(self, rows: list[dict[str, Any]]) -> list[Change]:
        if not rows:
            return []
        rows.sort(key=lambda row: (math.inf if row["time"] is None else row["time"], row["change"]))
        latest = {row["id"]: row for row in rows}
        put = [row for row in latest.values() if row["change"] > 0]
        gone = [row["id"] for row in latest.values() if row["change"] < 0]
        self.engine.unsubscribe(gone)
        for id in latest:
            self._seen.pop(id, None)
        self._seen.update({row["id"]: row["time"] for row in put if row["time"] is not None})
        keywords = [
            {"interest": row["interest"]} if row["interest"] is not None else {"keywords": row["keywords"]} for row in put
        ]
        subscriptions = [
            Subscription(row["id"], region=_region(row, self.space), **words) for row, words in zip(put, keywords, strict=True)
        ]
        return self._changes_of_tick(self.engine.subscribe(subscriptions))

    def _move(self, rows: list[dict[str, Any]]) -> list[Change]:
        self._now = max(self._now, *(row["at"] for row in rows))
        expired = list(self.engine.advance(self._now)) if math.isfinite(self._now) else []
        moves = {}
        for row in rows:
            id, time = row["id"], row["time"]
            if time is None or time >= self._seen.get(id, -math.inf):
                moves[id] = _region(row, self.space)
                if time is not None:
                    self._seen[id] = time
        return self._changes_of_tick([*expired, *self.engine.move(moves)])

    def _publish(self, rows: list[dict[str, Any]]) -> list[Change]:
        messages = []
        for row in rows:
            ends = row["expires"]
            if ends is None and self._lifetime:
                ends = (row["at"] if row["time"] is None else row["time"]) + self._lifetime
            box = Box(*(row[side] for side in _BOX))
            messages.append(Message(row["id"], keywords=row["keywords"], location=box, time=row["time"], expires=ends))
        self._now = max(self._now, *(row["at"] for row in rows))
        return self._changes_of_tick(self.engine.publish(messages))

    def _changes_of_tick(self, changes: Sequence[Any]) -> list[Change]:
        self._tick += 1
        return [(self._tick - 1, one.subscription_id, one.message_id, one.change) for one in changes]


def rows_of(changes: pa.Table) -> list[Change]:
    """The changes of a table."""
    columns = (changes[name].to_pylist() for name in ("tick", "subscription_id", "message_id", "change"))
    return list(zip(*columns, strict=True))


def _order(row: dict[str, Any]) -> tuple[float, Id, str]:
    """By time and id; rows that have both in common, by their other values."""
    return (math.inf if row["time"] is None else row["time"], row["id"], json.dumps(row, sort_keys=True))


def _table(rows: Sequence[dict[str, Any]], kinds: dict[str, pa.DataType]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=pa.schema(kinds))


def _location(region: Region | None) -> dict[str, Any]:
    if region is None:
        return {}
    if isinstance(region, Box):
        return dict(zip(_BOX, region.bounds, strict=True))
    return {"region": json.dumps(region.__geo_interface__)}


def _region(row: dict[str, Any], space: str) -> Region | None:
    if row["region"] is not None:
        return region(row["region"], space)
    return None if row["x0"] is None else Box(*(row[side] for side in _BOX))


def _spot(point: tuple[float, float]) -> Box:
    return Box(*point, *point)


def _is_on_earth(region: Region) -> bool:
    try:
        region.check("lonlat")
    except ValueError:
        return False
    return True
