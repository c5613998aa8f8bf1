"""Ids that come and go: numbers and texts, among them long ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nearcast.moving.kernels.live_messages import ABSENT
from nearcast.moving.live_messages import LiveIds


def column(kind: str, numbers: list[int]) -> pa.Array:
    if kind == "int":
        return pa.array(numbers, pa.int64())
    return pa.array(["x" * (number % 40) + f"é{number}" for number in numbers], pa.string())


@pytest.mark.parametrize("kind", ["int", "string"])
def test_a_random_life_gives_what_a_dict_gives(kind: str) -> None:
    rng = np.random.default_rng(3)
    ids, n_slots = LiveIds(), 0
    slot_of: dict[int, int] = {}
    free: list[int] = []
    for _ in range(60):
        new = [number for number in np.unique(rng.integers(-300, 300, 30)).tolist() if number not in slot_of]
        slots = [free.pop() if free else n_slots + i for i in range(len(new))]
        n_slots = max([n_slots, *(slot + 1 for slot in slots)])
        ids.reserve_slots(n_slots)
        ids.insert(column(kind, new), np.array(slots, np.int32))
        slot_of |= dict(zip(new, slots, strict=True))
        asked = list(range(-320, 320))
        assert ids.find(column(kind, asked)).tolist() == [slot_of.get(number, ABSENT) for number in asked]
        held = list(slot_of)
        assert ids.take(np.array([slot_of[number] for number in held], np.int32)) == column(kind, held)
        removed = [number for number in held if rng.random() < 0.3]
        dead = np.array([slot_of.pop(number) for number in removed], np.int32)
        ids.remove(dead)
        again = [*removed[:3], 999, *list(slot_of)[:2]]
        assert ids.find_in_slots(column(kind, again), dead).tolist() == [
            *dead[:3].tolist(),
            *[ABSENT] * (len(again) - len(dead[:3])),
        ]
        if rng.random() < 0.5:
            ids = LiveIds.from_arrays(ids.kind, ids.arrays())
        ids.free(dead)
        free += dead.tolist()
    assert ids.n_bytes < 200_000


@pytest.mark.parametrize("kind", ["int", "string"])
def test_repeated_ids_are_marked_from_the_second_on(kind: str) -> None:
    ids = LiveIds()
    assert ids.is_repeated(column(kind, [])).tolist() == []
    assert ids.is_repeated(column(kind, [1, 2, 3])).tolist() == [False] * 3
    assert ids.is_repeated(column(kind, [5, 45, 5, 1, 45, 45])).tolist() == [False, False, True, False, True, True]
    assert ids.find_in_slots(column(kind, [1]), np.empty(0, np.int32)).tolist() == [ABSENT]


def test_texts_with_one_key_are_distinguished_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_key(start: object, data: object, key: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        key[:] = 7

    monkeypatch.setattr("nearcast.moving.live_messages.kernels.text_keys", one_key)
    ids = LiveIds()
    ids.reserve_slots(3)
    ids.insert(pa.array(["ab", "cd", "cde"]), np.arange(3, dtype=np.int32))
    assert ids.find(pa.array(["cd", "ab", "cde", "xy", ""])).tolist() == [1, 0, 2, ABSENT, ABSENT]
    assert ids.is_repeated(pa.array(["ab", "cd", "abc", "ab"])).tolist() == [False, False, False, True]
    ids.remove(np.array([0], np.int32))
    assert ids.find(pa.array(["cd", "ab"])).tolist() == [1, ABSENT]


def test_nothing_enters_with_no_ids() -> None:
    known = LiveIds()
    known.insert(pa.array([], pa.int64()), np.empty(0, np.int32))
    assert known.kind is None
