"""Ranked subscriptions back as the table they came from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.identifiers import Identifiers
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.ranked.ranking import Ranking
from nearcast.ranked.subscriptions import RankedSubscriptions


def subscriber_table(rankings: Sequence[Ranking], ids: Identifiers, keywords: KeywordKind) -> pa.Table:
    """The living subscriptions of all shards of an engine: id, keywords, x, y, k, spatial_weight."""
    tables = []
    for at, ranking in enumerate(rankings):
        numbers = ranking.alive()
        own_ids = ids.take((numbers * len(rankings) + at).astype(np.int32))
        tables.append(table_of_subscribers(ranking.subscribers, numbers, own_ids, keywords))
    return pa.concat_tables(tables)


def table_of_subscribers(
    subscribers: RankedSubscriptions, numbers: NDArray[np.int32], ids: pa.Array, keywords: KeywordKind
) -> pa.Table:
    """Some subscriptions, by their numbers."""
    rows = subscribers.layout()
    n_words = rows.n_words[numbers].astype(np.int64)
    start = np.concatenate([[0], np.cumsum(n_words)])
    word = rows.keyword[np.repeat(rows.first[numbers] - start[:-1], n_words) + np.arange(start[-1])]
    columns = {name: rows._asdict()[name][numbers] for name in ("x", "y", "k", "spatial_weight")}
    lists = pa.ListArray.from_arrays(pa.array(start, pa.int32()), _names_of(word, keywords))
    return pa.table({"id": ids, "keywords": lists, **columns})


def _names_of(word: NDArray[np.int32], keywords: KeywordKind) -> pa.Array:
    """Keywords by their ids, as words or numbers; each distinct one is looked up once."""
    distinct, which = np.unique(word, return_inverse=True)
    names = [keywords.space.name(one) for one in distinct.tolist()]
    if keywords.name == "numbers":
        return pa.array([int(name) for name in names], pa.int32()).take(pa.array(which))
    return pa.array(names, pa.string()).take(pa.array(which))
