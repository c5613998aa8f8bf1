"""Safe regions: how far each subscriber may travel before the engine must hear of it.

A promise is a radius around the place that a subscriber reported last: while it stays within, no message enters or leaves its
result. A message that arrives where this may no longer hold makes the subscriber one to be contacted; until then its result is
that of the place it reported.
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
from nearcast.moving.kernels.safe_regions import BOX, CIRCLE, NOT_SAFE, find_concerned, shrink_radii
from nearcast.moving.state import MovingState

# Rounding: of coordinates and lengths, relative to them; of great-circle distances, in metres.
_RELATIVE = 1e-12
_METRES = 0.25
# Promises that are no more are cleared away when they outnumber the rest, but not before there are this many.
_LEAST_DEAD = 1024
_LARGEST = float(np.finfo(np.float64).max)
# Loaded by name: it is an index of papers.
_INDEX = "adaptive_tree"


class _Index(Protocol):
    """What is asked of the boolean index that finds whom a message concerns."""

    def build(self, clauses: ClauseStore) -> None: ...

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None: ...

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None: ...

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]: ...


def _empty_index() -> _Index:
    index: _Index = create(names_of("boolean"), _INDEX, {})
    return index


class Places(NamedTuple):
    """The region of each of some subscribers as a kind, a middle and how far it reaches from there (a circle: its radius)."""

    kind: NDArray[np.uint8]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    wide: NDArray[np.float64]
    high: NDArray[np.float64]


class SafeRegions:
    """The promises of one matcher. `reach`: the largest radius, as a multiple of the size of a subscriber's own region.

    Given to boxes and circles, whatever the interest; other regions must be reported at every move.
    """

    def __init__(self, reach: float = 4.0) -> None:
        self._reach = reach
        self._radius: NDArray[np.float64] = np.zeros(0)
        self._places = Places(np.zeros(0, np.uint8), *(np.zeros(0) for _ in range(4)))
        self._bounds: NDArray[np.float64] = np.zeros((4, 0))
        self._clauses = ClauseStore()
        self._index = _empty_index()
        self._ids: Identifiers | None = None

    # --- promises ----------------------------------------------------------------------------------------------------

    def promise(self, state: MovingState, numbers: NDArray[np.int32]) -> dict[int, Region]:
        """Where the middle of each (known, distinct) subscriber's region may go, now that it is where it is."""
        self.cancel(state, numbers)
        places, is_everywhere = places_of(state, numbers)
        self._note(numbers, places)
        with np.errstate(over="ignore"):
            reach = self._reach * np.maximum(places.wide, places.high)
            bounds = _bounds(state, places, reach)
        # A circle across the antimeridian, or a box that reaches to the end of the plane.
        is_able = (places.kind != NOT_SAFE) & np.isfinite(bounds).all(axis=0) & ~is_everywhere
        radius = np.where(is_able, reach, 0.0)
        able = np.flatnonzero(is_able)
        self._shrink(state, numbers[able], bounds[:, able], radius, able)
        radius = np.maximum(0.0, radius - _margin(state, places, radius))
        self._radius[numbers], self._bounds[:, numbers] = radius, bounds
        self._file(state, numbers[radius > 0.0])
        world = WORLD[state.subscriptions.space]
        return {
            number: world if everywhere else _region(kind, x, y, r)
            for number, everywhere, kind, x, y, r in zip(
                numbers.tolist(), is_everywhere, places.kind, places.x.tolist(), places.y.tolist(), radius.tolist(), strict=True
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
        """Let the radii at `rows` end where the first message would enter or leave."""
        slots, subject = clause_slots(state.subscriptions.clauses, numbers)
        groups, _ = state.index.find_messages_in(
            state.subscriptions.clauses, state.messages, slots, Boxes(*bounds[:, subject].copy())
        )
        subject_of = np.empty(state.subscriptions.clauses.n, np.int64)
        subject_of[slots] = subject
        live = state.messages.layout()
        own = radius[rows]
        sides = (live.x0, live.y0, live.x1, live.y1)
        clause, message = groups.pairs()
        pairs = subject_of[clause]
        shrink_radii(tuple(self._places), state.subscriptions.space.is_lonlat, numbers, pairs, sides, message, own)
        radius[rows] = own

    def cancel(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """These subscribers have reported, or are no more: nothing is promised to them."""
        self._renumber(state)
        self._make_room(state.subscriptions.ids.n)
        self._unfile(numbers[self._radius[numbers] > 0.0])
        self._radius[numbers] = 0.0

    def concerned(self, state: MovingState, batch: MessageBatch) -> NDArray[np.int32]:
        """The subscribers whose place must be known before these messages are taken in."""
        self._renumber(state)
        if self._clauses.n_alive == 0:
            return np.empty(0, np.int32)
        groups, _ = self._index.match(self._clauses, batch)
        message, clause = groups.pairs()
        owner, arrays = self._clauses.checks().subscription[clause], batch.arrays
        is_concerned = np.zeros(len(self._radius), np.uint8)
        sides = (arrays.x0, arrays.y0, arrays.x1, arrays.y1)
        # Rounding errs towards contacting too many.
        radius = self._radius + 2.0 * _margin(state, self._places, self._radius)
        find_concerned(tuple(self._places), state.subscriptions.space.is_lonlat, radius, owner, sides, message, is_concerned)
        return np.flatnonzero(is_concerned).astype(np.int32)

    # --- the regions where a message concerns the promised -----------------------------------------------------------

    def _file(self, state: MovingState, numbers: NDArray[np.int32]) -> None:
        """File the keywords of subscribers with a box around where their regions may come to. Paper: the impact region."""
        if len(numbers) == 0:
            return
        slots, subject = clause_slots(state.subscriptions.clauses, numbers)
        layout, own = state.subscriptions.clauses.layout(), numbers[subject]
        start, words = take_lists(layout.keyword_start, layout.keyword, slots)
        bounds = self._impact(state, own)
        n_before = self._clauses.n_alive
        new = self._clauses.add(ClauseBatch(own, start, words, *(side.copy() for side in bounds)))
        if len(new) > n_before:
            self._index.build(self._clauses)
        else:
            self._index.insert(self._clauses, new)

    def _impact(self, state: MovingState, own: NDArray[np.int32]) -> NDArray[np.float64]:
        """The boxes in which a message may concern these subscribers."""
        bounds = self._bounds[:, own]
        if not state.subscriptions.space.is_lonlat:
            far = self._radius[own] * (1.0 + _RELATIVE)
            middle = np.array([self._places.x[own], self._places.y[own]])
            size = np.array([self._places.wide[own], self._places.high[own]]) + far
            slack = _RELATIVE * (np.abs(middle) + size)
            inner = np.concatenate([middle - size - slack, middle + size + slack])
            bounds = np.concatenate([np.maximum(bounds[:2], inner[:2]), np.minimum(bounds[2:], inner[2:])])
        return bounds

    def _unfile(self, numbers: NDArray[np.int32]) -> None:
        slots = self._clauses.remove(numbers)
        if len(slots):
            self._index.delete(self._clauses, slots)

    def _renumber(self, state: MovingState) -> None:
        """Follow the subscribers when they get other numbers; clear away what is dead."""
        n_dead = self._clauses.n - self._clauses.n_alive
        if self._ids is state.subscriptions.ids and n_dead <= max(_LEAST_DEAD, self._clauses.n_alive):
            return
        if self._ids is not None:
            old = np.flatnonzero(self._radius > 0.0)
            places, radius, bounds = _each(self._places, lambda column: column[old]), self._radius[old], self._bounds[:, old]
            numbers = state.subscriptions.ids.find(self._ids.take(old.astype(np.int32)))
            self._radius = np.zeros(0)
            self._make_room(state.subscriptions.ids.n)
            self._note(numbers, places)
            self._radius[numbers], self._bounds[:, numbers] = radius, bounds
            self._clauses, self._index = ClauseStore(), _empty_index()
            self._file(state, numbers)
        self._ids = state.subscriptions.ids

    def _note(self, numbers: NDArray[np.int32], places: Places) -> None:
        for name in Places._fields:
            getattr(self._places, name)[numbers] = getattr(places, name)

    def _make_room(self, n: int) -> None:
        missing = n - len(self._radius)
        if missing > 0:
            missing += n // 4
            self._radius = np.pad(self._radius, (0, missing))
            self._places = _each(self._places, lambda column: np.resize(column, len(self._radius)))
            self._bounds = np.resize(self._bounds, (4, len(self._radius)))


def _each(places: Places, change: Callable[[Any], Any]) -> Places:
    return Places(*map(change, places))


def clause_slots(clauses: ClauseStore, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Every clause of these subscribers, and the position of its subscriber."""
    first, count = clauses.spans(numbers)
    subject = np.repeat(np.arange(len(numbers)), count)
    within = np.arange(len(subject)) - np.repeat(np.cumsum(count) - count, count)
    return (first[subject] + within).astype(np.int32), subject


def places_of(state: MovingState, numbers: NDArray[np.int32]) -> tuple[Places, NDArray[np.bool_]]:
    """Where subscribers are, and whether they are everywhere."""
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
    x0, y0, x1, y1 = (side[first] for side in (layout.x0, layout.y0, layout.x1, layout.y1))
    is_box = shape == NO_SHAPE
    world = WORLD[state.subscriptions.space]
    is_everywhere = is_box & (x0 <= world.x0) & (y0 <= world.y0) & (x1 >= world.x1) & (y1 >= world.y1)
    places = Places(
        np.where(is_box, BOX, NOT_SAFE).astype(np.uint8),
        x0 * 0.5 + x1 * 0.5,
        y0 * 0.5 + y1 * 0.5,
        x1 * 0.5 - x0 * 0.5,
        y1 * 0.5 - y0 * 0.5,
    )
    round_ = np.flatnonzero(~is_box)
    round_ = round_[shapes.radius[shape[round_]] >= 0.0]
    own = shape[round_]
    middle = shapes.vertex_first[shapes.ring_first[own]]
    places.kind[round_] = CIRCLE
    places.x[round_], places.y[round_] = shapes.x[middle], shapes.y[middle]
    places.wide[round_] = places.high[round_] = shapes.radius[own]
    return places, is_everywhere


def _bounds(state: MovingState, places: Places, reach: NDArray[np.float64]) -> NDArray[np.float64]:
    """A box around everything within reach of each region; infinite where there is no single one."""
    far = reach * (1.0 + _RELATIVE)
    size = np.array([places.wide + far, places.high + far])
    middle = np.array([places.x, places.y])
    slack = _RELATIVE * (np.abs(middle) + size)
    bounds = np.concatenate([middle - size - slack, middle + size + slack])
    if state.subscriptions.space.is_lonlat:
        for at in np.flatnonzero(places.kind == CIRCLE).tolist():
            wider = Circle(float(places.x[at]), float(places.y[at]), float(places.wide[at] + far[at]) + _METRES)
            boxes = wider.covering_boxes(state.subscriptions.space)
            bounds[:, at] = boxes[0].bounds if len(boxes) == 1 else np.inf
    return bounds


def _margin(state: MovingState, places: Places, radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """What rounding may amount to."""
    # Each by itself: the sum of what reaches to the end of the plane is not finite.
    margin = _RELATIVE * np.abs(places.x) + _RELATIVE * np.abs(places.y) + _RELATIVE * radius
    margin += _RELATIVE * np.maximum(places.wide, places.high)
    if state.subscriptions.space.is_lonlat:
        margin[places.kind == CIRCLE] += _METRES
    return margin


def _region(kind: int, x: float, y: float, radius: float) -> Region:
    if kind == BOX:
        return Box(max(x - radius, -_LARGEST), max(y - radius, -_LARGEST), min(x + radius, _LARGEST), min(y + radius, _LARGEST))
    return Circle(x, y, radius)
