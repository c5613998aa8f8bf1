"""Parts come out of the queue by their bounds, bucket by bucket, each once, and none below the least bound."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kernels.compile import kernel
from nearcast.ranked.kernels.search_queues import N_BUCKETS, NOTHING, clear_queue, pop_bound, push_bound, queue_for


@kernel
def push(queue, bound, part):  # type: ignore[no-untyped-def]
    push_bound(queue, bound, part)


@kernel
def pop(queue, least):  # type: ignore[no-untyped-def]
    return pop_bound(queue, least)


@kernel
def clear(queue):  # type: ignore[no-untyped-def]
    clear_queue(queue)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.floats(0.0, 1.2), st.sampled_from([0.0, 1.0])), max_size=30), st.floats(0.0, 1.0), st.data())
def test_what_is_pushed_is_popped_by_shelves(bounds: list[float], least: float, data: st.DataObject) -> None:
    queue = queue_for(len(bounds))
    for _ in range(2):
        clear(queue)
        popped: list[int] = []
        n_before = data.draw(st.integers(0, len(bounds)))
        for part in range(n_before):
            push(queue, bounds[part], part)
        if n_before and max(bounds[:n_before]) >= least:
            popped.append(int(queue.part[pop(queue, least)]))
        for part in range(n_before, len(bounds)):
            push(queue, bounds[part], part)
        while (place := pop(queue, least)) != NOTHING:
            popped.append(int(queue.part[place]))
        assert sorted(popped) == [part for part, bound in enumerate(bounds) if bound >= least]
        later = np.minimum(np.array([bounds[part] for part in popped[1:]]) * N_BUCKETS // 1, N_BUCKETS - 1)
        assert (np.diff(later) <= 0).all()


def test_parts_that_are_not_good_enough_any_more_are_left_out() -> None:
    queue = queue_for(3)
    clear(queue)
    for part, bound in enumerate((0.5, 0.9, 0.7)):
        push(queue, bound, part)
    assert queue.part[pop(queue, 0.1)] == 1
    assert queue.part[pop(queue, 0.6)] == 2
    assert pop(queue, 0.6) == NOTHING
