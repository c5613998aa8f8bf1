"""Sorted sets of keyword ids."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.columns.messages import keyword_sets_of
from nearcast.kernels import keyword_sets, sorting

ids = st.lists(st.integers(-2, 30), max_size=80)


@given(st.lists(ids, max_size=8), st.integers(0, 5))
def test_lists_become_sorted_sets_without_unknown_keywords(lists: list[list[int]], skipped: int) -> None:
    # Offsets of a slice of a larger column do not begin at zero.
    starts = np.cumsum([skipped, *map(len, lists)]).astype(np.int64)
    set_start, members = keyword_sets_of(starts, np.array([i for own in lists for i in own], np.int32))
    found = [members[a:b].tolist() for a, b in pairwise(set_start)]
    assert found == [sorted({i for i in own if i >= 0}) for own in lists]


def test_marks_tell_membership_of_the_current_message_only() -> None:
    stamp = np.zeros(6, np.int32)
    keyword_sets.mark_keywords(stamp, 1, np.array([0, 5], np.int32), 0, 2)
    keyword_sets.mark_keywords(stamp, 2, np.array([2, 3], np.int32), 0, 2)
    wanted = np.array([2, 3, 5], np.int32)
    assert keyword_sets.has_all(stamp, 2, wanted, 0, 2)
    assert not keyword_sets.has_all(stamp, 2, wanted, 0, 3)
    assert keyword_sets.has_all(stamp, 2, wanted, 1, 1)
    assert keyword_sets.has_any(stamp, 2, wanted, 1, 3)
    assert not keyword_sets.has_any(stamp, 2, wanted, 2, 3)


def test_items_are_filled_by_owner_in_order() -> None:
    owners = np.array([1, 0, 1, -1, 2], np.int32)
    offsets = np.zeros(4, np.int64)
    assert sorting.offsets_from_counts(np.array([1, 2, 1], np.int32), offsets) == 4
    out = np.zeros(4, np.int32)
    sorting.fill_lists(owners, np.arange(10, 15, dtype=np.int32), offsets[:-1].copy(), out)
    assert offsets.tolist() == [0, 1, 3, 4]
    assert out.tolist() == [11, 10, 12, 14]
