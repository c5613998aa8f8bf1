"""Which versions of the index are in use: a batch pins one before it runs; what nobody pins is collected.

Two processes work without a lock. A stream writes its pin, then looks whether the version is still there, and else takes the
one in force. The collector removes the file of a version, then looks at the pins again, and puts it back if one came meanwhile.
Whoever looks last sees what the other did.
"""

from __future__ import annotations

from nearcast.errors import StoredFormatError
from nearcast.pipeline.index.version import (
    AREA,
    BASES,
    DELTAS,
    ROUTING,
    ROWS,
    IndexVersion,
    current_index,
    current_number,
    has_index,
    read_index,
)
from nearcast.pipeline.store import Store
from nearcast.pipeline.versions import stored_versions, version_name

PINS = "pins"


def is_pinned(store: Store, stream: str, batch: int) -> bool:
    """Whether the batch was tried before."""
    return store.exists(f"{PINS}/{stream}/{batch}")


def pinned_index(store: Store, stream: str, batch: int) -> IndexVersion:
    """The version this batch has to use: the one it pinned when it was tried before, or else the one in force now."""
    name = f"{PINS}/{stream}/{batch}"
    if store.exists(name):
        return read_index(store, int(store.read_bytes(name)))
    while True:
        version = current_index(store)
        store.write_bytes(name, str(version.number).encode())
        if has_index(store, version.number):
            return version


def unpin_before(store: Store, stream: str, batch: int) -> None:
    """Drop the pins of earlier batches: a batch begins only when the one before it can never run again."""
    for name in store.names(f"{PINS}/{stream}"):
        if name.isdigit() and int(name) < batch:
            store.delete(f"{PINS}/{stream}/{name}")


def pinned_numbers(store: Store) -> set[int]:
    """Every version that some batch of some stream pins."""
    found = set()
    for stream in store.names(PINS):
        for name in store.names(f"{PINS}/{stream}"):
            if name.isdigit():
                found.add(int(store.read_bytes(f"{PINS}/{stream}/{name}")))
    return found


def collect_versions(store: Store, keep: int) -> list[int]:
    """Remove versions that are neither among the last `keep` nor pinned, and what only they used; returns their numbers."""
    in_force = current_number(store)
    if in_force is None:
        return []
    numbers = [number for number in stored_versions(store, AREA) if number <= in_force and has_index(store, number)]
    collected = []
    for number in numbers[:-keep]:
        if number in pinned_numbers(store):
            continue
        file = f"{AREA}/{version_name(number)}/version.json"
        content = store.read_bytes(file)
        store.delete(file)
        if number in pinned_numbers(store):
            store.write_bytes(file, content)
        else:
            store.delete(f"{AREA}/{version_name(number)}")
            collected.append(number)
    if collected:
        _remove_unused(store, in_force)
    return collected


def _remove_unused(store: Store, in_force: int) -> None:
    """Folders that no version names. Those of numbers after the one in force may be in the making and stay."""
    used: dict[str, set[int]] = {BASES: set(), DELTAS: set(), ROUTING: set(), ROWS: set()}
    for number in stored_versions(store, AREA):
        try:
            version = read_index(store, number)
        except StoredFormatError:
            # In the making: nothing of it is old.
            continue
        used[BASES] |= {int(shard.folder.split("/")[1]) for shard in version.shards if shard.folder}
        used[ROUTING].add(version.base)
        used[ROWS].add(version.rows)
        used[DELTAS] |= {*version.deltas, *version.changes}
    for area, numbers in used.items():
        for number in stored_versions(store, area):
            if number not in numbers and number <= in_force:
                store.delete(f"{area}/{version_name(number)}")
