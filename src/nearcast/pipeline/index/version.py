"""What a version of the index consists of: folders of shards, deltas on top of them, the plan and the words they are routed by.

A version is one small file; everything it names is written before and never changed. So a batch that pins a version sees the
same index however often it runs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from nearcast.pipeline.store import Store
from nearcast.pipeline.versions import current_version, make_current, needed_version, next_version, version_name

AREA, BASES, DELTAS, ROUTING, ROWS = "index", "bases", "deltas", "routing", "subscriptions"


@dataclass(frozen=True, slots=True)
class ShardBase:
    """A shard as it was built: its folder ('' = nobody lives there), how many subscriptions, how large."""

    folder: str
    n_subscriptions: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """Version `number`: the shards of version `base`, changed by the deltas of the versions in `deltas`, in order."""

    number: int
    base: int
    rows: int
    """The version whose table of subscriptions the shards were built from; the deltas after it are in `changes`."""
    plan: int
    n_shards: int
    id_type: str
    shards: tuple[ShardBase, ...]
    deltas: tuple[int, ...] = ()
    changes: tuple[int, ...] = ()
    has_wordless: bool = False
    taken: str = ""
    """How far the topic of changes was taken up; '' = not at all."""

    @property
    def n_bytes(self) -> int:
        return sum(shard.n_bytes for shard in self.shards)

    @property
    def n_subscriptions(self) -> int:
        """Copies in shards; deltas are not counted."""
        return sum(shard.n_subscriptions for shard in self.shards)

    def with_delta(self, number: int, has_wordless: bool, taken: str | None = None) -> IndexVersion:
        """The next version: the same shards and one delta more."""
        return replace(
            self,
            number=number,
            deltas=(*self.deltas, number),
            changes=(*self.changes, number),
            has_wordless=self.has_wordless or has_wordless,
            taken=self.taken if taken is None else taken,
        )


def new_number(store: Store) -> int:
    """A number that nothing of an index has had."""
    return next_version(store, [AREA, BASES, DELTAS, ROUTING, ROWS])


def publish_index(store: Store, version: IndexVersion, replaced: int | None) -> None:
    """Write the file of a version and put it in force."""
    store.write_json(_file(version.number), asdict(version))
    make_current(store, AREA, version.number, replaced)


def read_index(store: Store, number: int) -> IndexVersion:
    facts = store.read_json(_file(number))
    shards = tuple(ShardBase(**shard) for shard in facts.pop("shards"))
    deltas, changes = tuple(facts.pop("deltas")), tuple(facts.pop("changes"))
    return IndexVersion(**facts, shards=shards, deltas=deltas, changes=changes)


def current_index(store: Store) -> IndexVersion:
    """The version in force; StoredFormatError if there is none."""
    return read_index(store, needed_version(store, AREA, "index"))


def current_number(store: Store) -> int | None:
    return current_version(store, AREA)


def has_index(store: Store, number: int) -> bool:
    return store.exists(_file(number))


def delta_folder(number: int) -> str:
    return f"{DELTAS}/{version_name(number)}"


def routing_folder(number: int) -> str:
    return f"{ROUTING}/{version_name(number)}"


def rows_folder(number: int) -> str:
    return f"{ROWS}/{version_name(number)}"


def _file(number: int) -> str:
    return f"{AREA}/{version_name(number)}/version.json"
