"""The status of a stream: the work of each shard over its last batches, from the counts that every batch writes."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import PipelineError
from nearcast.pipeline.index.version import IndexVersion, current_index
from nearcast.pipeline.keeping.layouts import Layout, stored_layouts
from nearcast.pipeline.keeping.wishes import area_with_shards
from nearcast.pipeline.match.step import ShardWork
from nearcast.pipeline.plan.shard_plan import open_plan
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import StreamFolders


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The counts of one batch."""

    batch: int
    version: int
    plan: int
    mode: str
    read: int
    quarantined: int
    deliveries: int
    work: dict[int, ShardWork]
    began: float
    seconds: float


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """The current version and the last batches; `work` is the sum over the batches that used the current plan."""

    version: IndexVersion | Layout
    mechanism: str
    batches: list[BatchFacts]
    work: dict[int, ShardWork]

    @property
    def messages(self) -> int:
        return sum(batch.read for batch in self.batches)

    @property
    def messages_per_second(self) -> float:
        seconds = sum(batch.seconds for batch in self.batches)
        return self.messages / seconds if seconds else 0.0

    @property
    def balance(self) -> float:
        """Mean load over the largest; 1 = even."""
        loads = [load_of(self.work.get(shard)) for shard in range(self.version.n_shards)]
        return sum(loads) / len(loads) / max(loads) if max(loads, default=0.0) else 1.0


def load_of(work: ShardWork | None) -> float:
    """The load of a shard in seconds."""
    return 0.0 if work is None else work.seconds


def read_batches(settings: PipelineSettings, last: int | None = None) -> list[BatchFacts]:
    """The counts of the last batches of the stream, oldest first."""
    store, folders = settings.store, StreamFolders(settings.stream)
    names = store.names(folders.batches)
    batches = []
    for name in names[-last:] if last else names:
        facts = store.read_json(f"{folders.batches}/{name}")
        facts["work"] = {int(shard): ShardWork(**work) for shard, work in facts["work"].items()}
        batches.append(BatchFacts(**facts))
    return batches


def stream_status(settings: PipelineSettings, last: int = 100) -> StreamStatus:
    """The status of the stream over its last batches."""
    shards = area_with_shards(settings)
    version = stored_layouts(settings.store, shards)[-1] if shards else current_index(settings.store)
    batches = read_batches(settings, last)
    if not batches:
        folders = StreamFolders(settings.stream)
        raise PipelineError(
            f"the stream {settings.stream!r} has no batches in {settings.store.address(folders.batches)!r}; "
            "run first: nearcast pipeline match, rank or track"
        )
    plan = version.number if isinstance(version, Layout) else version.plan
    work: dict[int, ShardWork] = {}
    for batch in batches:
        if batch.plan == plan:
            for shard, shard_work in batch.work.items():
                work.setdefault(shard, ShardWork()).add(shard_work)
    mechanism = version.mechanism if isinstance(version, Layout) else open_plan(settings.store, plan).mechanism
    return StreamStatus(version, mechanism, batches, work)
