"""Post messages under all their keywords, in the cells of the depths at which there are clauses."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.quadtree import cell_code, column_of
from nearcast.papers.boolean.quadtrees.layout import ROOT_CODE
from nearcast.papers.moving.grid_lists.kernels.lists import append_to, find_list, wanted_items
from nearcast.papers.moving.grid_lists.layout import (
    CATCH_ALL,
    N_FILED,
    N_ITEMS,
    N_LISTS,
    N_SLOTS_USED,
    WANTED_ITEMS,
    WANTED_LISTS,
    WANTED_SLOTS,
)


@inline_kernel
def columns_at(grid, depth, x0, y0, x1, y1):
    """First and last column, first and last row of a box among the cells of a depth; `grid` is frame and greatest depth."""
    frame, max_depth = grid
    n, shift = 1 << max_depth, max_depth - depth
    return (
        column_of(x0, frame[0], frame[1], frame[2], n) >> shift,
        column_of(x1, frame[0], frame[1], frame[2], n) >> shift,
        column_of(y0, frame[3], frame[4], frame[5], n) >> shift,
        column_of(y1, frame[3], frame[4], frame[5], n) >> shift,
    )


@inline_kernel
def post_at(lists, grid, depth, owner, message, box, is_counting, wanted):
    """Post a message at one depth, or count what room that takes: of lists, of items."""
    slot, size, room, shape, head = lists.slot, lists.size, lists.room, lists.shape, lists.head
    column0, column1, row0, row1 = columns_at(grid, depth, box[0], box[1], box[2], box[3])
    for row in range(row0, row1 + 1):
        for column in range(column0, column1 + 1):
            code = cell_code(depth, column, row)
            if is_counting:
                more, new = wanted_items(slot, size, room, shape, owner, code)
                wanted[WANTED_ITEMS] += more
                wanted[WANTED_LISTS] += new
            else:
                append_to(slot, lists.start, size, room, lists.item, lists.free, shape, head, owner, code, message)


@inline_kernel
def has_room(lists, wanted):
    """Whether what was counted fits; `wanted` becomes what is needed in all."""
    head = lists.head
    wanted[WANTED_SLOTS] = 2 * (head[N_SLOTS_USED] + wanted[WANTED_LISTS])
    wanted[WANTED_LISTS] += head[N_LISTS]
    wanted[WANTED_ITEMS] += head[N_ITEMS]
    return (
        wanted[WANTED_LISTS] <= lists.start.size
        and wanted[WANTED_SLOTS] <= lists.slot.size // 2
        and wanted[WANTED_ITEMS] <= lists.item.size
    )


@kernel
def post_messages(lists, grid, depths, messages, slots, first, wanted):
    """Post the messages from `first` on; returns where room was short, or the end. `depths[owner]`: bits of those in use."""
    lists, messages, depths, slots = borrow(lists), borrow(messages), borrow(depths), borrow(slots)
    keyword_first, n_keywords, keyword = messages.keyword_first, messages.n_keywords, messages.keyword
    x0, y0, x1, y1 = messages.x0, messages.y0, messages.x1, messages.y1
    for i in range(first, slots.size):
        message = slots[i]
        box = (x0[message], y0[message], x1[message], y1[message])
        begin = keyword_first[message]
        for is_counting in (True, False):
            if is_counting:
                wanted[WANTED_LISTS], wanted[WANTED_ITEMS] = 0, 0
            elif not has_room(lists, wanted):
                return i
            for at in range(begin - 1, begin + n_keywords[message]):
                owner = CATCH_ALL if at < begin else 1 + keyword[at]
                used = 1 if owner >= depths.size else depths[owner] | 1
                depth = 0
                while used >> depth != 0:
                    if (used >> depth) & 1:
                        post_at(lists, grid, depth, owner, message, box, is_counting, wanted)
                    depth += 1
        lists.head[N_FILED] += 1
    return slots.size


@kernel
def post_deeper(lists, grid, owner, depth, messages, first, wanted):
    """Post all messages of an owner at one more depth, from entry `first` of its list in the root cell on.

    Returns where it has come to, and whether that is the end or room is short.
    Paper: a message stands in every cell of its way; here only where a clause of the keyword may look for it.
    """
    lists, messages = borrow(lists), borrow(messages)
    x0, y0, x1, y1 = messages.x0, messages.y0, messages.x1, messages.y1
    number = find_list(lists.slot, lists.shape, owner, ROOT_CODE)
    n = lists.size[number] if number >= 0 else 0
    for at in range(first, n):
        message = lists.item[lists.start[number] + at]
        if messages.is_alive[message] == 0:
            continue
        box = (x0[message], y0[message], x1[message], y1[message])
        wanted[WANTED_LISTS], wanted[WANTED_ITEMS] = 0, 0
        post_at(lists, grid, depth, owner, message, box, True, wanted)
        if not has_room(lists, wanted):
            return at, False
        post_at(lists, grid, depth, owner, message, box, False, wanted)
    return n, True
