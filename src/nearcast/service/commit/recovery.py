"""Engines from the store: the snapshot of the matcher and what changed since; moving and ranked ones from rows and the log."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from nearcast.boolean.engine import Matcher
from nearcast.errors import StoredFormatError
from nearcast.service.engines.engines import Engines
from nearcast.service.engines.geofence_state import COLLECTION
from nearcast.service.gateway.engines import GatewayEngines
from nearcast.service.geometry import Point
from nearcast.service.intake.messages import UNREADABLE, Posted, messages_back, posted_of
from nearcast.service.intake.subscriptions import standing_of
from nearcast.service.limits import Limits
from nearcast.storage.batch import SubscriptionRow
from nearcast.storage.store import Store

log = logging.getLogger(__name__)
_PUT_AT_ONCE = 200_000
TOLD = "told"
"""The fact that says up to when moving subscriptions have been told what time does."""


class _Expiry(msgspec.Struct):
    expires: datetime | None = None


_read_expiry = msgspec.json.Decoder(_Expiry).decode


def load_engines(store: Store, folder: Path | None, limits: Limits, is_gateway: bool = False) -> Engines:
    """Everything that was acknowledged, as the engines had it; those of a gateway do not match by themselves."""
    started = time.perf_counter()

    def middle_of(number: int) -> Point | None:
        rows = store.subscriptions_of([number])
        return standing_of(rows[0]).middle if rows else None

    engines: Engines
    if is_gateway:
        engines = GatewayEngines(store, limits.ranked_window, middle_of)
    else:
        since, matcher = _open_snapshot(store, folder)
        engines = Engines(matcher, limits.ranked_window, middle_of)
        gone = store.gone_numbers(since) if since else []
        if gone:
            matcher.unsubscribe(gone)
        for rows in _batched(store.changed_subscriptions(since, "boolean")):
            engines.put([standing_of(row) for row in rows])
    for rows in _batched(store.changed_subscriptions(0, "moving")):
        if not engines.has_moving:
            # As of what was told last: who is inside a message that has expired since is still to be told that it leaves.
            start_moving(store, engines, limits, float(store.fact(TOLD) or time.time()))
        engines.put([standing_of(row) for row in rows])
    engines.presences.restore(store.records(COLLECTION))
    for rows in _batched(store.changed_subscriptions(0, "ranked")):
        for tenant in {row.tenant for row in rows} - engines.rankers.keys():
            start_ranking(store, engines, tenant, limits)
        engines.put([standing_of(row) for row in rows])
    n_boolean = engines.stats()["boolean"]["subscriptions"]
    log.info("engines loaded: %s boolean subscriptions in %.2f s", n_boolean, time.perf_counter() - started)
    return engines


def start_moving(store: Store, engines: Engines, limits: Limits, now: float) -> None:
    """Hand the messages that live at a time to the moving matcher."""
    found: list[tuple[int, Posted]] = []
    for sequence, text, tenant, _ in messages_back(store, now - limits.retention_s):
        try:
            expires = _read_expiry(text).expires
            if expires is None or expires.timestamp() <= now:
                continue
            found.append((sequence, posted_of(text, tenant)))
        except UNREADABLE as error:
            _tell_unreadable(sequence, error)
        if len(found) == limits.live_messages:
            break
    found.reverse()
    engines.start_moving([posted for _, posted in found], [sequence for sequence, _ in found], now)


def start_ranking(store: Store, engines: Engines, tenant: str, limits: Limits) -> None:
    """Fill the window of a tenant's ranker from the log."""
    found: list[tuple[int, Posted]] = []
    for sequence, text, owner, _ in messages_back(store, 0.0):
        if owner == tenant:
            try:
                posted = posted_of(text, tenant)
                if posted.audience is None:
                    found.append((sequence, posted))
            except UNREADABLE as error:
                _tell_unreadable(sequence, error)
            if len(found) == limits.ranked_window:
                break
    found.reverse()
    engines.start_ranking(tenant, [posted for _, posted in found], [sequence for sequence, _ in found])


def _tell_unreadable(sequence: int, error: Exception) -> None:
    log.warning("the message at %d cannot be read and is left out of the engines: %s", sequence, error)


def save_snapshot(store_sequence: int, engines: Engines, folder: Path) -> str:
    """Write the matcher aside; the fact to keep about it. Earlier ones stay until `forget_snapshots`."""
    name = f"matcher-{store_sequence}-{time.time_ns():x}"
    folder.mkdir(parents=True, exist_ok=True)
    engines.save(folder / name)
    return f"{name} {store_sequence}"


def forget_snapshots(folder: Path, kept: str) -> None:
    """Remove all snapshots but the one of the fact `kept`."""
    for path in folder.glob("matcher-*"):
        if path.name != kept.split(" ")[0]:
            shutil.rmtree(path, ignore_errors=True)


def _open_snapshot(store: Store, folder: Path | None) -> tuple[int, Matcher]:
    fact = store.fact("snapshot")
    if folder is None or fact is None:
        return 0, Matcher()
    name, sequence = fact.split(" ")
    try:
        return int(sequence), Matcher.open(folder / name)
    except StoredFormatError as error:
        log.warning("the snapshot %s cannot be used (%s); loading all subscriptions", name, error)
        return 0, Matcher()


def _batched(rows: Iterator[SubscriptionRow]) -> Iterator[list[SubscriptionRow]]:
    some: list[SubscriptionRow] = []
    for row in rows:
        some.append(row)
        if len(some) == _PUT_AT_ONCE:
            yield some
            some = []
    if some:
        yield some
