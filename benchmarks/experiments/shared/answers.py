"""Answers of engines, so that they can be compared: a wrong answer is an error, because its time means nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError

_SHOWN_PAIRS = 3
# Odd constants that spread numbers over 64 bits.
_MIX = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))


# --- deliveries ------------------------------------------------------------------------------------------------------


def count_work(matcher: Matcher, chunks: list[pa.Table]) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int64]]:
    """Counters of each chunk and matches of each message, from a separate pass that is not timed."""
    names = ("candidates", "nodes_visited", "matches")
    counters = np.zeros((len(names), len(chunks)), np.int64)
    matches = []
    for position, chunk in enumerate(chunks):
        deliveries = matcher.match_table(chunk)
        counters[:, position] = [getattr(matcher.report, name) for name in names]
        rows = pc.index_in(deliveries["message_id"].combine_chunks(), value_set=chunk["id"].combine_chunks())
        matches.append(np.bincount(np.asarray(rows), minlength=chunk.num_rows))
    return dict(zip(names, counters, strict=True)), np.concatenate(matches)


def sorted_answer(deliveries: pa.Table) -> pa.Table:
    return deliveries.sort_by([("message_id", "ascending"), ("subscription_id", "ascending")]).combine_chunks()


def compare_answers(series: str, answer: pa.Table, against: str, expected: pa.Table) -> None:
    """NearcastError if two sorted answers differ; a pair that one of them has twice is a difference too."""
    if answer.equals(expected):
        return
    pairs, expected_pairs = (set(zip(*table.to_pydict().values(), strict=True)) for table in (answer, expected))
    missing, extra = sorted(expected_pairs - pairs)[:_SHOWN_PAIRS], sorted(pairs - expected_pairs)[:_SHOWN_PAIRS]
    raise NearcastError(
        f"{series!r} gives {answer.num_rows} deliveries where {against!r} gives {expected.num_rows} "
        f"(missing: {missing}, too many: {extra}); its times are worth nothing: correct the index first"
    )


def spread_rows(n: int, limit: int) -> NDArray[np.int64]:
    """At most `limit` of `n` rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(np.int64)) if n else np.empty(0, np.int64)


# --- changes: checksums that do not depend on their order ----------------------------------------------------------------


def moving_checksum(subscription: NDArray[Any], message: NDArray[Any], change: NDArray[Any]) -> np.uint64:
    """Equal for equal sets of changes of results, whatever their order; the checksum of parts is the sum of theirs."""
    subscription_id, message_id, sign = (ids.astype(np.int64).astype(np.uint64) for ids in (subscription, message, change))
    mixed = (subscription_id + np.uint64(1)) * _MIX[0] ^ (message_id + np.uint64(1)) * _MIX[1]
    return np.uint64(((mixed ^ (mixed >> np.uint64(29))) * (sign + np.uint64(2))).sum())


def ranked_checksum(changes: pa.Table) -> int:
    """Equal for equal sets of (tick, subscription, message, change, score), scores to the last bit, whatever their order."""
    tick, subscription, message, change = (_bits(changes[name]) for name in ("tick", "subscription_id", "message_id", "change"))
    score = np.asarray(changes["score"], np.float64).view(np.uint64)
    one = np.uint64(1)
    mixed = (subscription + one) * _MIX[0] ^ (message + one) * _MIX[1] ^ (score + change) * _MIX[2] ^ (tick + one) * _MIX[3]
    return int(((mixed ^ (mixed >> np.uint64(29))) * _MIX[0]).sum())


def combined_checksum(parts: Sequence[int]) -> int:
    """The ranked checksum of the whole from those of its parts."""
    return sum(parts) % (1 << 64)


def _bits(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    return np.asarray(column).astype(np.int64).view(np.uint64)
