"""Safe regions as circles and boxes: how far each subscriber may travel without a report.

A safe region is a radius around the position that a subscriber reported last. While the subscriber stays within, no message
enters or leaves its result. When a message arrives for which this may no longer hold, the subscriber is asked for its position.
Until then its result is that of the reported position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseBatch, ClauseStore, take_lists
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.messages import MessageBatch
from nearcast.engine.clause_building import WORLD
from nearcast.engine.groups import Groups, Work
from nearcast.engine.registry import create, names_of
from nearcast.kernels.checks import PLAIN
from nearcast.kernels.shapes import NO_SHAPE
from nearcast.model.regions import Box, Circle, Region
from nearcast.moving.index import Boxes
from nearcast.moving.kernels.safe_regions import BOX, CIRCLE, NOT_SAFE, find_affected, shrink_radii
from nearcast.moving.state import MovingState

# Allowance for rounding: relative, for coordinates and lengths; in metres, for great-circle distances.
_RELATIVE = 1e-12
_METRES = 0.25
# Cancelled safe regions are cleared away when there are more of them than valid ones, and at least this many.
_LEAST_DEAD = 1024
_LARGEST = float(np.finfo(np.float64).max)
# Loaded by name, because it is an index of `papers`.
_INDEX = "adaptive_tree"


class _Index(Protocol):
    """The methods of a boolean index that find the subscribers a message may affect."""

    def build(self, clauses: ClauseStore) -> None: ...

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None: ...

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None: ...

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]: ...


def _empty_index() -> _Index:
    index: _Index = create(names_of("boolean"), _INDEX, {})
    return index


class Extents(NamedTuple):
    """Regions as columns: kind, middle, and how far each reaches from there (a circle: its radius, twice)."""

    kind: NDArray[np.uint8]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    half_width: NDArray[np.float64]
    half_height: NDArray[np.float64]


class SafeRegions:
    """The safe regions of one matcher. `reach`: the largest radius, as a multiple of the size of a subscriber's region.

    Boxes and circles have safe regions, whatever the interest. A region of another shape must be reported at every move.
    """

    def __init__(self, reach: float = 4.0) -> None:
        self._reach = reach
        self._radius: NDArray[np.float64] = np.zeros(0)
        self._extents = Extents(np.zeros(0, np.uint8), *(np.zeros(0) for _ in range(4)))
        self._bounds: NDArray[np.float64] = np.zeros((4, 0))
        self._clauses = ClauseStore()
        self._index = _empty_index()
        self._ids: Identifiers | None = None

    # --- assigning safe regions --------------------------------------------------------------------------------------

    def assign(self, state: MovingState, numbers: NDArray[np.int32]) -> dict[int, Region]:
        """Assign a safe region to each of these (known, distinct) subscribers: where the middle of its region may go."""
        self.cancel(state, numbers)
        extents, is_everywhere = extents_of(state, numbers)
        self._note(numbers, extents)
        with np.errstate(over="ignore"):
            reach = self._reach * np.maximum(extents.half_width, extents.half_height)
            bounds = _bounds(state, extents, reach)
        # A circle across the antimeridian, or a box that reaches to the end of the plane.
        is_eligible = (extents.kind != NOT_SAFE) & np.isfinite(bounds).all(axis=0) & ~is_everywhere
        radius = np.where(is_eligible, reach, 0.0)
        eligible = np.flatnonzero(is_eligible)
        self._shrink(state, numbers[eligible], bounds[:, eligible], radius, eligible)
        radius = np.maximum(0.0, radius - _margin(state, extents, radius))
        self._radius[numbers], self._bounds[:, numbers] = radius, bounds
        self._insert_keywords(state, numbers[radius > 0.0])
        world = WORLD[state.subscriptions.space]
        return {
            number: world if everywhere else _region(kind, x, y, r)
            for number, everywhere, kind, x, y, r in zip(
                numbers.tolist(),
                is_everywhere,
                extents.kind,
                extents.x.tolist(),
                extents.y.tolist(),
                radius.tolist(),
                strict=True,
            )
        }

    def _shrink(
        self,
        state: MovingState,
        numbers: NDArray[np.int32],
        bounds: NDArray[np.float64],
        radius: NDArray[np.float64],
        rows: NDArray[np.int64],
    ) -> None:
        """Shrink the radii at `rows` to where the first message would enter or leave."""
        slots, row = clause_slots(state.subscriptions.clauses, numbers)
        groups, _ = state.index.find_messages_in(
            state.subscriptions.clauses, state.messages, slots, Boxes(*bounds[:, row].copy())
        )
        row_of = np.empty(state.subscriptions.clauses.n, np.int64)
        row_of[slots] = row
        live = state.messages.layout()
        shrunk = radius[rows]
        boxes = (live.x0, live.y0, live.x1, live.y1)
        clause, message = groups.pairs()
        pairs = row_of[clause]
        shrink_radii(tuple(self._extents), state.subscriptions.space.is_lonlat, numbers, pairs, boxes, message, shrunk)
        radius[rows] = shrunk

    def cancel(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """Cancel the safe regions of these subscribers: they have reported, or were removed."""
        self._follow_renumbering(state)
        self._reserve(state.subscriptions.ids.n)
        self._delete_keywords(numbers[self._radius[numbers] > 0.0])
        self._radius[numbers] = 0.0

    def affected(self, state: MovingState, batch: MessageBatch) -> NDArray[np.int32]:
        """The subscribers whose position must be known before these messages are added."""
        self._follow_renumbering(state)
        if self._clauses.n_alive == 0:
            return np.empty(0, np.int32)
        groups, _ = self._index.match(self._clauses, batch)
        message, clause = groups.pairs()
        subscription, arrays = self._clauses.checks().subscription[clause], batch.arrays
        is_affected = np.zeros(len(self._radius), np.uint8)
        boxes = (arrays.x0, arrays.y0, arrays.x1, arrays.y1)
        # With rounding, rather ask too many subscribers than too few.
        radius = self._radius + 2.0 * _margin(state, self._extents, self._radius)
        find_affected(
            tuple(self._extents), state.subscriptions.space.is_lonlat, radius, subscription, boxes, message, is_affected
        )
        return np.flatnonzero(is_affected).astype(np.int32)

    # --- impact regions: where a message may affect a subscriber -----------------------------------------------------

    def _insert_keywords(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """File the keywords of subscribers with a box around all their regions may reach. Paper: the impact region."""
        if len(numbers) == 0:
            return
        slots, row = clause_slots(state.subscriptions.clauses, numbers)
        layout, subscription = state.subscriptions.clauses.layout(), numbers[row]
        start, keyword = take_lists(layout.keyword_start, layout.keyword, slots)
        bounds = self._impact_region(state, subscription)
        n_before = self._clauses.n_alive
        new = self._clauses.add(ClauseBatch(subscription, start, keyword, *(bound.copy() for bound in bounds)))
        if len(new) > n_before:
            self._index.build(self._clauses)
        else:
            self._index.insert(self._clauses, new)

    def _impact_region(self, state: MovingState, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
        """The box in which a message may affect each of these subscribers."""
        bounds = self._bounds[:, numbers]
        if not state.subscriptions.space.is_lonlat:
            max_reach = self._radius[numbers] * (1.0 + _RELATIVE)
            middle = np.array([self._extents.x[numbers], self._extents.y[numbers]])
            size = np.array([self._extents.half_width[numbers], self._extents.half_height[numbers]]) + max_reach
            slack = _RELATIVE * (np.abs(middle) + size)
            inner = np.concatenate([middle - size - slack, middle + size + slack])
            bounds = np.concatenate([np.maximum(bounds[:2], inner[:2]), np.minimum(bounds[2:], inner[2:])])
        return bounds

    def _delete_keywords(self, numbers: NDArray[np.int32]) -> None:
        slots = self._clauses.remove(numbers)
        if len(slots):
            self._index.delete(self._clauses, slots)

    def _follow_renumbering(self, state: MovingState) -> None:
        """Update the numbers of subscribers when the engine has renumbered them; clear away cancelled safe regions."""
        n_dead = self._clauses.n - self._clauses.n_alive
        if self._ids is state.subscriptions.ids and n_dead <= max(_LEAST_DEAD, self._clauses.n_alive):
            return
        if self._ids is not None:
            old = np.flatnonzero(self._radius > 0.0)
            extents, radius, bounds = _each(self._extents, lambda column: column[old]), self._radius[old], self._bounds[:, old]
            numbers = state.subscriptions.ids.find(self._ids.take(old.astype(np.int32)))
            self._radius = np.zeros(0)
            self._reserve(state.subscriptions.ids.n)
            self._note(numbers, extents)
            self._radius[numbers], self._bounds[:, numbers] = radius, bounds
            self._clauses, self._index = ClauseStore(), _empty_index()
            self._insert_keywords(state, numbers)
        self._ids = state.subscriptions.ids

    def _note(self, numbers: NDArray[np.int32], extents: Extents) -> None:
        for name in Extents._fields:
            getattr(self._extents, name)[numbers] = getattr(extents, name)

    def _reserve(self, n: int) -> None:
        missing = n - len(self._radius)
        if missing > 0:
            missing += n // 4
            self._radius = np.pad(self._radius, (0, missing))
            self._extents = _each(self._extents, lambda column: np.resize(column, len(self._radius)))
            self._bounds = np.resize(self._bounds, (4, len(self._radius)))


def _each(extents: Extents, change: Callable[[Any], Any]) -> Extents:
    return Extents(*map(change, extents))


def clause_slots(clauses: ClauseStore, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """All clauses of these subscribers; for each, the row of its subscriber in `numbers`."""
    first, count = clauses.spans(numbers)
    row = np.repeat(np.arange(len(numbers)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return (first[row] + within).astype(np.int32), row


def extents_of(state: MovingState, numbers: NDArray[np.int32]) -> tuple[Extents, NDArray[np.bool_]]:
    """The regions of these subscribers, and which of them cover the whole space."""
    first, _ = state.subscriptions.clauses.spans(numbers)
    checks, layout, shapes = (
        state.subscriptions.clauses.checks(),
        state.subscriptions.clauses.layout(),
        state.subscriptions.shapes.layout(),
    )
    check = checks.check[first]
    shape = np.full(len(numbers), NO_SHAPE, np.int64)
    is_checked = check != PLAIN
    shape[is_checked] = checks.shape[check[is_checked]]
    x0, y0, x1, y1 = (bound[first] for bound in (layout.x0, layout.y0, layout.x1, layout.y1))
    is_box = shape == NO_SHAPE
    world = WORLD[state.subscriptions.space]
    is_everywhere = is_box & (x0 <= world.x0) & (y0 <= world.y0) & (x1 >= world.x1) & (y1 >= world.y1)
    extents = Extents(
        np.where(is_box, BOX, NOT_SAFE).astype(np.uint8),
        x0 * 0.5 + x1 * 0.5,
        y0 * 0.5 + y1 * 0.5,
        x1 * 0.5 - x0 * 0.5,
        y1 * 0.5 - y0 * 0.5,
    )
    circles = np.flatnonzero(~is_box)
    circles = circles[shapes.radius[shape[circles]] >= 0.0]
    shape_of_circle = shape[circles]
    middle = shapes.vertex_first[shapes.ring_first[shape_of_circle]]
    extents.kind[circles] = CIRCLE
    extents.x[circles], extents.y[circles] = shapes.x[middle], shapes.y[middle]
    extents.half_width[circles] = extents.half_height[circles] = shapes.radius[shape_of_circle]
    return extents, is_everywhere


def _bounds(state: MovingState, extents: Extents, reach: NDArray[np.float64]) -> NDArray[np.float64]:
    """A box around everything within reach of each region; infinite if one box is not enough."""
    max_reach = reach * (1.0 + _RELATIVE)
    size = np.array([extents.half_width + max_reach, extents.half_height + max_reach])
    middle = np.array([extents.x, extents.y])
    slack = _RELATIVE * (np.abs(middle) + size)
    bounds = np.concatenate([middle - size - slack, middle + size + slack])
    if state.subscriptions.space.is_lonlat:
        for at in np.flatnonzero(extents.kind == CIRCLE).tolist():
            wider = Circle(float(extents.x[at]), float(extents.y[at]), float(extents.half_width[at] + max_reach[at]) + _METRES)
            boxes = wider.covering_boxes(state.subscriptions.space)
            bounds[:, at] = boxes[0].bounds if len(boxes) == 1 else np.inf
    return bounds


def _margin(state: MovingState, extents: Extents, radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """An upper bound on rounding errors."""
    # Term by term: the sum of coordinates at the end of the plane is not finite.
    margin = _RELATIVE * np.abs(extents.x) + _RELATIVE * np.abs(extents.y) + _RELATIVE * radius
    margin += _RELATIVE * np.maximum(extents.half_width, extents.half_height)
    if state.subscriptions.space.is_lonlat:
        margin[extents.kind == CIRCLE] += _METRES
    return margin


def _region(kind: int, x: float, y: float, radius: float) -> Region:
    if kind == BOX:
        return Box(max(x - radius, -_LARGEST), max(y - radius, -_LARGEST), min(x + radius, _LARGEST), min(y + radius, _LARGEST))
    return Circle(x, y, radius)
