"""Subscriptions read and validated, into clauses: alternatives × boxes that cover the region, with the checks they need."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast import settings
from nearcast.columns.clauses import ClauseBatch
from nearcast.columns.messages import keyword_sets_of
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.kernels.shapes import NO_SHAPE
from nearcast.model.dnf import Clause
from nearcast.model.normalise import Keyword
from nearcast.model.regions import Box, Region
from nearcast.model.spaces import Space

# Where a subscription without a region is interested.
WORLD = {
    Space.LONLAT: Box(-180.0, -90.0, 180.0, 90.0),
    Space.PLANE: Box(-sys.float_info.max, -sys.float_info.max, sys.float_info.max, sys.float_info.max),
}


@dataclass(slots=True)
class ParsedSubscription:
    """A subscription with its alternatives spelled out; `row` is its place in the input."""

    row: int
    clauses: tuple[Clause, ...]
    region: Region | None


@dataclass(slots=True)
class PlainSubscriptions:
    """Subscriptions that are one clause each: a box and keyword ids."""

    row: NDArray[np.int64]
    required_start: NDArray[np.int64]
    required: NDArray[np.int32]
    boxes: list[NDArray[np.float64]]


def clauses_of_plain(plain: PlainSubscriptions, numbers: NDArray[np.int32]) -> ClauseBatch:
    """One clause per subscription."""
    x0, y0, x1, y1 = plain.boxes
    return ClauseBatch(numbers, plain.required_start, plain.required, x0, y0, x1, y1)


def clauses_of_parsed(
    parsed: Sequence[ParsedSubscription], numbers: NDArray[np.int32], space: Space, kind: KeywordKind, shapes: ShapeStore
) -> ClauseBatch:
    """The product of a subscription's alternatives and the boxes that cover its region."""
    clause_numbers, bounds, shape_of, is_checked = [], [], [], []
    required: list[tuple[Keyword, ...]] = []
    forbidden: list[tuple[Keyword, ...]] = []
    for subscription, number in zip(parsed, numbers.tolist(), strict=True):
        boxes, shape = cover_region(subscription.region, space, shapes)
        needs_check = len(subscription.clauses) * len(boxes) > 1 or shape != NO_SHAPE
        for clause in subscription.clauses:
            for box in boxes:
                clause_numbers.append(number)
                bounds.append(box.bounds)
                shape_of.append(shape)
                is_checked.append(needs_check or bool(clause.forbidden))
                required.append(tuple(clause.required))
                forbidden.append(tuple(clause.forbidden))
    required_start, required_ids = _encode_sets(required, kind)
    forbidden_start, forbidden_ids = _encode_sets(forbidden, kind)
    x0, y0, x1, y1 = np.array(bounds, np.float64).reshape(-1, 4).T.copy()
    checked = np.array(is_checked, bool)
    return ClauseBatch(
        np.array(clause_numbers, np.int32),
        required_start,
        required_ids,
        x0,
        y0,
        x1,
        y1,
        checked if checked.any() else None,
        forbidden_start,
        forbidden_ids,
        np.array(shape_of, np.int32),
    )


def cover_region(where: Region | None, space: Space, shapes: ShapeStore) -> tuple[list[Box], int]:
    """The boxes that cover a region, and its number among the shapes (NO_SHAPE: the boxes are the region)."""
    if where is None:
        return [WORLD[space]], NO_SHAPE
    if isinstance(where, Box):
        return [where], NO_SHAPE
    return where.covering_boxes(space, settings.limit("max_covering_boxes")), shapes.add(where)


def _encode_sets(sets: Sequence[tuple[Keyword, ...]], kind: KeywordKind) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.concatenate([[0], np.cumsum([len(members) for members in sets])]).astype(np.int64)
    flat = [keyword for members in sets for keyword in members]
    return keyword_sets_of(starts, kind.add(flat))
