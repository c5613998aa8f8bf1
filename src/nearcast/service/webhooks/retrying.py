"""When a webhook request is sent again: exponential backoff with jitter, and what the receiver asks for."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Sent again after `first_s`, then `factor` times later each time, at most `longest_s`; so often, then it is a dead letter.

    `disable_after`: so many dead letters without a success between them switch the webhook off.
    """

    first_s: float = 2.0
    factor: float = 3.0
    longest_s: float = 3600.0
    attempts: int = 10
    disable_after: int = 3

    def wait_s(self, n_failed: int, retry_after_s: float | None, chance: random.Random) -> float:
        """Seconds until the next attempt after `n_failed` failures; never sooner than the receiver asked, within bounds."""
        longest = min(self.first_s * self.factor ** (n_failed - 1), self.longest_s)
        # Between half and all of it: many requests that failed together do not come back together.
        wait = longest * chance.uniform(0.5, 1.0)
        return wait if retry_after_s is None else max(wait, min(retry_after_s, self.longest_s))


def read_retry_after(value: str | None, now: float) -> float | None:
    """Seconds from the header Retry-After (seconds or a date); None if it says nothing usable."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        date = parsedate_to_datetime(value)
        zoned = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        return max(0.0, (zoned - datetime.fromtimestamp(now, UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
