"""The sizes of a ranker and of its parts."""

from __future__ import annotations

from collections import Counter

from nearcast.columns.identifiers import Identifiers
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.ranked.ranking import Ranking
from nearcast.ranked.thread_shards import ShardedRanking


def ranker_stats(ranking: Ranking | ShardedRanking, ids: Identifiers, keywords: KeywordKind) -> dict[str, int | float | str]:
    """Subscriptions, messages in the window, keywords, bytes in all and by part, and what the index tells."""
    own: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    work: Counter[str] = Counter()
    held = 0
    for shard in ranking.shards:
        own.update(shard.index.stats())
        parts.update(shard.n_bytes())
        work.update(shard.window_index.work())
        held += int(shard.buffers.sizes(shard.alive()).sum())
    parts.update({"ids": ids.n_bytes, "keywords": keywords.space.n_bytes, "index": own.pop("bytes")})
    first, n_alive = ranking.shards[0], sum(shard.subscribers.n_alive for shard in ranking.shards)
    return {
        "index": first.index.name,
        "buffer": first.buffers.kind.name,
        "window_index": first.window_index.name,
        "threads": len(ranking.shards),
        "subscriptions": n_alive,
        "messages": ranking.window.n_alive,
        "keywords": keywords.n,
        "held_per_subscription": held / max(1, n_alive),
        "refills": sum(shard.n_refills for shard in ranking.shards),
        "list_seconds": sum(shard.list_seconds for shard in ranking.shards),
        **{f"window_{name}": n for name, n in work.items()},
        "bytes": sum(parts.values()),
        **{f"{name}_bytes": n_bytes for name, n_bytes in parts.items()},
        **own,
    }
