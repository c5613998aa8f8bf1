"""Where a stream keeps what its shards need, beside the folders of every stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ShardArea:
    """The folders of the shards of one stream; `kind` says what they compute."""

    kind: ClassVar[str] = ""
    stream: str

    @property
    def root(self) -> str:
        return f"streams/{self.stream}/{self.kind}"

    @property
    def logs(self) -> str:
        return f"{self.root}/log"

    def log(self, batch: int) -> str:
        return f"{self.logs}/{batch:08d}.arrow"

    def told(self, batch: int) -> str:
        """What shards told each other in a batch."""
        return f"{self.root}/told/{batch:08d}"

    @property
    def layouts(self) -> str:
        return f"{self.root}/layouts"

    @property
    def wish(self) -> str:
        """Which layout somebody asked for."""
        return f"{self.root}/wish.json"

    @property
    def rules(self) -> str:
        """What the stream computes, as it was told when it began."""
        return f"{self.root}/rules.json"

    def snapshots(self, layout: int) -> str:
        return f"{self.root}/snapshots/{layout:06d}"

    def snapshot(self, layout: int, batch: int, shard: int) -> str:
        return f"{self.snapshots(layout)}/{batch:08d}/{shard}"


@dataclass(frozen=True, slots=True)
class RankedArea(ShardArea):
    """Of a ranked stream."""

    kind: ClassVar[str] = "ranked"


@dataclass(frozen=True, slots=True)
class TrackedArea(ShardArea):
    """Of a stream of moving subscriptions."""

    kind: ClassVar[str] = "tracked"
