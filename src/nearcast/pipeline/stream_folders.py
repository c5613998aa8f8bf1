"""Where a stream keeps its things in the store: deliveries, quarantine, counts of its batches, checkpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamArea:
    """The folders of the stream called `name`."""

    name: str

    @property
    def deliveries(self) -> str:
        return f"streams/{self.name}/deliveries"

    @property
    def quarantine(self) -> str:
        return f"streams/{self.name}/quarantine"

    @property
    def batches(self) -> str:
        return f"streams/{self.name}/batches"

    @property
    def staging(self) -> str:
        return f"streams/{self.name}/_staging"

    @property
    def checkpoint(self) -> str:
        return f"streams/{self.name}/checkpoint"

    def batch_file(self, batch: int) -> str:
        """The counts of one batch."""
        return f"{self.batches}/{batch:08d}.json"
