"""When each subscription was last seen where it is: a position that is older than that is late, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from nearcast.model.inputs import Id


class LastTimes:
    """Times of subscriptions, of those that have one."""

    def __init__(self) -> None:
        self._times: dict[Id, float] = {}

    @classmethod
    def from_table(cls, table: pa.Table) -> LastTimes:
        times = cls()
        times._times = dict(zip(table["id"].to_pylist(), table["time"].to_pylist(), strict=True))
        return times

    def to_table(self) -> pa.Table:
        kind = pa.string() if isinstance(next(iter(self._times), 0), str) else pa.int64()
        return pa.table({"id": pa.array(list(self._times), kind), "time": pa.array(list(self._times.values()), pa.float64())})

    def take_over(self, others: LastTimes, ids: pa.Array) -> None:
        """Learn the times of some subscriptions from others."""
        self._times.update({id: others._times[id] for id in ids.to_pylist() if id in others._times})

    def forget(self, ids: Iterable[Id]) -> None:
        for id in ids:
            self._times.pop(id, None)

    def replace(self, put: pa.Table) -> None:
        """Subscriptions are filed: at a time, or at none."""
        for id, time in zip(put["id"].to_pylist(), put["time"].to_pylist(), strict=True):
            if time is None:
                self._times.pop(id, None)
            else:
                self._times[id] = time

    def without_late(self, moves: pa.Table) -> pa.Table:
        """Moves that are not older than where their subscriptions are; one without a time never is."""
        seen, times = self._times, moves["time"].to_pylist()
        is_kept = [time is None or time >= seen.get(id, time) for id, time in zip(moves["id"].to_pylist(), times, strict=True)]
        return moves if all(is_kept) else moves.filter(pa.array(is_kept, pa.bool_()))

    def note(self, moves: pa.Table, without: set[int]) -> None:
        """Subscriptions have moved, by time; but for some rows."""
        for row, (id, time) in enumerate(zip(moves["id"].to_pylist(), moves["time"].to_pylist(), strict=True)):
            if time is not None and row not in without:
                self._times[id] = time
