"""Answers of matchers: taken, put into order, compared; a wrong answer is an error, for its time is worth nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError

_SHOWN_PAIRS = 3


def count_work(matcher: Matcher, chunks: list[pa.Table]) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int64]]:
    """Counters of each chunk and matches of each message, in a pass of their own that no clock sees."""
    names = ("candidates", "nodes_visited", "matches")
    counted = np.zeros((len(names), len(chunks)), np.int64)
    matches = []
    for position, chunk in enumerate(chunks):
        deliveries = matcher.match_table(chunk)
        counted[:, position] = [getattr(matcher.report, name) for name in names]
        codes = deliveries["message_id"].combine_chunks()
        found = pc.index_in(codes, value_set=chunk["id"].combine_chunks())
        matches.append(np.bincount(np.asarray(found), minlength=chunk.num_rows))
    return dict(zip(names, counted, strict=True)), np.concatenate(matches)


def sorted_answer(deliveries: pa.Table) -> pa.Table:
    return deliveries.sort_by([("message_id", "ascending"), ("subscription_id", "ascending")]).combine_chunks()


def compare_answers(series: str, answer: pa.Table, against: str, expected: pa.Table) -> None:
    """Both are sorted; a pair given twice is a difference too."""
    if answer.equals(expected):
        return
    given, wanted = (set(zip(*table.to_pydict().values(), strict=True)) for table in (answer, expected))
    missing, extra = sorted(wanted - given)[:_SHOWN_PAIRS], sorted(given - wanted)[:_SHOWN_PAIRS]
    raise NearcastError(
        f"{series!r} gives {answer.num_rows} deliveries where {against!r} gives {expected.num_rows} "
        f"(missing: {missing}, too many: {extra}); its times are worth nothing: correct the index first"
    )


def spread_rows(n: int, n_wanted: int) -> NDArray[np.int64]:
    """At most `n_wanted` rows, evenly spread over the stream."""
    return np.unique(np.linspace(0, n - 1, min(n, n_wanted)).astype(np.int64)) if n else np.empty(0, np.int64)
