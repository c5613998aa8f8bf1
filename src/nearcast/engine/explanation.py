"""Explain in words why a message reaches a subscription, or the first reason why it does not."""

from __future__ import annotations

import numpy as np

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.verification import message_box
from nearcast.kernels.checks import PLAIN
from nearcast.kernels.shapes import NO_SHAPE
from nearcast.model.regions import Box, Region
from nearcast.model.spaces import Space


def explain_match(
    clauses: ClauseStore, shapes: ShapeStore, keywords: KeywordKind, space: Space, messages: MessageBatch, slots: range
) -> tuple[bool, list[str], int]:
    """Whether the first message matches, the reasons, and the clause they are about.

    With several alternatives it is the one that matches; if none does, the one that fails last.
    """
    best: tuple[int, list[str], int] | None = None
    for slot in slots:
        rank, reasons = _explain_clause(clauses, shapes, keywords, space, messages, slot)
        if best is None or rank > best[0]:
            best = (rank, reasons, slot)
    assert best is not None
    rank, reasons, slot = best
    if len(slots) > 1:
        reasons = [f"the best of {len(slots)} alternatives:", *reasons]
    return rank == 3, reasons, slot


def _explain_clause(
    clauses: ClauseStore, shapes: ShapeStore, keywords: KeywordKind, space: Space, messages: MessageBatch, slot: int
) -> tuple[int, list[str]]:
    """How far a clause got (0 region, 1 required, 2 forbidden, 3 matched) and why."""
    layout, checks = clauses.layout(), clauses.checks()
    box = message_box(messages, 0)
    present = messages.arrays.keyword
    required = layout.keyword[layout.keyword_start[slot] : layout.keyword_start[slot + 1]]
    check = int(checks.check[slot])
    forbidden = np.empty(0, np.int32)
    region: Region = Box(*(float(bound[slot]) for bound in (layout.x0, layout.y0, layout.x1, layout.y1)))
    if check != PLAIN:
        forbidden = checks.forbidden[checks.forbidden_start[check] : checks.forbidden_start[check + 1]]
        if checks.shape[check] != NO_SHAPE and region.meets(box, space):
            region = shapes.region(int(checks.shape[check]))
    location = f"point ({box.x0!r}, {box.y0!r})" if box.x0 == box.x1 and box.y0 == box.y1 else f"area {box!r}"

    def names(ids: np.ndarray) -> str:
        return ", ".join(repr(keywords.space.name(int(keyword))) for keyword in ids)

    if not region.meets(box, space):
        return 0, [f"the {location} of the message lies outside the region {region!r}"]
    reasons = [f"the {location} of the message lies in the region {region!r}"]
    missing = required[~np.isin(required, present)]
    if len(missing):
        return 1, [f"the message lacks the keyword {names(missing[:1])} (of required {names(required)})"]
    reasons.append(
        f"the message has every required keyword: {names(required)}" if len(required) else "no keywords are required"
    )
    present_forbidden = forbidden[np.isin(forbidden, present)]
    if len(present_forbidden):
        return 2, [f"the message has the forbidden keyword {names(present_forbidden[:1])}"]
    if len(forbidden):
        reasons.append(f"the message has none of the forbidden keywords: {names(forbidden)}")
    return 3, reasons
