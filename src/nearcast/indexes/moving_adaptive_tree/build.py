"""Store messages at nodes: in the leaves they reach, or above where these would be too many; and hand them down again."""

from __future__ import annotations

from nearcast.indexes.adaptive_tree.by_keyword.build import find_cut, step_in
from nearcast.indexes.adaptive_tree.by_space.build import strip_of
from nearcast.indexes.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    EXTRA,
    FIRST,
    FREE_NODE,
    ITEM_FIELDS,
    KEYWORD,
    KIND,
    LEAF,
    N_NODES,
    N_PENDING,
    NO_NODE,
    NODE,
    NODE_FIELDS,
    ROOT,
    ROWS,
    SIZE,
    START,
    WANTED_NODES,
)
from nearcast.indexes.adaptive_tree.match import rank_keywords
from nearcast.indexes.adaptive_tree.nodes.build import new_node
from nearcast.indexes.adaptive_tree.rebuild.build import push_children
from nearcast.indexes.moving_adaptive_tree.layout import (
    CHAIN,
    COUNT,
    ENTRIES,
    EPOCH,
    FREE_CHUNK,
    HAD_CHILDREN,
    LENGTH,
    N_CHUNKS,
    N_COPIES,
    N_REPLAY,
    NEXT,
    NO_CHUNK,
    NOT_BEGUN,
    PER_CHUNK,
    REPLAY_FIELDS,
    WAY,
    WIDTH,
)
from nearcast.kernels.compile import inline_kernel, kernel

_MORE_NODES = 64


@inline_kernel
def append_slot(first, item, head, number, slot):
    """Add a message to the list of a node; there is a chunk to spare."""
    chunk = first[number]
    if chunk == NO_CHUNK or item[chunk * WIDTH + COUNT] == PER_CHUNK:
        fresh = head[FREE_CHUNK]
        if fresh == NO_CHUNK:
            fresh = head[N_CHUNKS]
            head[N_CHUNKS] += 1
        else:
            head[FREE_CHUNK] = item[fresh * WIDTH + NEXT]
        item[fresh * WIDTH + NEXT], item[fresh * WIDTH + COUNT] = chunk, 0
        first[number] = fresh
        chunk = fresh
    at = chunk * WIDTH
    item[at + ENTRIES + item[at + COUNT]] = slot
    item[at + COUNT] += 1
    head[N_COPIES] += 1


@inline_kernel
def free_chunk(item, head, chunk):
    """Give back an empty chunk; returns the one behind it."""
    behind = item[chunk * WIDTH + NEXT]
    item[chunk * WIDTH + NEXT] = head[FREE_CHUNK]
    head[FREE_CHUNK] = chunk
    return behind


@kernel
def make_child(tree, wanted, record, block_at):
    """An empty leaf at a place of the block, or as the child that every message enters (negative); NO_NODE: no room.

    Paper: messages are stored only where there are leaves, and are lost to a clause that comes where none was.
    """
    node, block, head = tree.node, tree.block, tree.head
    if head[FREE_NODE] == NO_NODE and head[N_NODES] >= tree.n_below.size:
        wanted[WANTED_NODES] = head[N_NODES] + _MORE_NODES
        return NO_NODE
    child = new_node(tree, 0)
    if block_at >= 0:
        block[block_at] = child
    else:
        node[record + EXTRA] = child
    return child


@kernel
def count_cuts(block, cuts, n_cuts, rank, at, n_ranks):
    """How many cuts have a keyword of the message from `at` on."""
    n, before, cut = 0, -1, 0
    for i in range(at, n_ranks):
        cut = find_cut(block, cuts, n_cuts, rank[i], cut)
        if cut != before:
            n += 1
            before = cut
    return n


