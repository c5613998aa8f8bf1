"""Times between the wire, which has dates with a zone, and the store, which has seconds."""

from __future__ import annotations

from datetime import UTC, datetime

from nearcast.service.problems import unusable


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def seconds_of(time: datetime, where: str) -> float:
    """Of a time with a zone; raises Problem if it is in no year from 1 to 9999 of UTC."""
    try:
        seconds = time.astimezone(UTC).timestamp()
        # The last microseconds of all are rounded up.
        moment(seconds)
    except (OverflowError, ValueError):
        raise unusable(f"{where}={time.isoformat()!r} is outside the years 1 to 9999 in UTC; give another", where) from None
    return seconds
