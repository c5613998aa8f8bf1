"""What a division by space costs because clauses move: they change cells, and the node drifts.

Paper: §4.3.1, equations 8 to 13 and Algorithm 8, per time stamp, as interpreted in `docs/explanation/moving.md`. Everything is
estimated from a sample of the node's clauses.
"""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import LEAST_SHARE
from nearcast.papers.boolean.adaptive_tree.layout import (
    ARRIVALS,
    DEPTH,
    ITEM_FIELDS,
    MOST_STEPS,
    N_FILED,
    NODE,
    REBUILD_WEIGHT,
    REGION_FIELDS,
    REPORTS,
    SAMPLE,
    START,
    STOP,
    TYPICAL_SPEED,
    UPDATE_WEIGHT,
)

_SMOOTHING = 0.5
_MOST_PARTS = 4.0
_GOLDEN_ANGLE = 2.399963229728653


@inline_kernel
def velocity_of(velocity, typical, clause):
    """How far a clause moves in a step in which it reports; one that has not moved yet moves anywhere at typical speed."""
    if 2 * clause + 1 < velocity.size and not math.isnan(velocity[2 * clause]):
        return float(velocity[2 * clause]), float(velocity[2 * clause + 1])
    angle = _GOLDEN_ANGLE * clause
    return typical * math.cos(angle), typical * math.sin(angle)


@inline_kernel
def in_parts(distance, half):
    """A distance as a multiple of twice `half`, limited to a few multiples."""
    if abs(distance) * 0.125 >= half:
        return 0.0 if distance == 0.0 else math.copysign(_MOST_PARTS, distance)
    return distance * 0.5 / half


@kernel
def take_motion(work, motion, start, stop, region_at):
    """Write location and velocity of some clauses to `sample`, relative to the region; returns how many, and how many cross its
    border in a time step in which all report. Paper: the sum of min(1, zeta), zeta = |v_x| / W + |v_y| / H."""
    work, motion = borrow(work), borrow(motion)
    order, box, clause, region, sample = work.order, work.box, work.clause, work.item_region, work.sample
    velocity, typical = motion.velocity, motion.facts[TYPICAL_SPEED]
    # Halved, since the difference of two finite numbers may not be finite.
    left, bottom = region[region_at] * 0.5, region[region_at + 1] * 0.5
    width, height = region[region_at + 2] * 0.5 - left, region[region_at + 3] * 0.5 - bottom
    step = (stop - start + SAMPLE - 1) // SAMPLE
    n, n_crossing = 0, 0.0
    for at in range(start, stop, step):
        local = 4 * order[at]
        vx, vy = velocity_of(velocity, typical, clause[order[at]])
        x, y = box[local] * 0.25 + box[local + 2] * 0.25 - left, box[local + 1] * 0.25 + box[local + 3] * 0.25 - bottom
        sample[n], sample[SAMPLE + n] = in_parts(x * 2.0, width), in_parts(y * 2.0, height)
        sample[2 * SAMPLE + n], sample[3 * SAMPLE + n] = in_parts(vx, width), in_parts(vy, height)
        n_crossing += min(1.0, abs(sample[2 * SAMPLE + n]) + abs(sample[3 * SAMPLE + n]))
        n += 1
    return n, n_crossing


@inline_kernel
def cell_of(x, y, per_axis):
    """The cell of a uniform grid; the number of cells if the point is outside."""
    if x >= 0.0 and x <= 1.0 and y >= 0.0 and y <= 1.0:
        return min(per_axis - 1, int(y * per_axis)) * per_axis + min(per_axis - 1, int(x * per_axis))
    return per_axis * per_axis


@kernel
def drift_after(sample, n, per_axis, steps, count):
    """How far the distribution of the sample has moved after `steps` time steps: a smoothed divergence.

    The bias of sampling is subtracted: each clause that changed cells adds a difference.
    """
    n_bins = per_axis * per_axis + 1
    then, now = count[: count.size // 2], count[count.size // 2 :]
    for cell in range(n_bins):
        then[cell], now[cell] = 0, 0
    n_changed = 0
    for i in range(n):
        x, y = sample[i], sample[SAMPLE + i]
        old = cell_of(x, y, per_axis)
        new = cell_of(x + sample[2 * SAMPLE + i] * steps, y + sample[3 * SAMPLE + i] * steps, per_axis)
        then[old] += 1
        now[new] += 1
        n_changed += old != new
    scale = n + _SMOOTHING * n_bins
    total = 0.0
    for cell in range(n_bins):
        total += (then[cell] + _SMOOTHING) / scale * np.log((then[cell] + _SMOOTHING) / (now[cell] + _SMOOTHING))
    return total - n_bins * (n_changed / n) / n


@kernel
def steps_until_drift(work, n, reports, most_steps, fanout, limit):
    """The time steps until a node whose clauses are sampled has drifted, at least 1 and at most `most_steps`.

    Paper: Algorithm 8, whose line 8 goes one step too far.
    """
    sample, count = work.sample, work.counts
    per_axis = 1
    while (per_axis + 1) * (per_axis + 1) <= fanout:
        per_axis += 1
    steps = 1.0
    while steps < most_steps and drift_after(sample, n, per_axis, steps * reports, count) <= limit:
        steps += 1.0
    return steps


@kernel
def motion_cost(tree, motion, work, options, last, n_keys):
    """What moving adds to the cost of dividing an item by space, in verifications for each message that comes to the node."""
    facts, item = motion.facts, work.item
    at = last * ITEM_FIELDS
    start, stop = item[at + START], item[at + STOP]
    arrivals = facts[ARRIVALS] * tree.share[item[at + NODE]]
    if arrivals <= 0.0:
        return 0.0
    n = stop - start
    fanout, depth, reports = float(options.fanout), float(item[at + DEPTH]), facts[REPORTS]
    n_sampled, n_crossing = take_motion(work, motion, start, stop, last * REGION_FIELDS)
    # Equations 8 and 9: removed from one leaf and filed in another, along the path from the root, with this node.
    updates = reports * n_crossing * (n / n_sampled) * 2.0 * depth * np.log2(fanout)
    cost = facts[UPDATE_WEIGHT] * updates
    if options.drift_limit >= 0.0 and n >= LEAST_SHARE * tree.head[N_FILED]:
        # Equations 11 to 13. Smaller nodes are never rebuilt for drift.
        height = max(0.0, np.log(n / options.leaf_size) / np.log(fanout))
        rebuild = (n * np.log2(fanout) + n * np.sqrt(fanout) + fanout * n_keys) * (height + 1.0)
        limit = options.drift_limit + options.noise_weight * fanout / (2.0 * n)
        cost += facts[REBUILD_WEIGHT] * rebuild / steps_until_drift(work, n_sampled, reports, facts[MOST_STEPS], fanout, limit)
    return cost / arrivals