@kernel
def choose_places(tree, wanted, scratch, n_ranks, x, y, number, at, limit, is_refining):
    """Write the nodes that are to hold a message that has come to a node; returns how many, or -1 if room for nodes is short.

    Not more than `limit` of them: where going on would make more, the message stays above.
    """
    node, block, bound = tree.node, tree.block, tree.bound
    rank, queue, position, target = scratch.rank, scratch.queue, scratch.position, scratch.target
    queue[0], position[0] = number, at
    n_queued, n_done, n_targets = 1, 0, 0
    while n_done < n_queued:
        own, at = queue[n_done], position[n_done]
        n_done += 1
        record = NODE_FIELDS * own
        kind, first = node[record + KIND], node[record + FIRST]
        n_cuts = node[record + SIZE]
        cuts = first + BLOCK_FIELDS + n_cuts
        n_children = 0
        if kind == KEYWORD:
            n_children = 1 + count_cuts(block, cuts, n_cuts, rank, at, n_ranks)
        elif kind != LEAF:
            n_children = 2
        if kind == LEAF or n_targets + (n_queued - n_done) + n_children > limit:
            target[n_targets] = own
            n_targets += 1
            continue
        if kind == KEYWORD:
            before, cut = -1, 0
            for i in range(at, n_ranks):
                cut = find_cut(block, cuts, n_cuts, rank[i], cut)
                if cut == before:
                    continue
                before = cut
                child_at = first + BLOCK_FIELDS + cut
                queue[n_queued] = block[child_at] if block[child_at] != NO_NODE else make_child(tree, wanted, record, child_at)
                position[n_queued] = i + step_in(block, cuts, cut, n_cuts, is_refining)
                n_queued += 1
        else:
            bounds = block[first + BOUNDS]
            n_columns, n_rows = node[record + SIZE] // ROWS, node[record + SIZE] % ROWS
            column = strip_of(bound, bounds + 1, n_columns, x)
            row = strip_of(bound, bounds + n_columns, n_rows, y)
            child_at = first + BLOCK_FIELDS + row * n_columns + column
            queue[n_queued] = block[child_at] if block[child_at] != NO_NODE else make_child(tree, wanted, record, child_at)
            position[n_queued] = at
            n_queued += 1
        extra = node[record + EXTRA]
        queue[n_queued] = extra if extra != NO_NODE else make_child(tree, wanted, record, -1)
        position[n_queued] = at
        n_queued += 1
        for i in range(n_queued - n_children, n_queued):
            if queue[i] == NO_NODE:
                return -1
    return n_targets


@kernel
def store_from(tree, lists, messages, wanted, scratch, slot, number, at, n_ranks, limit, is_refining):
    """Store a message, whose keywords are ranked, at or below a node; returns whether there was room (else nothing is)."""
    x, y = messages.x0[slot], messages.y0[slot]
    n_targets = choose_places(tree, wanted, scratch, n_ranks, x, y, number, at, limit, is_refining)
    if n_targets < 0 or (lists.head[N_CHUNKS] + n_targets + 1) * WIDTH > lists.item.size:
        return False
    first, item, head, target = lists.first, lists.item, lists.head, scratch.target
    for i in range(n_targets):
        append_slot(first, item, head, target[i], slot)
    return True


