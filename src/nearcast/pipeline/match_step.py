"""The matching step: Arrow batches of messages in, Arrow batches of deliveries out. Knows nothing of Spark.

Reads a matcher saved by `Matcher.save`; each process opens it once, by memory map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import pyarrow as pa

from nearcast.engines.boolean import Matcher

MatchStep = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@lru_cache(maxsize=4)
def _opened(folder: str) -> Matcher:
    return Matcher.open(folder)


def match_step(folder: str) -> MatchStep:
    """A function for `mapInArrow` that matches messages against the matcher saved in `folder`."""

    def match_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = _opened(folder)
        for batch in batches:
            yield from matcher.match_table(pa.Table.from_batches([batch])).combine_chunks().to_batches()

    return match_batches
