"""Hypothesis strategies for regions, interests, subscriptions, messages and whole worlds, on a coarse grid.

Coordinates are small whole numbers, so that borders touch; words are few, so that keyword sets overlap. Shrinks towards the
origin, few words and boxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region
from nearcast.model.subscription import RankedSubscription, Subscription
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.testing.scenarios.worlds import NUMBERS, SPACES, WORDS, World

MAX_COORDINATE = 8
_TIMES = st.one_of(st.none(), st.integers(0, 20).map(float))
_NEVER_SUBSCRIBED = ("zebra", "Ünknown")
_NEVER_SUBSCRIBED_NUMBERS = (5, -99)


@dataclass(frozen=True, slots=True)
class Traits:
    """What all rows of one world share: an engine takes one kind of ids, one kind of keywords and one space."""

    space: str = "lonlat"
    has_text_ids: bool = False
    has_numbers: bool = False


def traits(space: str | None = None) -> SearchStrategy[Traits]:
    """Any traits, or those of one space."""
    spaces = st.sampled_from(SPACES) if space is None else st.just(space)
    return st.builds(Traits, spaces, st.booleans(), st.booleans())


def coordinates() -> SearchStrategy[float]:
    """Whole numbers of the grid, sometimes halves, rarely far away."""
    whole = st.integers(0, MAX_COORDINATE).map(float)
    return st.one_of(whole, whole, whole, st.sampled_from([0.5, 2.5, -1.0, -60.0, 80.0]))


def points() -> SearchStrategy[tuple[float, float]]:
    return st.tuples(coordinates(), coordinates())


def boxes() -> SearchStrategy[Box]:
    """Also segments and points."""
    return st.tuples(points(), points(), st.sampled_from(["area", "area", "wide", "high", "point"])).map(_box)


def circles(space: str) -> SearchStrategy[Circle]:
    """In lonlat never with the distance of two grid points as radius, where the last bit would decide."""
    if space == "plane":
        radii = st.integers(0, 2 * MAX_COORDINATE).map(lambda n: n / 2)
    else:
        radii = st.integers(0, 60).map(lambda n: 1.0 + 30_011.7 * n)
    return st.builds(Circle, st.sampled_from([0.0, 3.0, 8.0, -60.0]), coordinates(), radii)


def polygons() -> SearchStrategy[Region]:
    """Triangles, frames with a hole, and multipolygons of two boxes; a box where the draw has no area."""
    grid = st.integers(0, MAX_COORDINATE)
    corners = st.tuples(st.tuples(grid, grid), st.tuples(grid, grid), st.tuples(grid, grid))
    sides = st.tuples(grid, grid, st.integers(3, 6), st.integers(3, 6))
    return st.one_of(corners.map(_triangle), sides.map(_frame), st.tuples(sides, st.booleans()).map(_two_boxes))


def regions(space: str) -> SearchStrategy[Region | None]:
    """None is everywhere."""
    return st.one_of(boxes(), boxes(), st.none(), circles(space), polygons())


def keyword_lists(has_numbers: bool, max_size: int = 5) -> SearchStrategy[list[Any]]:
    """Few words, most often the first of them; they may repeat."""
    choices = NUMBERS if has_numbers else WORDS
    positions = st.one_of(st.integers(0, 1), st.integers(0, len(choices) - 1))
    return st.lists(positions.map(lambda position: choices[position]), max_size=max_size)


def interests() -> SearchStrategy[str]:
    """AND, OR, NOT over the words; never one that cannot match at all."""
    words = st.sampled_from(WORDS)
    literal = st.one_of(words, words, words.map(lambda word: f"NOT {word}"))
    pair = st.tuples(literal, st.sampled_from(["AND", "OR"]), literal).map(lambda parts: f"({' '.join(parts)})")
    return st.one_of(literal, pair, st.tuples(pair, pair).map(lambda pairs: f"{pairs[0]} OR NOT {pairs[1]}")).filter(_can_match)


def ids(has_text: bool, n_ids: int = 12) -> SearchStrategy[Id]:
    """Few, so that they repeat."""
    numbers = st.integers(0, n_ids - 1)
    return numbers.map(lambda number: f"é{number}") if has_text else numbers


def subscriptions(traits: Traits) -> SearchStrategy[Subscription]:
    """Any id, words or interest, and region."""
    any_id, any_region = ids(traits.has_text_ids), regions(traits.space)
    plain = st.builds(Subscription, any_id, keyword_lists(traits.has_numbers), any_region)
    if traits.has_numbers:
        return plain
    return st.one_of(plain, plain, st.builds(Subscription, any_id, st.none(), any_region, interests()))


def ranked_subscriptions(traits: Traits) -> SearchStrategy[RankedSubscription]:
    """Lists of one message, of a few, and of all; where only the distance counts, or only the words."""
    words = keyword_lists(traits.has_numbers).filter(bool)
    weights = st.sampled_from([0.5, 0.0, 0.25, 1.0])
    return st.builds(RankedSubscription, ids(traits.has_text_ids), words, points(), st.sampled_from([1, 2, 3, 40]), weights)


def messages(traits: Traits) -> SearchStrategy[Message]:
    """Points and boxes, known and unknown words; ids may repeat."""
    unknown = st.sampled_from(_NEVER_SUBSCRIBED_NUMBERS if traits.has_numbers else _NEVER_SUBSCRIBED)
    words = st.tuples(keyword_lists(traits.has_numbers, 8), st.lists(unknown, max_size=1)).map(lambda both: both[0] + both[1])
    return st.builds(Message, ids(traits.has_text_ids), words, st.one_of(points(), points(), boxes()))


@st.composite
def timed_messages(draw: st.DrawFn, traits: Traits) -> Message:
    """Messages with times and ends, in no order; some have expired before they arrive, some have neither."""
    message, time = draw(messages(traits)), draw(_TIMES)
    lifetime = draw(st.one_of(st.none(), st.integers(1, 9).map(float)))
    expires = None if lifetime is None else (time or 0.0) + lifetime
    return Message(message.id, message.keywords, message.location, time=time, expires=expires)


@st.composite
def arriving_messages(draw: st.DrawFn, traits: Traits) -> Message:
    """Messages for a window: mostly at points, with times in no order."""
    message = draw(messages(traits))
    location = draw(points()) if isinstance(message.location, Box) and draw(st.integers(0, 4)) else message.location
    return Message(message.id, message.keywords, location, time=draw(_TIMES))


def document_frequencies(traits: Traits) -> SearchStrategy[tuple[dict[Any, int] | None, int]]:
    """None, or in how many of 20 documents each word is; the last words are in none."""
    words = (NUMBERS if traits.has_numbers else WORDS)[:4]
    frequencies = st.lists(st.sampled_from([20, 9, 1]), min_size=4, max_size=4)
    tables = frequencies.map(lambda counts: (dict(zip(words, counts, strict=True)), 20))
    return st.one_of(st.just((None, 0)), tables)


@st.composite
def ranked_options(draw: st.DrawFn, traits: Traits) -> dict[str, Any]:
    """What a ranker is made with: windows that hold few messages, distances beyond the maximal one and below it."""
    windows = st.one_of(st.integers(1, 9).map(CountWindow), st.integers(1, 9).map(lambda seconds: TimeWindow(float(seconds))))
    idf, n_documents = draw(document_frequencies(traits))
    return {
        "window": draw(windows),
        "space": traits.space,
        "max_distance": draw(st.sampled_from([5.0, 20.0])) * (1.0 if traits.space == "plane" else 111_000.0),
        "idf": idf,
        "n_documents": n_documents,
        "changes": draw(st.sampled_from(["tick", "net"])),
    }


def batches_of_messages(traits: Traits, max_size: int = 8) -> SearchStrategy[list[Message]]:
    """Messages with different ids."""
    return st.lists(messages(traits), max_size=max_size, unique_by=lambda message: message.id)


def worlds(space: str | None = None, max_size: int = 20) -> SearchStrategy[World]:
    """Subscriptions and messages of one world, ids different."""
    return traits(space).flatmap(
        lambda traits: st.builds(
            World, st.lists(subscriptions(traits), max_size=max_size, unique_by=lambda s: s.id), batches_of_messages(traits)
        )
    )


def _box(drawn: tuple[tuple[float, float], tuple[float, float], str]) -> Box:
    (xa, ya), (xb, yb), kind = drawn
    if kind in ("high", "point"):
        xb = xa
    if kind in ("wide", "point"):
        yb = ya
    return Box(min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb))


def _triangle(corners: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]) -> Region:
    (xa, ya), (xb, yb), (xc, yc) = corners
    if (xb - xa) * (yc - ya) == (xc - xa) * (yb - ya):
        return Box(min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb))
    return Polygon([corners])


def _frame(sides: tuple[int, int, int, int]) -> Region:
    x, y, width, height = sides
    return Polygon([_ring(x, y, x + width, y + height), _ring(x + 1, y + 1, x + width - 1, y + height - 1)])


def _two_boxes(drawn: tuple[tuple[int, int, int, int], bool]) -> Region:
    (x, y, width, height), is_touching = drawn
    apart = 0 if is_touching else 1
    first = _ring(x, y, x + width, y + height)
    return MultiPolygon([[first], [_ring(x + width + apart, y + height, x + 2 * width, y + height + 2)]])


def _ring(x0: int, y0: int, x1: int, y1: int) -> list[tuple[int, int]]:
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def _can_match(interest: str) -> bool:
    try:
        Subscription(0, interest=interest)
    except ValueError:
        return False
    return True