@kernel
def store_messages(tree, lists, messages, wanted, scratch, slots, first, limit, is_refining):
    """Store the messages from position `first` of `slots` on; returns where room was short, or the end."""
    keyword_first, n_keywords, keyword = messages.keyword_first, messages.n_keywords, messages.keyword
    rank_of, rank = tree.rank, scratch.rank
    for i in range(first, slots.size):
        begin = keyword_first[slots[i]]
        n_ranks = rank_keywords(rank_of, keyword, begin, begin + n_keywords[slots[i]], rank)
        if not store_from(tree, lists, messages, wanted, scratch, slots[i], ROOT, 0, n_ranks, limit, is_refining):
            return i
    return slots.size


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
def gather_lists(tree, lists, work):
    """Before pending nodes are built anew: bring the messages below each up to it, and note the way to it."""
    pending, visit, pile = work.pending, work.visit, work.pile
    first, item, replay = lists.first, lists.item, lists.replay
    lists.head[N_REPLAY] = work.state[N_PENDING]
    for p in range(work.state[N_PENDING]):
        number = pending[p * ITEM_FIELDS + NODE]
        way, length, parent = p * REPLAY_FIELDS, 1, pending[p * ITEM_FIELDS + START]
        while parent != NO_NODE:
            length += 1
            parent = visit[parent * ITEM_FIELDS + START]
        replay[way + LENGTH] = length
        replay[way + WAY + length - 1] = number
        parent = pending[p * ITEM_FIELDS + START]
        for step in range(length - 2, -1, -1):
            replay[way + WAY + step] = visit[parent * ITEM_FIELDS + NODE]
            parent = visit[parent * ITEM_FIELDS + START]
        had_children = tree.node[NODE_FIELDS * number + KIND] != LEAF
        replay[way + HAD_CHILDREN] = had_children
        size = push_children(tree, NODE_FIELDS * number, pile, 0) if had_children else 0
        while size > 0:
            size -= 1
            own = pile[size]
            if tree.node[NODE_FIELDS * own + KIND] != LEAF:
                size = push_children(tree, NODE_FIELDS * own, pile, size)
            if first[own] != NO_CHUNK:
                last = first[own]
                while item[last * WIDTH + NEXT] != NO_CHUNK:
                    last = item[last * WIDTH + NEXT]
                item[last * WIDTH + NEXT] = first[number]
                first[number] = first[own]
                first[own] = NO_CHUNK


@kernel
def hand_down(tree, lists, messages, wanted, scratch, limit, is_refining):
    """Store the messages of nodes that were built anew, from there on; returns whether it is done, or room is short.

    A message that stood in several places below comes up several times: it is taken once.
    """
    first, item, stamp, head = lists.first, lists.item, lists.stamp, lists.head
    while head[N_REPLAY] > 0:
        way = (head[N_REPLAY] - 1) * REPLAY_FIELDS
        number = lists.replay[way + WAY + lists.replay[way + LENGTH] - 1]
        if head[CHAIN] == NOT_BEGUN:
            if not lists.replay[way + HAD_CHILDREN] and tree.node[NODE_FIELDS * number + KIND] == LEAF:
                head[N_REPLAY] -= 1
                continue
            head[CHAIN] = first[number]
            first[number] = NO_CHUNK
            head[EPOCH] += 1
        while head[CHAIN] != NO_CHUNK:
            at = head[CHAIN] * WIDTH
            while item[at + COUNT] > 0:
                slot = item[at + ENTRIES + item[at + COUNT] - 1]
                if messages.is_alive[slot] and stamp[slot] != head[EPOCH]:
                    begin = messages.keyword_first[slot]
                    end = begin + messages.n_keywords[slot]
                    n_ranks = rank_keywords(tree.rank, messages.keyword, begin, end, scratch.rank)
                    start = position_at(tree, lists, way, scratch.rank, n_ranks, is_refining)
                    if not store_from(tree, lists, messages, wanted, scratch, slot, number, start, n_ranks, limit, is_refining):
                        return False
                    stamp[slot] = head[EPOCH]
                item[at + COUNT] -= 1
                head[N_COPIES] -= 1
            head[CHAIN] = free_chunk(item, head, head[CHAIN])
        head[CHAIN] = NOT_BEGUN
        head[N_REPLAY] -= 1
    return True


@kernel
def drop_dead(lists, is_alive, n_nodes):
    """Write every list anew without the dead; there is a chunk to spare."""
    first, item, head = lists.first, lists.item, lists.head
    for number in range(n_nodes):
        chunk = first[number]
        first[number] = NO_CHUNK
        while chunk != NO_CHUNK:
            at = chunk * WIDTH
            for entry in range(at + ENTRIES, at + ENTRIES + item[at + COUNT]):
                if is_alive[item[entry]]:
                    append_slot(first, item, head, number, item[entry])
                head[N_COPIES] -= 1
            chunk = free_chunk(item, head, chunk)
