"""nearcast itself, one thread: the default engine, asked as everybody asks it."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.peers.peer import Peer
from nearcast.boolean.engine import Matcher


class Ours(Peer):
    """Table to table; reading and encoding the messages is in its time."""

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        self._matcher = Matcher("auto", "plane", history=history)
        self._matcher.subscribe_table(subscriptions)

    def match(self, messages: pa.Table) -> pa.Table:
        return self._matcher.match_table(messages, threads=1)

    @property
    def n_bytes(self) -> int:
        return int(self._matcher.stats()["bytes"])
