"""What tasks tell the driver besides their rows: each writes one small file, named after its place in the job.

A task that runs twice writes the same file twice. The folder belongs to one try of one batch, so that nothing of a try that
died is ever counted.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nearcast.pipeline.match.step import ShardWork, StepNotes
from nearcast.pipeline.store import Store

_QUARANTINE = "quarantine"
_NOTES = "notes"


def write_notes(store: Store, folder: str, task: str, notes: StepNotes) -> None:
    """Write the notes of one task."""
    content: dict[str, Any] = {"read": notes.read, "work": {str(shard): asdict(work) for shard, work in notes.work.items()}}
    quarantined = notes.quarantined()
    content["quarantined"] = quarantined.num_rows
    if quarantined.num_rows:
        store.write_table(f"{folder}/{_QUARANTINE}/{task}.parquet", quarantined)
    store.write_json(f"{folder}/{_NOTES}/{task}.json", content)


class BatchNotes:
    """The notes of all tasks of one try of a batch, added up."""

    def __init__(self, store: Store, folder: str) -> None:
        self.read = 0
        self.quarantined = 0
        self.work: dict[int, ShardWork] = {}
        self.quarantine_folder = f"{folder}/{_QUARANTINE}"
        for name in store.names(f"{folder}/{_NOTES}"):
            notes = store.read_json(f"{folder}/{_NOTES}/{name}")
            self.read += notes["read"]
            self.quarantined += notes["quarantined"]
            for shard, work in notes["work"].items():
                self.work.setdefault(int(shard), ShardWork()).add(ShardWork(**work))

    @property
    def deliveries(self) -> int:
        return sum(work.deliveries for work in self.work.values())
