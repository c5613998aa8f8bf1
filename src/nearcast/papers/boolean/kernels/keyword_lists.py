"""Sorted keyword sets, and lists filed under keywords in groups: the inverted files of the nodes of a tree, as flat arrays.

A clause without keywords is filed under NO_KEYWORD, which every message has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel

NO_KEYWORD = -1

# A keyword of a set costs one look-up in the stamps, one of the message a binary search.
_LOOK_UPS_PER_SEARCH = 8


class KeywordListArrays(NamedTuple):
    """Group `g` has the lists from group_start[g] to group_start[g + 1]; list `i` is item[list_start[i]:list_start[i + 1]]."""

    group_start: np.ndarray  # int64[n_groups + 1]
    keyword: np.ndarray  # int32[n_lists]: increasing within a group; NO_KEYWORD comes first
    list_start: np.ndarray  # int64[n_lists + 1]
    item: np.ndarray  # int32[]


def file_lists(group: np.ndarray, keyword: np.ndarray, item: np.ndarray, n_groups: int) -> KeywordListArrays:
    """File each item under its group and keyword; items of one list keep their order."""
    code, width = _codes(group, keyword)
    order = np.argsort(code, kind="stable")
    code = code[order]
    first = np.flatnonzero(_is_first(code))
    list_code = code[first]
    group_start = np.searchsorted(list_code, np.arange(n_groups + 1) * width)
    list_start = np.append(first, len(code))
    keyword_of_list = (list_code % width + NO_KEYWORD).astype(np.int32)
    return KeywordListArrays(
        group_start.astype(np.int64), keyword_of_list, list_start.astype(np.int64), item[order].astype(np.int32)
    )


def distinct_pairs(group: np.ndarray, keyword: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of group and keyword once, sorted."""
    code, width = _codes(group, keyword)
    code.sort()
    code = code[_is_first(code)]
    return code // width, (code % width + NO_KEYWORD).astype(np.int32)


def _codes(group: np.ndarray, keyword: np.ndarray) -> tuple[np.ndarray, int]:
    width = int(keyword.max(initial=NO_KEYWORD)) + 1 - NO_KEYWORD
    return group.astype(np.int64) * width + (keyword.astype(np.int64) - NO_KEYWORD), width


def _is_first(code: np.ndarray) -> np.ndarray:
    is_first = np.ones(len(code), np.bool_)
    np.not_equal(code[1:], code[:-1], out=is_first[1:])
    return is_first


@inline_kernel
def lower_bound(values, start, stop, keyword):
    """The first position of a sorted run whose value is not below `keyword`, or `stop`."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if values[middle] < keyword:
            low = middle + 1
        else:
            high = middle
    return low


@inline_kernel
def has_common(values, start, stop, stamp, mark, message_keyword, first, last):
    """Whether a sorted set of keywords has one that the message has. The message's are stamped, and a sorted run."""
    if start == stop:
        return False
    if values[start] == NO_KEYWORD:
        return True
    if stop - start <= _LOOK_UPS_PER_SEARCH * (last - first):
        for at in range(start, stop):
            if stamp[values[at]] == mark:
                return True
        return False
    at = start
    for position in range(first, last):
        at = lower_bound(values, at, stop, message_keyword[position])
        if at == stop:
            return False
        if values[at] == message_keyword[position]:
            return True
    return False


@inline_kernel
def find_common(values, start, stop, stamp, mark, message_keyword, first, last, positions):
    """Write the positions of the keywords that the message has; returns how many, at most its length plus one."""
    n_common = 0
    at = start
    if at < stop and values[at] == NO_KEYWORD:
        positions[0] = at
        n_common = 1
        at += 1
    if stop - at <= _LOOK_UPS_PER_SEARCH * (last - first):
        while at < stop:
            if stamp[values[at]] == mark:
                positions[n_common] = at
                n_common += 1
            at += 1
        return n_common
    for position in range(first, last):
        at = lower_bound(values, at, stop, message_keyword[position])
        if at == stop:
            break
        if values[at] == message_keyword[position]:
            positions[n_common] = at
            n_common += 1
    return n_common
