"""Changes of lists, as a table and as objects."""

from __future__ import annotations

import pyarrow as pa

from nearcast.columns.arrow import number_column
from nearcast.columns.identifiers import Identifiers
from nearcast.model.delivery import RankChange
from nearcast.ranked.rank_changes import RankChanges

_COLUMNS = ("tick", "subscription_id", "message_id", "change", "score")


def change_table(changes: RankChanges, ids: Identifiers) -> pa.Table:
    """tick, subscription_id, message_id, change, score."""
    subscription_ids, change = ids.take(changes.subscriber), number_column(changes.change)
    return pa.table([changes.tick, subscription_ids, changes.message_ids, change, changes.score], names=_COLUMNS)


def change_objects(table: pa.Table) -> list[RankChange]:
    return [RankChange(*row) for row in zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)]
