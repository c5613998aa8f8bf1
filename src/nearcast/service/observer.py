"""Looking at everything a tenant has going on, for the eyes of an admin."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nearcast.model.regions import Box
from nearcast.service.commit.writer import Writer
from nearcast.service.inbox.inboxes import Inboxes
from nearcast.service.insight import Insight
from nearcast.service.intake.messages import message_out
from nearcast.service.metrics import Metrics
from nearcast.service.rates import Rates
from nearcast.storage.batch import Place
from nearcast.storage.store import Store
from nearcast.wire.api import MessageOut, RegionShape
from nearcast.wire.console import Cell, CellList, MovedOut, Pulse, Recipient, RecipientList

MOST_CELLS = 2000
_MOST_MESSAGES = 2000
_MOST_RECIPIENTS = 200
_MOST_MOVES = 2000
_read_region = msgspec.json.Decoder(RegionShape).decode


class Observer:
    """Everything here blocks: it is called in a reader's thread."""

    def __init__(self, store: Store, writer: Writer, inboxes: Inboxes, insight: Insight, metrics: Metrics) -> None:
        self._store, self._writer, self._inboxes, self._insight = store, writer, inboxes, insight
        self._rates = Rates(metrics)
        # The last moves, each with the sequence it was kept with: touched on the event loop, read anywhere.
        self._moves: dict[int, tuple[int, bytes]] = {}

    def note_moves(self, places: Sequence[Place], sequence: int) -> None:
        for place in places:
            self._moves.pop(place.number, None)
            self._moves[place.number] = (sequence, place.place)
        while len(self._moves) > _MOST_MOVES:
            del self._moves[next(iter(self._moves))]

    def pulse(self, tenant: str, after: int | None, is_operator: bool) -> Pulse:
        """The newest messages after a cursor that are still in memory: a page that was away does not need the others.

        Numbers of the whole server are for operators.
        """
        recent = self._inboxes.recent
        last = recent.last
        pages = recent.after(recent.since if after is None else max(after, recent.since)) or []
        found: list[MessageOut] = []
        for page in reversed(pages):
            for sequence in range(page.message_first + page.n_messages - 1, page.message_first - 1, -1):
                held = page.message(sequence)
                if held is not None and held[1] == tenant and sequence > (after or 0):
                    found.append(message_out(held[0]))
            if len(found) >= _MOST_MESSAGES:
                break
        moved = self._moved(tenant, last if after is None else after)
        return Pulse(str(last), found[:_MOST_MESSAGES][::-1], moved, self._system() if is_operator else {})

    def _moved(self, tenant: str, after: int) -> list[MovedOut]:
        moves = {number: place for number, (sequence, place) in list(self._moves.items()) if sequence > after}
        rows = self._store.subscriptions_of([*moves])
        return [MovedOut(row.id, _read_region(moves[row.number])) for row in rows if row.tenant == tenant]

    def _system(self) -> dict[str, float]:
        sizes = self._writer.engines.matcher.stats()
        return {
            **self._rates.now(),
            "queued": float(self._writer.n_pending),
            "memory_mb": _memory_mb(),
            "connections": float(self._inboxes.n_open),
            "late_subscriptions": float(sizes.get("late", 0)),
        }

    def cells(self, box: Box) -> CellList:
        """Of the index of boolean subscriptions."""
        table = self._writer.engines.matcher.cells(box, MOST_CELLS)
        columns = (table[name].to_pylist() for name in ("x0", "y0", "x1", "y1", "level", "load"))
        return CellList([Cell([x0, y0, x1, y1], level, load) for x0, y0, x1, y1, level, load in zip(*columns, strict=True)])

    def recipients(self, tenant: str, id: str) -> RecipientList:
        """Those the message reached when it came; who moved to it later is not among them."""
        sequence, _ = self._insight.kept(tenant, id)
        page = self._inboxes.recent.page_with(sequence) or self._store.page_with(sequence)
        numbers = [] if page is None else page.reached_by(sequence)
        rows = self._store.subscriptions_of(numbers[:_MOST_RECIPIENTS])
        return RecipientList(len(numbers), [Recipient(row.id, row.subscriber) for row in rows])


def _memory_mb() -> float:
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1e3
