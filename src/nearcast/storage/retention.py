"""How long messages and their events are kept: by age and by size."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.storage.store import Store

_REQUESTS_S = 86_400.0
"""Idempotency keys count for a day."""


def drop_old(store: Store, now: float, most_seconds: float, most_bytes: int, tell: Callable[[int], None]) -> int:
    """Forget pages that are too old, and the oldest beyond the size; the last sequence that is gone.

    `tell` gets it before anything goes, so that no reader takes what is missing for silence.
    """
    sizes = store.page_sizes()
    excess = sum(n_bytes for _, _, n_bytes in sizes) - most_bytes
    gone = 0
    for last, time, n_bytes in sizes:
        if time >= now - most_seconds and excess <= 0:
            break
        gone = last
        excess -= n_bytes
    if gone:
        tell(gone)
        store.remove_before(gone)
    store.remove_requests(now - _REQUESTS_S)
    return gone
