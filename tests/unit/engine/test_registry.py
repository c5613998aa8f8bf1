"""What all indexes share: scratch stamps, growing output, the side buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.boolean.scan import Scan
from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work, grouped
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import KINDS, Parameters, indexes
from nearcast.kernels.layouts import CANDIDATES, MessageArrays, Output
from nearcast.papers.boolean.buffered import BufferedIndex


def test_marks_never_repeat_until_the_stamps_start_anew() -> None:
    stamps = Stamps()
    first, mark = stamps.take(10, 5)
    assert mark == 0
    again, mark = stamps.take(8, 5)
    assert mark == 5
    assert again is first
    wider, mark = stamps.take(11, 5)
    assert (len(wider), mark) == (20, 0)
    stamps._last_mark = np.iinfo(np.int32).max - 3
    fresh, mark = stamps.take(11, 5)
    assert mark == 0
    assert not fresh.any()


def test_a_kernel_that_runs_out_of_room_is_called_again_from_where_it_stopped() -> None:
    calls = []

    def match_from(first: int, n_out: int, output: Output) -> tuple[int, int]:
        calls.append((first, n_out, len(output.message)))
        output.counters[CANDIDATES] += 1
        return (2, 3000) if len(calls) == 1 else (5, 3001)

    groups, work = run_until_it_fits(5, match_from)
    assert calls == [(0, 0, 4096), (2, 3000, 8192)]
    assert (len(groups.member), work.candidates, work.nodes) == (3001, 2, 0)


def test_names_and_aliases_of_indexes_are_distinct() -> None:
    names = [name for kind in KINDS for info in indexes(kind).values() for name in (info.name, *info.aliases)]
    assert len(set(names)) == len(names)


class BufferedScan(BufferedIndex):
    """The smallest structure that is only built whole: the list of its slots."""

    name = "buffered_scan"

    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        self.slots = slots

    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        groups, _ = Scan(Parameters()).match(clauses, messages)
        message, clause = groups.pairs()
        is_built = np.isin(clause, self.slots)
        return grouped(message[is_built], clause[is_built], len(messages)), Work(1, len(self.slots))

    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return ["built"]

    def built_arrays(self) -> dict[str, NDArray[Any]]:
        return {"slots": self.slots}

    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.slots = arrays["slots"]


def batch(subscriptions: range) -> ClauseBatch:
    n = len(subscriptions)
    low, high, starts = np.zeros(n), np.ones(n), np.arange(n + 1, dtype=np.int64)
    return ClauseBatch(np.array(subscriptions, np.int32), starts, np.zeros(n, np.int32), low, low, high, high)


@pytest.fixture
def messages() -> MessageBatch:
    place = np.full(2, 0.5)
    return MessageBatch(MessageArrays(np.arange(3), np.zeros(2, np.int32), place, place, place, place), np.arange(2), 1)


def test_new_clauses_wait_in_a_buffer_until_a_rebuild(messages: MessageBatch) -> None:
    store, index = ClauseStore(), BufferedScan(Parameters())
    store.add(batch(range(10)))
    index.build(store)
    index.insert(store, store.add(batch(range(10, 40))))
    assert index.stats()["buffered"] == 30
    groups, _ = index.match(store, messages)
    message, clause = groups.pairs()
    assert message.tolist() == sorted(message.tolist())
    assert sorted(clause[message == 0].tolist()) == list(range(40))
    assert index.explain(store, messages, 3) == ["built"]
    assert index.explain(store, messages, 39)[0].startswith("buffer of 30")

    again = BufferedScan(Parameters())
    again.restore(index.arrays())
    assert again.match(store, messages)[0].n_pairs == 80

    index.delete(store, store.remove(np.array([3, 39], np.int32)))
    assert index.stats()["buffered"] == 29
    assert index.match(store, messages)[0].n_pairs == 2 * 38
    index.insert(store, store.add(batch(range(40, 80))))
    assert index.stats()["buffered"] == 0
    assert sorted(index.match(store, messages)[0].pairs()[1][:78].tolist()) == [i for i in range(80) if i not in (3, 39)]


def test_an_index_without_merges_wants_none() -> None:
    store, index = ClauseStore(), Scan(Scan.parameters_class())
    assert not index.wants_merge
    with pytest.raises(NotImplementedError, match="scan has nothing to merge"):
        index.begin_merge(store)
    with pytest.raises(NotImplementedError, match="scan has nothing to merge"):
        index.finish_merge(store, None)
