"""The store of live messages: slots, keywords, the clock, saving."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.columns.identifiers import id_array
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays
from nearcast.moving.kernels.live_messages import ABSENT
from nearcast.moving.live_messages import LiveMessages


def batch_of(sets: list[list[int]], x: list[float]) -> MessageBatch:
    start = np.cumsum([0, *(len(words) for words in sets)]).astype(np.int64)
    keyword = np.array([word for words in sets for word in words], np.int32)
    side = np.array(x, np.float64)
    return MessageBatch(MessageArrays(start, keyword, side, side, side, side), np.arange(len(x)), 100)


def words_at(store: LiveMessages, slot: int) -> list[int]:
    layout = store.layout()
    first = int(layout.keyword_first[slot])
    return [int(word) for word in layout.keyword[first : first + int(layout.n_keywords[slot])]]


def test_messages_die_in_the_order_of_their_times() -> None:
    store = LiveMessages()
    rng = np.random.default_rng(1)
    expires = rng.permutation(200).astype(np.float64)
    slots = store.add(pa.array(range(200)), batch_of([[i] for i in range(200)], [0.0] * 200), expires)
    for now in (-5.0, 0.0, 17.5, 100.0, 100.0, 50.0, 198.0, 1e9):
        store.expire(now)
        alive = {int(slot) for slot, end in zip(slots, expires, strict=True) if end > store.now}
        assert set(store.slots().tolist()) == alive
        assert store.n_alive == len(alive)
    assert store.n_dead == 200
    assert store.ids.find(pa.array([3])).tolist() == [ABSENT]


def test_an_empty_store_has_columns_of_the_same_types() -> None:
    # Kernels are compiled once.
    store = LiveMessages()
    before = [array.dtype for array in store.layout()]
    store.add(pa.array([1]), batch_of([[3]], [0.0]), np.array([5.0]))
    assert [array.dtype for array in store.layout()] == before


def test_slots_and_words_are_used_again_after_release() -> None:
    store = LiveMessages()
    for round_ in range(30):
        sets = [list(range(i % 7)) for i in range(40)]
        ids = [round_ * 40 + i for i in range(40)]
        slots = store.add(pa.array(ids), batch_of(sets, [float(i) for i in range(40)]), np.full(40, round_ + 1.0))
        assert [words_at(store, slot) for slot in slots.tolist()] == sets
        assert store.ids.take(slots).to_pylist() == ids
        assert store.batch(slots, 100).arrays.keyword.tolist() == [word for words in sets for word in words]
        expired = store.expire(round_ + 1.0)
        assert store.ids.take(expired).to_pylist()
        store.release()
    assert store.n_slots == 40
    assert store.n_bytes < 100_000


@pytest.mark.parametrize("kind", ["int", "string"])
def test_saved_and_opened_is_the_same_store(kind: str) -> None:
    store = LiveMessages()
    ids: list[int | str] = [i if kind == "int" else f"é{i}" for i in range(9)]
    store.add(id_array(ids[:6]), batch_of([[i, 50] for i in range(6)], [0.0] * 6), np.array([1.0, 2, 3, np.inf, 5, 6]))
    store.expire(2.0)
    store.release()
    store.expire(3.0)
    again = LiveMessages.from_arrays(store.now, store.ids.kind, store.arrays())
    assert (again.n_alive, again.n_dead, again.now) == (3, 1, 3.0)
    assert again.ids.take(again.slots()).to_pylist() == ids[3:6]
    slots = again.add(id_array(ids[6:9]), batch_of([[7], [8], []], [1.0, 2.0, 3.0]), np.array([4.0, 5.0, np.inf]))
    assert sorted(slots.tolist()) == [0, 1, 6]
    assert [words_at(again, slot) for slot in slots.tolist()] == [[7], [8], []]
    assert set(again.ids.take(again.expire(5.0)).to_pylist()) == {ids[4], ids[6], ids[7]}
    assert again.ids.find(id_array([ids[3], ids[4]])).tolist() == [3, ABSENT]


def test_ids_of_another_kind_are_rejected_row_by_row() -> None:
    matcher = nc.MovingMatcher("moving_scan", "plane")
    matcher.subscribe([nc.Subscription("s", ["oak"], nc.Box(0, 0, 1, 1))])
    matcher.publish_table(pa.table({"id": [1, 2], "keywords": [["oak"]] * 2, "x": [0.5] * 2, "y": [0.5] * 2}))
    changes = matcher.publish_table(pa.table({"id": ["a", "b"], "keywords": [["oak"]] * 2, "x": [0.5] * 2, "y": [0.5] * 2}))
    assert changes.num_rows == 0
    assert [row for row, _ in matcher.report.rejected] == [0, 1]
    assert all("of another kind" in reason for _, reason in matcher.report.rejected)
    assert matcher.current("s") == {1, 2}
