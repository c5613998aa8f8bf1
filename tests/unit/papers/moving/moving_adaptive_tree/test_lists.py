"""Lists of messages that grow, empty, and are moved together."""

from __future__ import annotations

import numpy as np

from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import (
    append_message,
    empty_list,
    pack_lists,
    packed_size,
)
from nearcast.papers.moving.moving_adaptive_tree.layout import BEGIN, COUNT, LIST_FIELDS, N_USED, ListArrays
from nearcast.papers.moving.moving_adaptive_tree.tree_with_messages import no_lists

N_LISTS, CAPACITY = 40, 20_000


def roomy_lists() -> ListArrays:
    node_list, slot, signature = (
        np.zeros(LIST_FIELDS * N_LISTS, np.int32),
        np.zeros(CAPACITY, np.int32),
        np.zeros(CAPACITY, np.int64),
    )
    return no_lists()._replace(node_list=node_list, slot=slot, signature=signature, point=np.zeros(2 * CAPACITY, np.float32))


def contents(lists: ListArrays, number: int) -> list[tuple[int, int, float, float]]:
    begin, n = (int(lists.node_list[LIST_FIELDS * number + field]) for field in (BEGIN, COUNT))
    return [
        (int(lists.slot[i]), int(lists.signature[i]), float(lists.point[2 * i]), float(lists.point[2 * i + 1]))
        for i in range(begin, begin + n)
    ]


def fill(lists: ListArrays, rng: np.random.Generator, n: int) -> None:
    for slot in range(n):
        append_message(lists, int(rng.integers(N_LISTS)), slot, 3 * slot, np.float32(slot / 4), np.float32(-slot))


def test_lists_moved_together_hold_the_same_and_grow_on() -> None:
    rng, lists = np.random.default_rng(1), roomy_lists()
    fill(lists, rng, 2000)
    for number in range(0, N_LISTS, 3):
        empty_list(lists, number)
    expected, n_used = [contents(lists, number) for number in range(N_LISTS)], int(lists.head[N_USED])

    n_packed = int(packed_size(lists, N_LISTS))
    packed = roomy_lists()._replace(node_list=lists.node_list, free=lists.free, head=lists.head)
    pack_lists(lists, N_LISTS, packed)

    assert int(packed.head[N_USED]) == n_packed < n_used
    assert [contents(packed, number) for number in range(N_LISTS)] == expected
    more = np.random.default_rng(2)
    fill(packed, more, 500)
    again = np.random.default_rng(2).integers(N_LISTS, size=500)
    assert [len(contents(packed, number)) for number in range(N_LISTS)] == [
        len(expected[number]) + int(np.count_nonzero(again == number)) for number in range(N_LISTS)
    ]
    assert all(contents(packed, number)[: len(expected[number])] == expected[number] for number in range(N_LISTS))
