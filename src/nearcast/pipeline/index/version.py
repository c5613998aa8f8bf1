"""A version of the index: folders of shards, deltas on top of them, the plan and the words they are routed by; and its leases.

A version is one small file. Everything it names is written before it and never changes. A batch leases a version before it
runs, so it sees the same index in every attempt; versions without a lease are collected.

Leases need no lock. A stream writes its lease, then checks that the version still exists, and else takes the current one. The
collector removes the file of a version, then checks the leases again, and restores the file if there is a new one. So whichever
checks last sees what the other did.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from nearcast.errors import StoredFormatError
from nearcast.pipeline.store import (
    Store,
    current_version,
    make_current,
    needed_version,
    next_version,
    stored_versions,
    version_name,
)

VERSIONS, BASES, DELTAS, ROUTING, ROWS = "index", "bases", "deltas", "routing", "subscriptions"


@dataclass(frozen=True, slots=True)
class ShardBase:
    """A shard as it was built: its folder ('' = no subscriptions), the number of subscriptions, the size."""

    folder: str
    n_subscriptions: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """Version `number`: the shards of version `base`, changed by the deltas of the versions in `deltas`, in order."""

    number: int
    base: int
    rows: int
    """The version with the table of subscriptions that the shards were built from; `changes` are the deltas since then."""
    plan: int
    n_shards: int
    id_type: str
    shards: tuple[ShardBase, ...]
    deltas: tuple[int, ...] = ()
    changes: tuple[int, ...] = ()
    has_wordless: bool = False
    taken: str = ""
    """The position in the topic of changes up to which they are applied; '' = none."""

    @property
    def n_bytes(self) -> int:
        return sum(shard.n_bytes for shard in self.shards)

    @property
    def n_subscriptions(self) -> int:
        """The copies in all shards, without deltas."""
        return sum(shard.n_subscriptions for shard in self.shards)

    def with_delta(self, number: int, has_wordless: bool, topic_position: str | None = None) -> IndexVersion:
        """The next version: the same shards and one more delta."""
        return replace(
            self,
            number=number,
            deltas=(*self.deltas, number),
            changes=(*self.changes, number),
            has_wordless=self.has_wordless or has_wordless,
            taken=self.taken if topic_position is None else topic_position,
        )


def new_number(store: Store) -> int:
    """A number that no part of an index has used."""
    return next_version(store, [VERSIONS, BASES, DELTAS, ROUTING, ROWS])


def publish_index(store: Store, version: IndexVersion, replaced: int | None) -> None:
    """Write the file of a version and make it the current one."""
    store.write_json(_file(version.number), asdict(version))
    make_current(store, VERSIONS, version.number, replaced)


def read_index(store: Store, number: int) -> IndexVersion:
    facts = store.read_json(_file(number))
    shards = tuple(ShardBase(**shard) for shard in facts.pop("shards"))
    deltas, changes = tuple(facts.pop("deltas")), tuple(facts.pop("changes"))
    return IndexVersion(**facts, shards=shards, deltas=deltas, changes=changes)


def current_index(store: Store) -> IndexVersion:
    """The current version; StoredFormatError if there is none."""
    return read_index(store, needed_version(store, VERSIONS, "index"))


def current_number(store: Store) -> int | None:
    return current_version(store, VERSIONS)


def has_index(store: Store, number: int) -> bool:
    return store.exists(_file(number))


def delta_folder(number: int) -> str:
    return f"{DELTAS}/{version_name(number)}"


def routing_folder(number: int) -> str:
    return f"{ROUTING}/{version_name(number)}"


def rows_folder(number: int) -> str:
    return f"{ROWS}/{version_name(number)}"


def _file(number: int) -> str:
    return f"{VERSIONS}/{version_name(number)}/version.json"


LEASES = "pins"


def has_lease(store: Store, stream: str, batch: int) -> bool:
    """Whether the batch has a lease: it was tried before."""
    return store.exists(f"{LEASES}/{stream}/{batch}")


def leased_index(store: Store, stream: str, batch: int) -> IndexVersion:
    """The version that this batch must use: that of its lease if it was tried before, else the current one, which it leases."""
    name = f"{LEASES}/{stream}/{batch}"
    if store.exists(name):
        return read_index(store, int(store.read_bytes(name)))
    while True:
        version = current_index(store)
        store.write_bytes(name, str(version.number).encode())
        if has_index(store, version.number):
            return version


def release_before(store: Store, stream: str, batch: int) -> None:
    """Release the leases of earlier batches: a batch starts only when the one before it can never run again."""
    for name in store.names(f"{LEASES}/{stream}"):
        if name.isdigit() and int(name) < batch:
            store.delete(f"{LEASES}/{stream}/{name}")


def leased_numbers(store: Store) -> set[int]:
    """Every version that any batch of any stream leases."""
    numbers = set()
    for stream in store.names(LEASES):
        for name in store.names(f"{LEASES}/{stream}"):
            if name.isdigit():
                numbers.add(int(store.read_bytes(f"{LEASES}/{stream}/{name}")))
    return numbers


def collect_versions(store: Store, keep: int) -> list[int]:
    """Remove versions that are neither leased nor among the last `keep`, and what only they use; returns their numbers."""
    current = current_number(store)
    if current is None:
        return []
    numbers = [number for number in stored_versions(store, VERSIONS) if number <= current and has_index(store, number)]
    collected = []
    for number in numbers[:-keep]:
        if number in leased_numbers(store):
            continue
        file = f"{VERSIONS}/{version_name(number)}/version.json"
        content = store.read_bytes(file)
        store.delete(file)
        if number in leased_numbers(store):
            store.write_bytes(file, content)
        else:
            store.delete(f"{VERSIONS}/{version_name(number)}")
            collected.append(number)
    if collected:
        _remove_unused(store, current)
    return collected


def _remove_unused(store: Store, current: int) -> None:
    """Remove folders that no version names. Those with higher numbers than the current version may be unfinished and stay."""
    used: dict[str, set[int]] = {BASES: set(), DELTAS: set(), ROUTING: set(), ROWS: set()}
    for number in stored_versions(store, VERSIONS):
        try:
            version = read_index(store, number)
        except StoredFormatError:
            # Unfinished: nothing of it is old.
            continue
        used[BASES] |= {int(shard.folder.split("/")[1]) for shard in version.shards if shard.folder}
        used[ROUTING].add(version.base)
        used[ROWS].add(version.rows)
        used[DELTAS] |= {*version.deltas, *version.changes}
    for folder, numbers in used.items():
        for number in stored_versions(store, folder):
            if number not in numbers and number <= current:
                store.delete(f"{folder}/{version_name(number)}")
