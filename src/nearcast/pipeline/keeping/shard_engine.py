"""A shard of a stream as it goes from batch to batch. Knows Arrow and files, nothing of Spark or of other processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa


@dataclass(slots=True)
class Taken:
    """What a batch changed in a shard (tick, subscription_id, message_id, change, …), and what the shard has to say."""

    changes: pa.Table
    rejected: list[tuple[int, str]] = field(default_factory=list)
    """Messages that cannot be used, by their row in the batch; every shard finds the same."""
    n_messages: int = 0
    candidates: int = 0
    floors: pa.Table | None = None
    """Subscriptions with new floors, for those who look for messages on their behalf."""
    aside: pa.Table | None = None
    """Other rows that cannot be used, of which only this shard knows."""


class ShardEngine(Protocol):
    """Takes batches one after the other. `tell` comes first, and says what other shards need to know to take the batch."""

    def tell(self, number: int, batch: Any, floors: Sequence[pa.Table]) -> dict[int, pa.Table]:
        """What each of the other shards has to know; `floors` are those of the batch before."""

    def take(self, number: int, batch: Any, told: Sequence[pa.Table]) -> Taken:
        """Go through the batch, with what all shards told this one."""

    def save(self, folder: Path) -> None:
        """Write everything, to be opened in another process."""
