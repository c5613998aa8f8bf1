"""Take the messages out of a part of the tree that is about to be built anew, and hand them down again afterwards."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut, step_in
from nearcast.papers.boolean.adaptive_tree.kernels.match import rank_keywords
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import push_children
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    EXTRA,
    FIRST,
    ITEM_FIELDS,
    KEYWORD,
    KIND,
    LEAF,
    N_PENDING,
    NO_NODE,
    NODE,
    NODE_FIELDS,
    SIZE,
    START,
)
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import empty_list
from nearcast.papers.moving.moving_adaptive_tree.kernels.store_messages import store_from
from nearcast.papers.moving.moving_adaptive_tree.layout import (
    BEGIN,
    BEGUN,
    COUNT,
    EPOCH,
    HAD_CHILDREN,
    LENGTH,
    LIST_FIELDS,
    N_REPLAY,
    PILE_FIRST,
    PILE_LAST,
    REPLAY_FIELDS,
    WANTED_PILE,
    WAY,
)


@kernel
def position_at(tree, lists, way, rank, n_ranks, is_refining):
    """The position in a message's keywords when it comes to the end of a way from the root."""
    node, block, replay = tree.node, tree.block, lists.replay
    at = 0
    for step in range(replay[way + LENGTH] - 1):
        record = NODE_FIELDS * replay[way + WAY + step]
        following = replay[way + WAY + step + 1]
        if node[record + KIND] != KEYWORD or node[record + EXTRA] == following:
            continue
        first, n_cuts = node[record + FIRST], node[record + SIZE]
        cuts = first + BLOCK_FIELDS + n_cuts
        cut = 0
        for i in range(at, n_ranks):
            cut = find_cut(block, cuts, n_cuts, rank[i], cut)
            if block[first + BLOCK_FIELDS + cut] == following:
                at = i + step_in(block, cuts, cut, n_cuts, is_refining)
                break
    return at


@kernel
def count_below(tree, lists, work):
    """How many entries stand at and below the pending nodes."""
    n = 0
    for p in range(work.state[N_PENDING]):
        work.pile[0] = work.pending[p * ITEM_FIELDS + NODE]
        size = 1
        while size > 0:
            size -= 1
            own = work.pile[size]
            n += lists.own[LIST_FIELDS * own + COUNT]
            if tree.node[NODE_FIELDS * own + KIND] != LEAF:
                size = push_children(tree, NODE_FIELDS * own, work.pile, size)
    return n


@kernel
def note_way(lists, work, p):
    """Note the way to a pending node."""
    pending, visit, replay = work.pending, work.visit, lists.replay
    way, length, parent = p * REPLAY_FIELDS, 1, pending[p * ITEM_FIELDS + START]
    while parent != NO_NODE:
        length += 1
        parent = visit[parent * ITEM_FIELDS + START]
    replay[way + LENGTH] = length
    replay[way + WAY + length - 1] = pending[p * ITEM_FIELDS + NODE]
    parent = pending[p * ITEM_FIELDS + START]
    for step in range(length - 2, -1, -1):
        replay[way + WAY + step] = visit[parent * ITEM_FIELDS + NODE]
        parent = visit[parent * ITEM_FIELDS + START]


@inline_kernel
def pile_up(lists, number, is_alive, n_piled):
    """Put the messages of a node on the pile, each once; returns how many there are then."""
    own, slot, stamp, pile, epoch = lists.own, lists.slot, lists.stamp, lists.pile, lists.head[EPOCH]
    begin = own[LIST_FIELDS * number + BEGIN]
    for entry in range(begin, begin + own[LIST_FIELDS * number + COUNT]):
        message = slot[entry]
        if is_alive[message] and stamp[message] != epoch:
            stamp[message] = epoch
            pile[n_piled] = message
            n_piled += 1
    return n_piled


@kernel
def gather_messages(tree, lists, work, is_alive):
    """Before pending nodes are built anew: pile up the messages of each, and empty the lists below; False: the pile is small.

    A message that stood in several places below is taken once.
    """
    head, replay = lists.head, lists.replay
    if work.state[N_PENDING] == 0 or head[N_REPLAY] > 0:
        return True
    head[WANTED_PILE] = count_below(tree, lists, work)
    if head[WANTED_PILE] > lists.pile.size:
        return False
    head[N_REPLAY] = work.state[N_PENDING]
    n_piled = 0
    for p in range(work.state[N_PENDING]):
        number, way = work.pending[p * ITEM_FIELDS + NODE], p * REPLAY_FIELDS
        note_way(lists, work, p)
        head[EPOCH] += 1
        replay[way + PILE_FIRST] = n_piled
        n_piled = pile_up(lists, number, is_alive, n_piled)
        had_children = tree.node[NODE_FIELDS * number + KIND] != LEAF
        replay[way + HAD_CHILDREN] = had_children
        size = push_children(tree, NODE_FIELDS * number, work.pile, 0) if had_children else 0
        while size > 0:
            size -= 1
            own = work.pile[size]
            if tree.node[NODE_FIELDS * own + KIND] != LEAF:
                size = push_children(tree, NODE_FIELDS * own, work.pile, size)
            n_piled = pile_up(lists, own, is_alive, n_piled)
            empty_list(lists, own)
        replay[way + PILE_LAST] = n_piled
    return True


@kernel
def hand_down(tree, lists, messages, wanted, scratch, limit, is_refining):
    """Store the messages of nodes that were built anew, from there on; returns whether it is done, or room is short."""
    replay, pile, head = lists.replay, lists.pile, lists.head
    while head[N_REPLAY] > 0:
        way = (head[N_REPLAY] - 1) * REPLAY_FIELDS
        number = replay[way + WAY + replay[way + LENGTH] - 1]
        is_leaf = tree.node[NODE_FIELDS * number + KIND] == LEAF
        if replay[way + HAD_CHILDREN] or not is_leaf:
            if replay[way + HAD_CHILDREN] != BEGUN:
                empty_list(lists, number)
                replay[way + HAD_CHILDREN] = BEGUN
            while replay[way + PILE_LAST] > replay[way + PILE_FIRST]:
                slot = pile[replay[way + PILE_LAST] - 1]
                begin = messages.keyword_first[slot]
                n_ranks = rank_keywords(tree.rank, messages.keyword, begin, begin + messages.n_keywords[slot], scratch.rank)
                start = position_at(tree, lists, way, scratch.rank, n_ranks, is_refining)
                if not store_from(tree, lists, messages, wanted, scratch, slot, number, start, n_ranks, limit, is_refining):
                    return False
                replay[way + PILE_LAST] -= 1
        head[N_REPLAY] -= 1
    return True
