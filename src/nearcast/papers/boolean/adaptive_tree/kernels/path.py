"""Visit every node on the paths of a clause: the same cuts and cells as when it was filed or built.

So its leaves are found again and need not be stored.
"""

from __future__ import annotations

from nearcast.kernels.compile import borrow, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut, proven_in, step_in
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import covers, strip_of
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import narrow_region, new_node
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import child_count
from nearcast.papers.boolean.adaptive_tree.layout import (
    ALLOWED,
    BLOCK_FIELDS,
    BOUNDS,
    DEEPEST,
    DEPTH,
    EXTRA,
    FIRST,
    ITEM_FIELDS,
    KEYWORD,
    KIND,
    LEAF,
    MAY_KEYWORD,
    MAY_SPACE,
    N_NODES,
    NEEDED_NODES,
    NEEDED_VISITS,
    NO_NODE,
    NODE,
    NODE_FIELDS,
    OFFSET,
    PROVEN,
    REGION_FIELDS,
    ROOT,
    ROWS,
    SIZE,
    SPREAD,
    START,
)


@kernel
def add_visit(tree, work, n_visits, parent, block_at, offset, allowed, proven):
    """Visit the child at `block_at` (or the one every message enters, if negative); returns the number of visits or -1.

    A child that is missing is made: only a clause that is filed now can come where none was. It is in the region of its parent
    until the caller narrows it.
    """
    tree, work = borrow(tree), borrow(work)
    visit, region, node, block = work.visit, work.visit_region, tree.node, tree.block
    record = NODE_FIELDS * visit[parent * ITEM_FIELDS + NODE]
    child = block[block_at] if block_at >= 0 else node[record + EXTRA]
    if child == NO_NODE:
        work.needed[NEEDED_NODES] = tree.head[N_NODES] + 1
        if work.needed[NEEDED_NODES] > tree.n_below.size:
            return -1
        # An empty leaf does no harm if capacity runs out after it.
        child = new_node(tree, 0)
        tree.share[child] = tree.share[record // NODE_FIELDS] / child_count(node, record)
        if block_at >= 0:
            block[block_at] = child
        else:
            node[record + EXTRA] = child
    work.needed[NEEDED_VISITS] = n_visits + 1
    if (n_visits + 1) * ITEM_FIELDS > visit.size:
        return -1
    at, depth = n_visits * ITEM_FIELDS, visit[parent * ITEM_FIELDS + DEPTH] + 1
    visit[at + NODE], visit[at + START], visit[at + OFFSET] = child, parent, offset
    visit[at + ALLOWED], visit[at + DEPTH], visit[at + PROVEN] = allowed, depth, proven
    for field in range(REGION_FIELDS):
        region[n_visits * REGION_FIELDS + field] = region[parent * REGION_FIELDS + field]
    tree.head[DEEPEST] = max(tree.head[DEEPEST], depth)
    return n_visits + 1


@kernel
def visit_cells(tree, work, n_visits, parent):
    """Visit the cells of a grid that the box at local number 0 reaches, or the covering child; as `add_visit`."""
    tree, work = borrow(tree), borrow(work)
    node, block, bound, box = tree.node, tree.block, tree.bound, work.box
    visit, region = work.visit, work.visit_region
    at, region_at = parent * ITEM_FIELDS, parent * REGION_FIELDS
    record = NODE_FIELDS * visit[at + NODE]
    offset, allowed, proven = visit[at + OFFSET], visit[at + ALLOWED], visit[at + PROVEN]
    first = node[record + FIRST]
    bounds = block[first + BOUNDS]
    if covers(box, 0, region, region_at):
        before = n_visits
        n_visits = add_visit(tree, work, n_visits, parent, NO_NODE, offset, allowed & ~MAY_SPACE, proven)
        if n_visits >= 0:
            region[before * REGION_FIELDS + SPREAD] *= bound[bounds]
        return n_visits
    n_columns, n_rows = node[record + SIZE] // ROWS, node[record + SIZE] % ROWS
    rows_at = bounds + n_columns
    column0, column1 = strip_of(bound, bounds + 1, n_columns, box[0]), strip_of(bound, bounds + 1, n_columns, box[2])
    row0, row1 = strip_of(bound, rows_at, n_rows, box[1]), strip_of(bound, rows_at, n_rows, box[3])
    for row in range(row0, row1 + 1):
        for column in range(column0, column1 + 1):
            before = n_visits
            child_at = first + BLOCK_FIELDS + row * n_columns + column
            n_visits = add_visit(tree, work, n_visits, parent, child_at, offset, allowed, proven)
            if n_visits < 0:
                return n_visits
            child_region = before * REGION_FIELDS
            narrow_region(region, child_region, bound, bounds, n_columns, n_rows, column, row)
            region[child_region + SPREAD] *= bound[bounds]
    return n_visits


@kernel
def visit_nodes(tree, work, n_ranks, is_refining):
    """Write every node on the paths of the clause with local number 0, parents first; returns how many, or -1 if full."""
    tree, work = borrow(tree), borrow(work)
    node, block, rank, visit, region = tree.node, tree.block, work.rank, work.visit, work.visit_region
    visit[NODE], visit[START], visit[OFFSET], visit[DEPTH], visit[PROVEN] = ROOT, NO_NODE, 0, 1, 0
    visit[ALLOWED] = MAY_KEYWORD | MAY_SPACE
    for coordinate in range(4):
        region[coordinate] = tree.region[coordinate]
    region[SPREAD] = 1.0
    n_visits, parent = 1, 0
    while parent < n_visits:
        at = parent * ITEM_FIELDS
        record = NODE_FIELDS * visit[at + NODE]
        offset, allowed, proven = visit[at + OFFSET], visit[at + ALLOWED], visit[at + PROVEN]
        kind = node[record + KIND]
        if kind == KEYWORD and offset < n_ranks:
            first, n_cuts = node[record + FIRST], node[record + SIZE]
            cuts = first + BLOCK_FIELDS + n_cuts
            cut = find_cut(block, cuts, n_cuts, rank[offset], 0)
            proven = proven_in(block, cuts, cut, n_cuts, proven, offset)
            child_at = first + BLOCK_FIELDS + cut
            offset += step_in(block, cuts, cut, n_cuts, is_refining)
            n_visits = add_visit(tree, work, n_visits, parent, child_at, offset, allowed, proven)
        elif kind == KEYWORD:
            n_visits = add_visit(tree, work, n_visits, parent, NO_NODE, offset, allowed & ~MAY_KEYWORD, proven)
        elif kind != LEAF:
            n_visits = visit_cells(tree, work, n_visits, parent)
        if n_visits < 0:
            return n_visits
        parent += 1
    return n_visits
