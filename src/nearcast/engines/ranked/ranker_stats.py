"""The sizes of a ranker and of its parts."""

from __future__ import annotations

from nearcast.columns.identifiers import Identifiers
from nearcast.engines.keyword_kind import KeywordKind
from nearcast.engines.ranked.ranking import Ranking


def ranker_stats(ranking: Ranking, ids: Identifiers, keywords: KeywordKind) -> dict[str, int | float | str]:
    """Subscriptions, messages in the window, keywords, bytes in all and by part, and what the index tells."""
    own = ranking.index.stats()
    parts = {**ranking.n_bytes(), "ids": ids.n_bytes, "keywords": keywords.space.n_bytes, "index": int(own.pop("bytes"))}
    alive = ranking.subscribers.alive()
    held = int(ranking.buffers.layout().size[alive].sum())
    return {
        "index": ranking.index.name,
        "buffer": ranking.buffers.kind.name,
        "window_index": ranking.window_index.name,
        "subscriptions": ranking.subscribers.n_alive,
        "messages": ranking.window.n_alive,
        "keywords": keywords.n,
        "held_per_subscription": held / max(1, len(alive)),
        "refills": ranking.n_refills,
        **{f"window_{name}": n for name, n in ranking.window_index.work().items()},
        "bytes": sum(parts.values()),
        **{f"{name}_bytes": n_bytes for name, n_bytes in parts.items()},
        **own,
    }
