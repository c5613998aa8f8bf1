"""The engines of one service: a matcher and a moving matcher shared by all tenants, a ranker for each tenant that ranks.

Only the writer changes them; other threads may ask. Words of tenant and tags are required keywords; they would change the
relevance of ranked messages, so rankers are kept apart instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError
from nearcast.model.delivery import MatchReport
from nearcast.model.regions import Box, Region
from nearcast.model.window import CountWindow
from nearcast.moving.engine import MovingMatcher
from nearcast.ranked.engine import Ranker
from nearcast.service.engines.audiences import Audiences
from nearcast.service.engines.engine_events import Told, joined, nothing, told_by_moving, told_by_ranker
from nearcast.service.engines.geofence_state import Presences
from nearcast.service.geometry import Point, is_inside
from nearcast.service.intake.messages import Posted
from nearcast.service.intake.subscriptions import Standing
from nearcast.service.intake.tenant_keywords import without_reserved
from nearcast.storage.pages import Events, match_events


class Engines:
    """Files subscriptions, matches messages, moves; tells what happened."""

    def __init__(self, matcher: Matcher, ranked_window: int, middle_of: Callable[[int], Point | None]) -> None:
        """`middle_of` tells where a stationary subscription is, by its number."""
        self.matcher = matcher
        self._middle_of = middle_of
        self.moving = MovingMatcher()
        self.rankers: dict[str, Ranker] = {}
        self.audiences = Audiences()
        self.presences = Presences()
        self.has_moving = False
        """Whether messages are handed to the moving matcher; from the first moving subscription on."""
        self.matched = (0, 0, 0)
        """Messages that were matched, clauses tested for them, and deliveries, since the start."""
        self.n_living = 0
        """Messages that moving subscriptions see, as of the last batch; to be asked without waiting for the engine."""
        self._ranked_window = ranked_window

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def put(self, standing: Sequence[Standing]) -> Told:
        """File subscriptions; of moving and ranked ones, the living messages that they have at once."""
        boolean = [one for one in standing if one.kind == "boolean"]
        if boolean:
            self._put_boolean(boolean)
        parts = []
        moving = [one for one in standing if one.kind == "moving"]
        if moving:
            for one in moving:
                self.audiences.middle[one.number] = one.middle
                self.presences.regions[one.number] = one.region
            table = self.moving.subscribe_table(_plain_table(moving)) if all(one.is_plain for one in moving) else None
            told = _told_by_objects(self.moving, moving) if table is None else told_by_moving(table)
            _check_report(self.moving.report)
            parts += [self.audiences.filtered(told), self.audiences.moved([one.number for one in moving])]
            self.has_moving = True
        by_tenant: dict[str, list[Standing]] = {}
        for one in standing:
            if one.kind == "ranked":
                by_tenant.setdefault(one.tenant, []).append(one)
        for tenant, ranked in by_tenant.items():
            ranker = self.rankers[tenant]
            table = ranker.subscribe_table(_ranked_table(ranked))
            _check_report(ranker.report)
            parts.append(_with_ranks(ranker, table))
        return joined(parts)

    def _put_boolean(self, standing: list[Standing]) -> None:
        plain = [one for one in standing if one.is_plain]
        if plain:
            self.matcher.subscribe_table(_plain_table(plain))
            _check_report(self.matcher.report)
        others = [one.boolean() for one in standing if not one.is_plain]
        if others:
            self.matcher.subscribe(others)
            _check_report(self.matcher.report)

    def remove(self, kind: str, tenant: str, numbers: Sequence[int]) -> None:
        """Forget subscriptions of a kind."""
        if kind == "boolean":
            self.matcher.unsubscribe(numbers)
        elif kind == "moving":
            self.moving.unsubscribe(numbers)
            for number in numbers:
                self.audiences.forget_subscription(number)
                self.presences.regions.pop(number, None)
        elif tenant in self.rankers:
            self.rankers[tenant].unsubscribe(numbers)

    def start_moving(self, posted: Sequence[Posted], sequences: Sequence[int], now: float) -> None:
        """Hand the living messages of the past to the moving matcher, before there are subscriptions."""
        self.has_moving = True
        for one, sequence in zip(posted, sequences, strict=True):
            if one.audience is not None:
                self.audiences.add(sequence, one.audience, one.expires)
        if posted:
            self.moving.publish_table(_living_table(posted, np.array(sequences, np.int64), now))

    def start_ranking(self, tenant: str, posted: Sequence[Posted], sequences: Sequence[int]) -> None:
        """Make the ranker of a tenant, its window filled with messages of the past, oldest first."""
        ranker = Ranker(CountWindow(self._ranked_window), changes="net")
        self.rankers[tenant] = ranker
        if posted:
            ranker.publish_table(_ranked_messages(posted, np.array(sequences, np.int64)))

    # --- messages ----------------------------------------------------------------------------------------------------

    def match(self, posted: Sequence[Posted], first: int) -> Events:
        """Deliveries to boolean subscriptions; the message at row i has sequence first + i."""
        sequence = np.arange(first, first + len(posted), dtype=np.int64)
        found = self.matcher.match_table(_message_table(posted, sequence))
        report, (messages, candidates, matches) = self.matcher.report, self.matched
        self.matched = (messages + report.messages, candidates + report.candidates, matches + report.matches)
        if not found.num_rows:
            empty = np.empty(0, np.int64)
            return match_events(empty, empty)
        message, subscription = (np.asarray(found[name].combine_chunks()) for name in ("message_id", "subscription_id"))
        rows = [row for row, one in enumerate(posted) if one.audience is not None]
        if rows:
            wanted = self._in_audience(posted, message - first, subscription, rows)
            message, subscription = message[wanted], subscription[wanted]
        return match_events(subscription, message)

    def _in_audience(
        self, posted: Sequence[Posted], row: NDArray[np.int64], subscription: NDArray[np.int64], rows: list[int]
    ) -> NDArray[np.bool_]:
        wanted = np.ones(len(row), bool)
        for at in np.flatnonzero(np.isin(row, rows)).tolist():
            audience, middle = posted[row[at]].audience, self._middle_of(int(subscription[at]))
            wanted[at] = audience is not None and middle is not None and is_inside(audience, middle)
        return wanted

    def arrive(self, posted: Sequence[Posted], first: int, now: float) -> Told:
        """Messages come to moving subscribers; what has expired leaves."""
        # One that lived shorter than it waited for its turn never comes to them.
        living = [row for row, one in enumerate(posted) if one.expires > now]
        for row in living:
            audience = posted[row].audience
            if audience is not None:
                self.audiences.add(first + row, audience, posted[row].expires)
        table = _living_table([posted[row] for row in living], first + np.array(living, np.int64), now)
        told = told_by_moving(self.moving.publish_table(table))
        _check_report(self.moving.report)
        self._count_living()
        return self.audiences.filtered(told)

    def rank(self, posted: Sequence[Posted], first: int) -> Told:
        """Messages come to the rankers of their tenants. Those with an audience are not for everyone, and so not ranked."""
        parts = []
        for tenant, ranker in self.rankers.items():
            rows = [row for row, one in enumerate(posted) if one.tenant == tenant and one.audience is None]
            if rows:
                some, sequence = [posted[row] for row in rows], first + np.array(rows, np.int64)
                parts.append(_with_ranks(ranker, ranker.publish_table(_ranked_messages(some, sequence))))
        return joined(parts)

    def move(self, regions: dict[int, tuple[Region, Point]]) -> Told:
        """Moving subscribers are elsewhere."""
        for number, (region, middle) in regions.items():
            self.audiences.middle[number] = middle
            self.presences.regions[number] = region
        changes = self.moving.move({number: region for number, (region, _) in regions.items()})
        _check_report(self.moving.report)
        told = told_by_moving(
            pa.table(
                {
                    "subscription_id": pa.array([one.subscription_id for one in changes], pa.int64()),
                    "message_id": pa.array([one.message_id for one in changes], pa.int64()),
                    "change": pa.array([one.change for one in changes], pa.int8()),
                }
            )
        )
        # First those that match no more or anew, then those that matched all the time.
        filtered = self.audiences.filtered(told)
        return joined([filtered, self.audiences.moved(regions)])

    def advance(self, now: float) -> Told:
        """Time goes on: messages expire."""
        told = told_by_moving(self.moving.advance_table(now))
        self._count_living()
        filtered = self.audiences.filtered(told)
        self.audiences.forget_expired(now)
        return filtered

    def _count_living(self) -> None:
        self.n_living = int(self.moving.stats()["messages"])

    # --- insight -----------------------------------------------------------------------------------------------------

    def current(self, number: int) -> list[int]:
        """Sequences of the living messages of a moving subscription."""
        found = sorted(int(message) for message in self.moving.current(number))
        return [message for message in found if not self.audiences.hides(number, message)]

    def matcher_with(self, number: int) -> Matcher:
        """One that has a boolean subscription, to be asked about it."""
        return self.matcher

    def stats(self) -> dict[str, dict[str, float | str]]:
        told: dict[str, dict[str, float | str]] = {"boolean": {**self.matcher.stats()}, "moving": {**self.moving.stats()}}
        return told | {f"ranked.{tenant}": {**ranker.stats()} for tenant, ranker in self.rankers.items()}

    def save(self, folder: Path) -> None:
        """A snapshot of the matcher; the others are loaded from the log."""
        self.matcher.save(folder)


def _plain_table(standing: Sequence[Standing]) -> pa.Table:
    boxes = [one.region.bounds if isinstance(one.region, Box) else (None,) * 4 for one in standing]
    sides = zip(("x0", "y0", "x1", "y1"), zip(*boxes, strict=True), strict=True)
    return pa.table(
        {
            "id": pa.array([one.number for one in standing], pa.int64()),
            "keywords": pa.array([one.words for one in standing], pa.list_(pa.string())),
            **{name: pa.array(side, pa.float64()) for name, side in sides},
        }
    )


def _ranked_table(standing: Sequence[Standing]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([one.number for one in standing], pa.int64()),
            "keywords": pa.array([one.words for one in standing], pa.list_(pa.string())),
            "x": pa.array([one.middle[0] if one.middle else None for one in standing], pa.float64()),
            "y": pa.array([one.middle[1] if one.middle else None for one in standing], pa.float64()),
            "k": pa.array([one.k for one in standing], pa.int64()),
            "spatial_weight": pa.array([one.spatial_weight for one in standing], pa.float64()),
        }
    )


def _living_table(posted: Sequence[Posted], sequence: NDArray[np.int64], now: float) -> pa.Table:
    table = _message_table(posted, sequence)
    table = table.append_column("time", pa.array(np.full(len(posted), now)))
    return table.append_column("expires", pa.array([one.expires for one in posted], pa.float64()))


def _message_table(posted: Sequence[Posted], sequence: NDArray[np.int64]) -> pa.Table:
    n = len(posted)
    box = np.array([one.box for one in posted], np.float64).reshape(n, 4)
    columns = {
        "id": pa.array(sequence),
        "keywords": pa.array([one.words for one in posted], pa.list_(pa.string())),
    }
    has_areas = bool((box[:, :2] != box[:, 2:]).any())
    names = ("x0", "y0", "x1", "y1") if has_areas else ("x", "y")
    return pa.table(columns | {name: pa.array(box[:, at].copy()) for at, name in enumerate(names)})


def _ranked_messages(posted: Sequence[Posted], sequence: NDArray[np.int64]) -> pa.Table:
    """A message about an area counts by its middle."""
    box = np.array([one.box for one in posted], np.float64).reshape(len(posted), 4)
    return pa.table(
        {
            "id": pa.array(sequence),
            "keywords": pa.array([without_reserved(one.words) for one in posted], pa.list_(pa.string())),
            "x": pa.array((box[:, 0] + box[:, 2]) / 2),
            "y": pa.array((box[:, 1] + box[:, 3]) / 2),
        }
    )


def _told_by_objects(moving: MovingMatcher, standing: Iterable[Standing]) -> Told:
    changes = moving.subscribe([one.boolean() for one in standing])
    return told_by_moving(
        pa.table(
            {
                "subscription_id": pa.array([one.subscription_id for one in changes], pa.int64()),
                "message_id": pa.array([one.message_id for one in changes], pa.int64()),
                "change": pa.array([one.change for one in changes], pa.int8()),
            }
        )
    )


def _with_ranks(ranker: Ranker, changes: pa.Table) -> Told:
    if not changes.num_rows:
        return nothing()
    owners = np.unique(np.asarray(changes["subscription_id"].combine_chunks())).tolist()
    return told_by_ranker(changes, ranker.top_table(owners))


def _check_report(report: MatchReport) -> None:
    """Everything was checked before it came here: a rejected row is a mistake of ours, not to be passed over."""
    if report.rejected:
        row, reason = report.rejected[0]
        raise NearcastError(f"an engine refused row {row} of a batch that had been checked: {reason}")
