"""What a ranker says about itself: why a message is in a list or not, and the sizes of its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.identifiers import Identifiers
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.model.delivery import Explanation
from nearcast.model.message import Message
from nearcast.model.regions import Box
from nearcast.model.relevance import distance, relevance, spatial_proximity, text_similarity
from nearcast.model.spaces import Space
from nearcast.ranked.thread_shards import ShardedEngine
from nearcast.ranked.tick_engine import RankedEngine
from nearcast.ranked.window import ArrivingMessages


class KeywordInfo(NamedTuple):
    """The name of a keyword id, and the weight of each."""

    name: Callable[[int], str]
    weight: NDArray[np.float64]


def explain_message(
    engine: RankedEngine, number: int, space: Space, words: KeywordInfo, arriving: ArrivingMessages, message: Message
) -> Explanation:
    """Whether and why a message is in the list of a subscription."""
    score, reasons = explain_score(engine, space, words, number, arriving, message.box)
    _, held, scores = engine.lists(np.array([number], np.int32))
    ids = engine.window.ids_of(held).to_pylist()
    rank = ids.index(message.id) if message.id in ids else None
    if score is not None:
        k, is_in_window = int(engine.subscriptions.layout().k[number]), engine.window.numbers_of(arriving.ids)[0] >= 0
        reasons += explain_rank(score, scores.tolist(), rank, k, bool(is_in_window))
    return Explanation(rank is not None, tuple(reasons), tuple(engine.index.explain(engine.subscriptions, number)))


def explain_score(
    engine: RankedEngine, space: Space, words: KeywordInfo, number: int, message: ArrivingMessages, where: Box
) -> tuple[float | None, list[str]]:
    """The score of a message for a subscription and its parts in words; the score is None if they have no word in common."""
    layout = engine.subscriptions.layout()
    keywords = layout.keyword[layout.first[number] : layout.first[number] + layout.n_words[number]].tolist()
    counts = dict(zip(message.keyword.tolist(), message.n_times.tolist(), strict=True))
    common = [word for word in keywords if word in counts]
    if not common:
        return None, [f"no word in common: it has {_shown(words, list(counts))}, expected one of {_shown(words, keywords)}"]
    away = distance(space, float(layout.x[number]), float(layout.y[number]), where.x0, where.y0)
    near = spatial_proximity(away, engine.distances.max_distance)
    similar = text_similarity(counts, keywords, lambda word: float(words.weight[word]))
    spatial_weight = float(layout.spatial_weight[number])
    score = relevance(spatial_weight, near, similar)
    unit = " m" if space.is_lonlat else ""
    return score, [
        f"words in common: {_shown(words, common)}; similarity {similar:.6g}, weighted {1 - spatial_weight:g}",
        f"{away:.6g}{unit} away; proximity {near:.6g}, weighted {spatial_weight:g}",
        f"relevance {score:.6g}",
    ]


def explain_rank(score: float, listed: Sequence[float], rank: int | None, k: int, is_in_window: bool) -> list[str]:
    """The rank of a score in a list of scores, best first. `rank` is the rank of the message itself, if it is in the list."""
    if rank is not None:
        return [f"rank {rank + 1} of {len(listed)}"]
    is_full = len(listed) == k
    last = f"the last of its {k} messages has {listed[-1]:.6g}" if is_full else f"it has {len(listed)} of {k} messages"
    if is_in_window:
        return [f"not in the list: {last}"]
    would = "it would enter now" if len(listed) < k or score >= listed[-1] else "it would not enter now"
    return [f"not a message of the window; {would}: {last}"]


def _shown(words: KeywordInfo, keywords: Sequence[int]) -> str:
    return ", ".join(repr(name) for name in sorted(map(words.name, keywords))) or "no words"


# --- sizes -------------------------------------------------------------------------------------------------------


def ranker_stats(engine: RankedEngine | ShardedEngine, ids: Identifiers, keywords: KeywordKind) -> dict[str, int | float | str]:
    """Subscriptions, messages in the window, keywords, bytes in total and by part, and what the index reports."""
    part_stats: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    work: Counter[str] = Counter()
    held = 0
    for shard in engine.shards:
        part_stats.update(shard.index.stats())
        parts.update(shard.n_bytes())
        work.update(shard.window_index.work())
        held += int(shard.buffers.sizes(shard.alive()).sum())
    parts.update({"ids": ids.n_bytes, "keywords": keywords.space.n_bytes, "index": part_stats.pop("bytes")})
    first, n_alive = engine.shards[0], sum(shard.subscriptions.n_alive for shard in engine.shards)
    return {
        "index": first.index.name,
        "buffer": first.buffers.kind.name,
        "window_index": first.window_index.name,
        "threads": len(engine.shards),
        "subscriptions": n_alive,
        "messages": engine.window.n_alive,
        "keywords": keywords.n,
        "held_per_subscription": held / max(1, n_alive),
        "refills": sum(shard.n_refills for shard in engine.shards),
        "list_seconds": sum(shard.list_seconds for shard in engine.shards),
        **{f"window_{name}": n for name, n in work.items()},
        "bytes": sum(parts.values()),
        **{f"{name}_bytes": n_bytes for name, n_bytes in parts.items()},
        **part_stats,
    }
