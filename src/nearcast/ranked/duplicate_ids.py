"""Messages whose id is that of a message still in the window when they arrive."""

from __future__ import annotations

import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.ranking import Ranking
from nearcast.ranked.reading import ReadArrivals
from nearcast.ranked.thread_shards import ShardedRanking


def reject_living(read: ReadArrivals, window: CountWindow | TimeWindow, ranking: Ranking | ShardedRanking) -> None:
    """Reject them, and messages with ids of another kind than those before."""
    known_ids, ids = ranking.window.ids, read.messages.ids
    if len(ids) == 0:
        return
    if known_ids.kind is not None and (known_ids.kind == "string") != pa.types.is_string(ids.type):
        reason = "the id is of another kind than the ids of the messages before it: keep to one kind"
        read.reject(dict.fromkeys(range(len(ids)), reason))
        return
    known = ranking.window.numbers_of(ids)
    if (known < 0).all() and len(ids.unique()) == len(ids):
        return
    read.reject(_repeated(ids.to_pylist(), known.tolist(), read.messages.time.tolist(), window, ranking))


def _repeated(
    ids: list[Id], known: list[int], times: list[float], window: CountWindow | TimeWindow, ranking: Ranking | ShardedRanking
) -> dict[int, str]:
    """Which messages of a batch come while one of their id is alive, tick by tick."""
    alive_since: dict[Id, tuple[int, float]] = {}
    layout, base = ranking.window.layout(), ranking.window.base
    reasons: dict[int, str] = {}
    tick, now = ranking.tick, ranking.now
    for at, (id, number, time) in enumerate(zip(ids, known, times, strict=True)):
        if id not in alive_since and number >= 0:
            alive_since[id] = (number, float(layout.time[number - base]))
        held = alive_since.get(id)
        if held is not None and (
            window.is_alive(held[0], tick) if isinstance(window, CountWindow) else window.is_alive(held[1], now)
        ):
            reasons[at] = f"a message with the id {id!r} is still in the window; give each message an id of its own"
            continue
        tick, now = tick + 1, max(now, time)
        alive_since[id] = (tick, time)
    return reasons
